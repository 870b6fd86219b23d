/* Reads the session file of a dead process. Trusts nothing: every length is checked before use. */
#include "core/error.h"
#include "core/fault.h"
#include "core/grow.h"
#include "core/name_text.h"
#include "core/names.h"
#include "core/pool.h"
#include "core/spill.h"
#include "result/result.h"

#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

typedef struct mapping {
    uint8_t *base;
    uint64_t bytes;
} mapping;

typedef struct recovery {
    mapping pool, names, spill;
    const op_file_header *header;
    op_raw *raw;
    uint32_t count, capacity;
    uint32_t *ids; /* name id in the file -> id here */
    uint32_t id_count;
} recovery;

/* Do not block: a path read from a file may lead to a pipe. */
#define OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)

static int map_file(const char *path, mapping *out) {
    int fd = op_open_file(path, OPEN_FLAGS, 0);
    if (fd < 0)
        return op_error_errno("%s", path);
    struct stat info;
    int rc = fstat(fd, &info) == 0 ? OP_OK : op_error_errno("%s", path);
    if (rc == OP_OK && (!S_ISREG(info.st_mode) || info.st_uid != geteuid()))
        rc = op_error_set(OP_EFORMAT, "%s: not a regular file of this user", path);
    if (rc == OP_OK && info.st_size > 0) {
        void *p = op_mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED)
            rc = op_error_errno("%s", path);
        else
            *out = (mapping){.base = p, .bytes = (uint64_t)info.st_size};
    }
    close(fd);
    return rc;
}

static void unmap(mapping *m) {
    if (m->base)
        munmap(m->base, m->bytes);
}

/* The writer holds a lock, which the kernel releases when it dies. */
static int find_writer(const char *path, bool *is_alive) {
    int fd = op_open_file(path, OPEN_FLAGS, 0);
    if (fd < 0)
        return op_error_errno("%s", path);
    *is_alive = flock(fd, LOCK_SH | LOCK_NB) != 0;
    close(fd);
    return OP_OK;
}

static int check_writer_is_dead(const char *path) {
    bool is_alive = false;
    int rc = find_writer(path, &is_alive);
    return is_alive ? op_error_set(OP_EBUSY, "%s: its process is still running", path) : rc;
}

static int check_version(const char *path, recovery *r) {
    r->header = (const op_file_header *)r->pool.base;
    if (r->pool.bytes < OP_HEADER_BYTES || memcmp(r->header->magic, OP_FILE_MAGIC, 8) != 0)
        return op_error_set(OP_EFORMAT, "%s: not a session file", path);
    if (r->header->version != OP_FILE_VERSION)
        return op_error_set(OP_EFORMAT, "%s: session file version %u; this release reads %u", path,
                            r->header->version, OP_FILE_VERSION);
    return OP_OK;
}

static int check_header(const char *path, recovery *r) {
    int rc = check_version(path, r);
    if (rc != OP_OK)
        return rc;
    if (r->header->window == 0)
        return op_error_set(OP_EFORMAT, "%s: nothing was being recorded", path);
    if (r->header->segment_bytes > OP_SEGMENT_UNITS * (uint64_t)OP_UNIT_BYTES ||
        r->header->segment_bytes % OP_CHUNK_MAX || r->header->segments > OP_SEGMENTS ||
        OP_HEADER_BYTES + r->header->segments * r->header->segment_bytes > r->pool.bytes)
        return op_error_set(OP_EFORMAT, "%s: its header does not fit its size", path);
    return OP_OK;
}

/* ---- names ------------------------------------------------------------------------------ */

static int read_names(recovery *r) {
    char path[sizeof r->header->names_path];
    memcpy(path, r->header->names_path, sizeof path);
    path[sizeof path - 1] = 0;
    int rc = map_file(path, &r->names);
    if (rc != OP_OK)
        return rc;
    r->ids = op_calloc(OP_NAME_MAX_COUNT, sizeof *r->ids);
    if (!r->ids)
        return op_error_set(OP_ENOMEM, "no memory for the recording's names");
    for (uint64_t at = 0; at + OP_NAME_RECORD_BYTES <= r->names.bytes;) {
        uint32_t id, length, group;
        memcpy(&id, r->names.base + at, 4);
        memcpy(&length, r->names.base + at + 4, 4);
        memcpy(&group, r->names.base + at + 8, 4);
        at += OP_NAME_RECORD_BYTES;
        if (id >= OP_NAME_MAX_COUNT || length > OP_NAME_MAX_BYTES || at + length > r->names.bytes)
            break; /* the process died inside this record */
        r->ids[id] = op_names_intern_in((const char *)r->names.base + at, length,
                                        group < r->id_count ? r->ids[group] : OP_NAME_NONE);
        if (id >= r->id_count)
            r->id_count = id + 1;
        at += length;
    }
    return OP_OK;
}

