/* The collector's lock guards everything here. */
#include "core/pool.h"

#include "core/error.h"
#include "core/fault.h"
#include "core/names.h"
#include "opprof.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

/* Signals are blocked: on one, older kernels release all that tmpfs has allocated so far, so under a
 * timer faster than the allocation there would never be a file. */
static int allocate(int fd, uint64_t at, uint64_t bytes) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = op_fallocate(fd, (off_t)at, (off_t)bytes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

/* A file is always allocated, never only sized: touching a page of a sparse file on a full disk raises
 * SIGBUS in the middle of somebody's test. */
static void *map_part(const op_pool *pool, uint64_t at, uint64_t bytes) {
    int fd = pool->file.fd, flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    if (fd >= 0 && (!op_holds(&pool->file) || allocate(fd, at, bytes) != 0))
        return NULL;
    void *p = op_mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, fd < 0 ? 0 : (off_t)at);
    if (p == MAP_FAILED)
        return NULL;
    /* A forked child must not write into its parent's recording, even by accident. */
    madvise(p, bytes, MADV_DONTFORK);
    return p;
}

/* Touches every page now, because a first touch within the window costs many times an event. */
static void touch(uint8_t *base, uint64_t bytes) {
    for (uint64_t at = 0; at < bytes; at += 4096)
        *(volatile uint8_t *)(base + at) = 0;
}

bool op_pool_grow(op_pool *pool) {
    if (pool->segments == OP_SEGMENTS)
        return false;
    uint64_t bytes = (uint64_t)pool->segment_units * OP_UNIT_BYTES;
    op_segment *s = &pool->segment[pool->segments];
    s->base = map_part(pool, OP_HEADER_BYTES + pool->segments * bytes, bytes);
    if (!s->base)
        return false;
    touch(s->base, bytes);
    memset(s->used, 0, sizeof s->used);
    pool->segments++;
    __atomic_store_n(&pool->header->segments, pool->segments, __ATOMIC_RELEASE);
    return true;
}

static op_owned_fd create_private(const char *path) {
    int fd = op_open_file(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        op_error_errno("%s", path);
    return op_hold(fd);
}

static int open_files(op_pool *pool, const char *dir) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int n = snprintf(pool->path, sizeof pool->path, "%s/opprof-%u-%d-%llx", dir, (unsigned)getuid(),
                     (int)getpid(),
                     (unsigned long long)now.tv_sec * 1000000000u + (unsigned long long)now.tv_nsec);
    if (n < 0 || n > 1000)
        return op_error_set(OP_EIO, "the session folder's path is too long: %s", dir);
    snprintf(pool->names_path, sizeof pool->names_path, "%.1000s.names", pool->path);
    pool->file = create_private(pool->path);
    if (pool->file.fd < 0)
        return OP_EIO;
    pool->names_file = create_private(pool->names_path);
    if (pool->names_file.fd < 0)
        return OP_EIO;
    flock(pool->file.fd, LOCK_EX | LOCK_NB); /* the kernel releases it when this process dies */
    return OP_OK;
}

/* Frees the memory. If a thread holds a chunk, the addresses stay mapped: it may have been interrupted
 * in the middle of a record and write the rest after the session's end. */
static void let_go(void *base, uint64_t bytes, bool addresses_too) {
    if (addresses_too) {
        munmap(base, bytes);
        return;
    }
    void *empty = op_mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (empty != MAP_FAILED)
        mremap(empty, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, base);
}

static void unmap_all(op_pool *pool) {
    uint64_t bytes = (uint64_t)pool->segment_units * OP_UNIT_BYTES;
    for (uint32_t i = 0; i < pool->segments; i++)
        let_go(pool->segment[i].base, bytes, pool->used_units == 0);
    if (pool->header)
        munmap(pool->header, OP_HEADER_BYTES);
}

static void close_files(op_pool *pool) {
    op_let_go(&pool->names_file);
    op_let_go(&pool->file);
}

