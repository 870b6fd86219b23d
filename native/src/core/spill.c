#include "core/spill.h"

#include "core/collector.h"
#include "core/error.h"
#include "core/fault.h"
#include "core/grow.h"
#include "core/record.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

/* How long a write may take before others check whether its thread is alive. */
#define WRITER_LOOKED_FOR_NS 100000000

static op_collector *const self = &op_the_collector;

static bool make_file(void) {
    op_spill *spill = &self->spill;
    if (!spill->path[0])
        return false;
    spill->file =
        op_hold(op_open_file(spill->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (spill->file.fd < 0)
        return false;
    /* First byte last, because the process may be killed after any of them. */
    char *told = self->pool.header->spill_path;
    memcpy(told + 1, spill->path + 1, sizeof spill->path - 1);
    __atomic_store_n(told, spill->path[0], __ATOMIC_RELEASE);
    return true;
}

bool op_spill_file(void) {
    op_spill *spill = &self->spill;
    if (spill->file.fd < 0)
        return make_file();
    int fd = spill->file.fd;
    if (!op_regain(&spill->file, spill->path))
        return false;
    /* A reopened descriptor starts at offset 0. */
    return spill->file.fd == fd || lseek(spill->file.fd, (off_t)spill->bytes, SEEK_SET) >= 0;
}

static bool write_all(int fd, const void *data, size_t bytes) {
    const char *at = data;
    while (bytes) {
        ssize_t n = op_write(fd, at, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        bytes -= (size_t)n;
    }
    return true;
}

/* The list is newest first; the oldest are the least likely to be needed. */
op_chunk *op_spill_take_oldest(void) {
    op_chunk **found = NULL;
    uint32_t window = op_recording();
    for (op_chunk **link = &self->full; *link; link = &(*link)->next)
        if ((*link)->window == window && __atomic_load_n(&(*link)->open, __ATOMIC_ACQUIRE) == 0)
            found = link;
    if (!found)
        return NULL;
    op_chunk *c = *found;
    *found = c->next;
    return c;
}

static void put_back(op_chunk *c) {
    c->next = self->full;
    self->full = c;
}

static void give_up(op_chunk *c) {
    op_spill *spill = &self->spill;
    spill->broken = true;
    if (op_holds(&spill->file) && ftruncate(spill->file.fd, (off_t)spill->bytes) == 0)
        lseek(spill->file.fd, (off_t)spill->bytes, SEEK_SET);
    put_back(c);
}

static bool is_there(int tid) { return syscall(SYS_tgkill, getpid(), tid, 0) == 0; }

/* A single thread can be killed, for example by a seccomp filter, and then never reports its write. Its
 * chunk is still intact; only the file has to do without it. */
static void wait_for_writer(void) {
    op_spill *spill = &self->spill;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += WRITER_LOOKED_FOR_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    int rc = pthread_cond_timedwait(&self->changed, &self->lock, &until);
    if (rc != ETIMEDOUT || !spill->writer || is_there(spill->writer))
        return;
    spill->writer = 0;
    give_up(spill->written);
    pthread_cond_broadcast(&self->changed);
}

bool op_spill_one(void) {
    op_spill *spill = &self->spill;
    if (spill->writer) {
        wait_for_writer();
        return true;
    }
    if (spill->paused) {
        pthread_cond_wait(&self->changed, &self->lock);
        return true;
    }
    if (spill->broken || !OP_HAS_ROOM(spill->index, spill->count, spill->capacity, 256))
        return false;
    op_chunk *c = op_spill_take_oldest();
    if (!c)
        return false;
    if (!op_spill_file()) {
        spill->broken = true;
        put_back(c);
        return false;
    }
    spill->writer = (int)syscall(SYS_gettid);
    spill->written = c;
    int fd = spill->file.fd;
    pthread_mutex_unlock(&self->lock);
    size_t events = sizeof *c + c->count * sizeof(op_event), args = op_spilled_bytes(c) - events;
    bool written = write_all(fd, c, events) && write_all(fd, (const char *)c + c->bytes - args, args);
    pthread_mutex_lock(&self->lock);
    spill->writer = 0;
    pthread_cond_broadcast(&self->changed);
    if (!written) {
        give_up(c);
        return false;
    }
    spill->index[spill->count++] =
        (op_spilled){.at = spill->bytes, .thread = c->thread, .sequence = c->sequence};
    spill->bytes += events + args;
    op_pool_give(&self->pool, c);
    return true;
}

/* Not just waiting until nobody writes: with busy threads that moment might never come. */
void op_spill_pause(void) {
    self->spill.paused++;
    while (self->spill.writer)
        wait_for_writer();
}

void op_spill_resume(void) {
    self->spill.paused--;
    pthread_cond_broadcast(&self->changed);
}

static bool more_than_quarter_used(void) {
    const op_pool *pool = &self->pool;
    return pool->used_units * 4 > pool->segments * pool->segment_units;
}

static void *drain(void *unused) {
    (void)unused;
    pthread_mutex_lock(&self->lock);
    self->spill.drain_tid = (int)syscall(SYS_gettid);
    while (!self->spill.drain_stops) {
        if (op_recording() && more_than_quarter_used() && op_spill_one())
            continue;
        pthread_cond_wait(&self->changed, &self->lock);
    }
    pthread_mutex_unlock(&self->lock);
    return NULL;
}

void op_spill_start_drain(void) {
    op_spill *spill = &self->spill;
    if (spill->broken || spill->paused)
        return;
    if (spill->drain_runs) { /* or is being joined: start no second one before it has ended */
        pthread_cond_broadcast(&self->changed);
        return;
    }
    sigset_t all, before;
    sigfillset(&all); /* the user's signal handlers are for the user's threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    spill->drain_runs = op_thread_start(&spill->drain, NULL, drain, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    /* If it fails, whoever needs a chunk spills one itself. */
}

/* A joined thread briefly stays in the process's thread count, which makes Python's os.fork() warn. */
void op_wait_until_unlisted(int tid) {
    for (int tries = 0; tries < 10000 && syscall(SYS_tgkill, getpid(), tid, 0) == 0; tries++)
        sched_yield();
}

void op_spill_join_drain(void) {
    op_spill *spill = &self->spill;
    while (spill->drain_runs && spill->drain_stops) /* somebody else is joining it */
        pthread_cond_wait(&self->changed, &self->lock);
    if (!spill->drain_runs)
        return;
    pthread_t drain_thread = spill->drain;
    spill->drain_stops = true;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
    pthread_join(drain_thread, NULL);
    op_wait_until_unlisted(spill->drain_tid);
    pthread_mutex_lock(&self->lock);
    spill->drain_runs = spill->drain_stops = false;
    pthread_cond_broadcast(&self->changed);
}

void op_spill_reset(void) {
    op_spill *spill = &self->spill;
    spill->count = 0;
    spill->bytes = 0;
    spill->broken = false;
    if (spill->file.fd >= 0 && (!op_spill_file() || ftruncate(spill->file.fd, 0) != 0 ||
                                lseek(spill->file.fd, 0, SEEK_SET) != 0))
        spill->broken = true;
}

void op_spill_close(void) {
    op_spill *spill = &self->spill;
    if (spill->file.fd >= 0)
        unlink(spill->path);
    op_let_go(&spill->file);
    free(spill->index);
    *spill = (op_spill){.file = OP_HELD_NONE, .paused = spill->paused};
}

void op_spill_forget(void) {
    op_let_go(&self->spill.file);
    free(self->spill.index);
    self->spill = (op_spill){.file = OP_HELD_NONE};
}