/* ---- chunks ----------------------------------------------------------------------------- */

static bool plausible(const recovery *r, const op_chunk *c, uint64_t most) {
    return c->magic == OP_CHUNK_MAGIC && c->window == r->header->window && c->bytes >= OP_CHUNK_MIN &&
           c->bytes <= OP_CHUNK_MAX && (c->bytes & (c->bytes - 1)) == 0 && c->bytes <= most &&
           c->count <= c->bytes / sizeof(op_event) && c->arg_words <= c->bytes / sizeof(uint32_t) &&
           sizeof *c + c->count * sizeof(op_event) + c->arg_words * sizeof(uint32_t) <= c->bytes;
}

static int add_raw(recovery *r, const op_chunk *c, const void *args) {
    if (!OP_HAS_ROOM(r->raw, r->count, r->capacity, 256))
        return op_error_set(OP_ENOMEM, "no memory for the list of chunks");
    r->raw[r->count++] = (op_raw){.thread = c->thread,
                                  .sequence = c->sequence,
                                  .os_tid = c->os_tid,
                                  .torch_thread = c->torch_thread,
                                  .count = c->count,
                                  .arg_words = c->arg_words,
                                  .events = (const op_event *)(c + 1),
                                  .args = args,
                                  .args_at = c->bytes / (uint32_t)sizeof(uint32_t) - c->arg_words};
    return OP_OK;
}

static int read_pool(recovery *r) {
    for (uint32_t s = 0; s < r->header->segments; s++) {
        const uint8_t *base = r->pool.base + OP_HEADER_BYTES + s * r->header->segment_bytes;
        for (uint64_t at = 0; at < r->header->segment_bytes;) {
            const op_chunk *c = (const op_chunk *)(base + at);
            if (!plausible(r, c, r->header->segment_bytes - at)) {
                at += OP_UNIT_BYTES;
                continue;
            }
            const uint32_t *end = (const uint32_t *)c + c->bytes / sizeof(uint32_t);
            if (add_raw(r, c, end - c->arg_words) != OP_OK)
                return OP_ENOMEM;
            at += c->bytes;
        }
    }
    return OP_OK;
}

/* Reads consecutive chunks. The last may be torn; then its original is still in the pool. */
static int read_spill(recovery *r) {
    char path[sizeof r->header->spill_path];
    memcpy(path, r->header->spill_path, sizeof path);
    path[sizeof path - 1] = 0;
    if (!path[0])
        return OP_OK;
    int rc = map_file(path, &r->spill);
    for (uint64_t at = 0; rc == OP_OK && at + sizeof(op_chunk) <= r->spill.bytes;) {
        const op_chunk *c = (const op_chunk *)(r->spill.base + at);
        if (!plausible(r, c, UINT64_MAX))
            break;
        if (at + op_spilled_bytes(c) > r->spill.bytes)
            break;
        rc = add_raw(r, c, op_spilled_args(c));
        at += op_spilled_bytes(c);
    }
    return rc;
}

/* A chunk that was spilled but not yet released exists twice. */
static void drop_copies(recovery *r) {
    if (r->count)
        qsort(r->raw, r->count, sizeof *r->raw, op_raw_order);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        op_raw *last = kept ? &r->raw[kept - 1] : NULL;
        if (last && last->thread == r->raw[i].thread && last->sequence == r->raw[i].sequence) {
            if (r->raw[i].count > last->count)
                *last = r->raw[i];
        } else {
            r->raw[kept++] = r->raw[i];
        }
    }
    r->count = kept;
}

/* The end of the dead process's timeline is unknown. Its clock still runs, unless the machine rebooted;
 * then the rate between its own two calibrations is used. */