int op_pool_open(op_pool *pool, const char *dir, uint64_t segment_bytes) {
    *pool = (op_pool){.file = OP_HELD_NONE, .names_file = OP_HELD_NONE};
    pool->segment_units = (uint32_t)(segment_bytes / OP_UNIT_BYTES);
    if (segment_bytes % OP_CHUNK_MAX || !pool->segment_units || pool->segment_units > OP_SEGMENT_UNITS)
        return op_error_set(OP_ESTATE, "pool_bytes must be a multiple of 256 KiB up to 16 MiB");
    int rc = dir ? open_files(pool, dir) : OP_OK;
    if (rc == OP_OK) {
        pool->header = map_part(pool, 0, OP_HEADER_BYTES);
        if (pool->header) {
            *pool->header = (op_file_header){.version = OP_FILE_VERSION,
                                             .pid = (uint32_t)getpid(),
                                             .segment_bytes = segment_bytes,
                                             .clock_kind = (uint32_t)op_clock_kind};
            memcpy(pool->header->magic, OP_FILE_MAGIC, sizeof pool->header->magic);
            memcpy(pool->header->names_path, pool->names_path, sizeof pool->names_path);
            op_clock_calibrate(&pool->header->opened);
        }
        if (!pool->header || !op_pool_grow(pool))
            rc = op_error_set(OP_ENOMEM, "no room for a pool of %llu bytes%s%s",
                              (unsigned long long)segment_bytes, dir ? " in " : "", dir ? dir : "");
    }
    if (rc == OP_OK && pool->file.fd >= 0 && op_names_log(pool->names_file.fd) != 0)
        rc = op_error_errno("%s", pool->names_path);
    if (rc != OP_OK)
        op_pool_close(pool);
    return rc;
}

void op_pool_close(op_pool *pool) {
    op_names_log(-1);
    unmap_all(pool);
    if (pool->names_file.fd >= 0)
        unlink(pool->names_path);
    if (pool->file.fd >= 0)
        unlink(pool->path);
    close_files(pool);
    *pool = (op_pool){.file = OP_HELD_NONE, .names_file = OP_HELD_NONE};
}

void op_pool_forget(op_pool *pool) {
    close_files(pool); /* not flock(LOCK_UN): that would take the lock from the parent */
    *pool = (op_pool){.file = OP_HELD_NONE, .names_file = OP_HELD_NONE};
}

/* A chunk is a power of two of units, aligned to its size, so it lies within one word of the map. */
op_chunk *op_pool_take(op_pool *pool, uint32_t bytes) {
    uint32_t units = bytes / OP_UNIT_BYTES;
    uint64_t mask = (1ull << units) - 1;
    for (uint32_t s = 0; s < pool->segments; s++) {
        uint64_t *used = pool->segment[s].used;
        for (uint32_t w = 0; w < pool->segment_units / 64 + (pool->segment_units % 64 != 0); w++) {
            if (used[w] == UINT64_MAX)
                continue;
            for (uint32_t bit = 0; bit < 64 && w * 64 + bit + units <= pool->segment_units;
                 bit += units) {
                if (used[w] >> bit & mask)
                    continue;
                used[w] |= mask << bit;
                pool->used_units += units;
                op_chunk *c = (op_chunk *)(pool->segment[s].base + (w * 64 + bit) * OP_UNIT_BYTES);
                c->bytes = bytes;
                c->unit = s * OP_SEGMENT_UNITS + w * 64 + bit;
                return c;
            }
        }
    }
    return NULL;
}

void op_pool_give(op_pool *pool, op_chunk *chunk) {
    uint32_t units = chunk->bytes / OP_UNIT_BYTES, at = chunk->unit % OP_SEGMENT_UNITS;
    __atomic_store_n(&chunk->magic, 0, __ATOMIC_RELEASE);
    pool->segment[chunk->unit / OP_SEGMENT_UNITS].used[at / 64] &= ~(((1ull << units) - 1) << at % 64);
    pool->used_units -= units;
}