static void two_pairs(const op_file_header *h, op_clock_pair out[2]) {
    out[0] = h->started;
    op_clock_choose();
    op_clock_calibrate(&out[1]);
    if ((uint32_t)op_clock_kind == h->clock_kind && out[1].ticks > out[0].ticks &&
        out[1].monotonic_ns > out[0].monotonic_ns)
        return;
    uint64_t ticks = h->started.ticks - h->opened.ticks;
    uint64_t ns = h->started.monotonic_ns - h->opened.monotonic_ns;
    out[1] = out[0];
    out[1].ticks += ticks ? ticks : 1;
    out[1].monotonic_ns += ticks ? ns : 1;
}

static void end_with_last_event(op_result *r) {
    int64_t last = 0;
    for (uint64_t i = 0; i < r->columns.count; i++) {
        int64_t duration = r->columns.duration_ns[i] > 0 ? r->columns.duration_ns[i] : 0;
        if (r->columns.start_ns[i] + duration > last)
            last = r->columns.start_ns[i] + duration;
    }
    r->trace_duration = last;
}

static void take_settings(const op_file_header *h, op_stats *out) {
    if (h->sampling > 0 && h->sampling < 1)
        out->sampling = h->sampling;
    for (uint32_t i = 0; i < h->counted && i < OP_COUNTERS_MAX; i++)
        if (op_counter_name(h->counters[i]))
            out->counters[out->counted++] = h->counters[i];
}

static int rebuild(recovery *r, op_result *result) {
    op_clock_pair pairs[2];
    two_pairs(r->header, pairs);
    const op_timeline timeline = {.pairs = pairs, .count = 2};
    const op_steps none = {0};
    const op_source source = {.raw = r->raw,
                              .raw_count = r->count,
                              .timeline = &timeline,
                              .steps = &none,
                              .names = r->ids,
                              .name_count = r->id_count};
    int rc = op_tree_build(&source, result);
    if (rc != OP_OK)
        return rc;
    end_with_last_event(result);
    result->pid = r->header->pid;
    take_settings(r->header, &result->stats);
    result->stats.truncated = r->header->truncated;
    result->stats.dropped = r->header->dropped;
    result->stats.crash_recovery = 1;
    result->stats.names = r->id_count;
    result->stats.spilled_bytes = r->spill.bytes;
    return OP_OK;
}

int op_recover(const char *path, op_result **out) {
    recovery r = {0};
    *out = NULL;
    int rc = check_writer_is_dead(path);
    if (rc == OP_OK)
        rc = map_file(path, &r.pool);
    if (rc == OP_OK)
        rc = check_header(path, &r);
    if (rc == OP_OK)
        rc = read_names(&r);
    if (rc == OP_OK)
        rc = read_pool(&r);
    if (rc == OP_OK)
        rc = read_spill(&r);
    op_result *result = rc == OP_OK ? op_result_new() : NULL;
    if (rc == OP_OK && !result)
        rc = op_error_set(OP_ENOMEM, "no memory for a result");
    if (rc == OP_OK) {
        drop_copies(&r);
        rc = rebuild(&r, result);
    }
    if (rc == OP_OK)
        *out = result;
    else
        op_result_free(result);
    free(r.raw);
    free(r.ids);
    unmap(&r.pool);
    unmap(&r.names);
    unmap(&r.spill);
    return rc;
}

/* The paths are NUL-terminated whatever the file says. */
static void take_paths(const op_file_header *h, op_left *out) {
    memcpy(out->names_path, h->names_path, sizeof out->names_path - 1);
    memcpy(out->spill_path, h->spill_path, sizeof out->spill_path - 1);
}

int op_recover_look(const char *path, op_left *out) {
    recovery r = {0};
    bool is_alive = false;
    *out = (op_left){0};
    int rc = find_writer(path, &is_alive);
    if (rc == OP_OK)
        rc = map_file(path, &r.pool);
    if (rc == OP_OK)
        rc = check_version(path, &r);
    if (rc == OP_OK) {
        out->pid = r.header->pid;
        out->is_alive = is_alive;
        out->window = r.header->window;
        out->keeps_last = r.header->keeps_last;
        out->opened_ns = r.header->opened.realtime_ns;
        uint32_t bytes = __atomic_load_n(&r.header->note_bytes, __ATOMIC_ACQUIRE);
        out->note_bytes = bytes <= OP_NOTE_BYTES ? bytes : 0;
        memcpy(out->note, r.header->note, out->note_bytes);
        take_paths(r.header, out);
    }
    unmap(&r.pool);
    return rc;
}
