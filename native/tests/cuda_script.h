/* Random scripts for the fake device, each with the result expected from the script alone. */
#ifndef CUDA_SCRIPT_H
#define CUDA_SCRIPT_H

#include "check.h"
#include "core/event.h"
#include "fake_cupti.h"

#include <stdarg.h>
#include <stdbool.h>

enum {
    MOST_WORKS = 512,
    MOST_RANGES = 256,
    MOST_BLOCKS = 128,
    MOST_THREADS = 4,
    MOST_DEPTH = 6,
    SCRIPT_BYTES = 1 << 17
};

/* What one line starts on a device, identified by its name, `k7`, or by its bytes. */
typedef struct expected_work {
    uint8_t kind; /* OP_KERNEL, OP_MEMCPY, OP_MEMSET */
    uint32_t id, records;
    int range; /* range of the launch; -1: none */
    int step;
    uint32_t device, stream;
    uint64_t ns; /* of each record */
    bool has_call, timed;
} expected_work;

typedef struct expected_range {
    int parent; /* -1: none */
    uint64_t self_ns, total_ns;
    uint32_t self_records, total_records;
    int64_t self_bytes, total_bytes; /* of device memory: allocated minus freed */
} expected_range;

/* A block of device memory, identified by its address. */
typedef struct expected_block {
    uint64_t bytes;
    uint32_t device;
    int range, step; /* of the allocation; -1: none */
    int freed_range, freed_step;
    bool freed;
} expected_block;

static inline uint64_t block_at(uint64_t id) { return 0x7f0000000000u + 0x10000u * id; }

typedef struct cuda_script {
    uint64_t random;
    char text[SCRIPT_BYTES];
    size_t used;
    expected_work works[MOST_WORKS];
    expected_range ranges[MOST_RANGES];
    expected_block blocks[MOST_BLOCKS];
    int work_count, range_count, block_count, steps;
    int held[MOST_THREADS]; /* 1 + the last block that the thread allocated and still holds; 0: none */
    uint32_t calls, syncs, lost; /* records of calls, of waits; launches whose kernels never arrive */
    int open[MOST_THREADS][MOST_DEPTH];
    int depth[MOST_THREADS];
    bool plain; /* each call makes one record, and all work has a call and times */
} cuda_script;

/* ---- chance -------------------------------------------------------------------------------- */

static inline uint32_t below(cuda_script *s, uint32_t n) {
    s->random ^= s->random << 13;
    s->random ^= s->random >> 7;
    s->random ^= s->random << 17;
    return (uint32_t)((s->random >> 16) % n);
}

static inline bool one_in(cuda_script *s, uint32_t n) { return below(s, n) == 0; }

__attribute__((format(printf, 2, 3))) static inline void say(cuda_script *s, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(s->text + s->used, SCRIPT_BYTES - s->used, format, args);
    va_end(args);
    CHECK(n > 0 && s->used + (size_t)n < SCRIPT_BYTES);
    s->used += (size_t)n;
}

/* ---- ranges -------------------------------------------------------------------------------- */

static inline int range_of(const cuda_script *s, int thread) {
    return s->depth[thread] ? s->open[thread][s->depth[thread] - 1] : -1;
}

static inline void begin_range(cuda_script *s, int thread) {
    if (s->depth[thread] == MOST_DEPTH || s->range_count == MOST_RANGES)
        return;
    s->ranges[s->range_count] = (expected_range){.parent = range_of(s, thread)};
    s->open[thread][s->depth[thread]++] = s->range_count;
    say(s, "begin r%d\n", s->range_count++);
}

static inline void end_range(cuda_script *s, int thread) {
    if (!s->depth[thread])
        return;
    s->depth[thread]--;
    say(s, "end\n");
}

/* Work with a call and times counts for its range and those around it. */
static inline void account(cuda_script *s, const expected_work *w) {
    uint64_t ns = w->timed ? w->ns * w->records : 0;
    if (!w->has_call || w->range < 0)
        return;
    s->ranges[w->range].self_ns += ns;
    s->ranges[w->range].self_records += w->records;
    for (int r = w->range; r >= 0; r = s->ranges[r].parent) {
        s->ranges[r].total_ns += ns;
        s->ranges[r].total_records += w->records;
    }
}

/* ---- activities ---------------------------------------------------------------------------- */

/* By a call of the runtime, the driver, both or none; one of the first `most`. */
static inline bool say_door(cuda_script *s, uint32_t most) {
    static const char *const doors[] = {"runtime", "driver", "nested", "nested_own", "none"};
    uint32_t door = one_in(s, 3) ? below(s, most) : 0;
    if (s->plain && door > 1)
        door = 1;
    say(s, " api=%s", doors[door]);
    s->calls += door != 4;
    return door != 4;
}

/* How its records arrive, if at all. */
static inline void say_fate(cuda_script *s, expected_work *w) {
    static const char *const fates[] = {"late", "endless", "untimed", "backward", "lost"};
    if (s->plain || !one_in(s, 6))
        return;
    uint32_t fate = below(s, 5);
    if (fate == 4 && (w->kind != OP_KERNEL || !w->has_call))
        fate = 0;
    say(s, " flags=%s", fates[fate]);
    w->timed = fate == 0;
    if (fate == 4) {
        w->records = 0;
        s->lost++;
    }
}

static inline void say_work(cuda_script *s, int thread, int step) {
    if (s->work_count == MOST_WORKS)
        return;
    static const char *const lines[] = {"launch", "graph", "memcpy", "peer", "memset"};
    static const uint8_t kinds[] = {OP_KERNEL, OP_KERNEL, OP_MEMCPY, OP_MEMCPY, OP_MEMSET};
    uint32_t which = one_in(s, 2) ? 0 : below(s, 5), id = (uint32_t)s->work_count;
    expected_work *w = &s->works[s->work_count++];
    *w = (expected_work){.kind = kinds[which],
                         .id = id,
                         .records = 1,
                         .range = range_of(s, thread),
                         .step = step,
                         .device = below(s, 2),
                         .stream = 7 + below(s, 3),
                         .ns = 100 + below(s, one_in(s, 10) ? 200000 : 3000),
                         .timed = true};
    say(s, "%s name=k%u bytes=%u device=%u stream=%u ns=%llu delay_ns=%u", lines[which], id, id + 1,
        w->device, w->stream, (unsigned long long)w->ns, below(s, 500));
    if (which == 1) {
        w->records = one_in(s, 20) ? 1000 : 1 + below(s, 5);
        say(s, " nodes=%u graph=%u", w->records, id + 1);
    }
    w->has_call = say_door(s, 5);
    say_fate(s, w);
    say(s, "\n");
    account(s, w);
}

static inline void account_bytes(cuda_script *s, int range, int64_t bytes) {
    if (range >= 0)
        s->ranges[range].self_bytes += bytes;
    for (int r = range; r >= 0; r = s->ranges[r].parent)
        s->ranges[r].total_bytes += bytes;
}

/* A thread only frees what it allocated itself; it does not know what others do meanwhile. */
static inline void say_free(cuda_script *s, int thread, int step) {
    int id = s->held[thread] - 1;
    expected_block *b = &s->blocks[id];
    s->held[thread] = 0;
    b->freed = true;
    b->freed_range = range_of(s, thread);
    b->freed_step = step;
    say(s, "free address=%llu device=%u bytes=%llu", (unsigned long long)block_at((uint64_t)id),
        b->device, one_in(s, 4) ? 0ull : (unsigned long long)b->bytes); /* CUPTI may omit the size */
    say_door(s, 4);
    say(s, "\n");
    account_bytes(s, b->freed_range, -(int64_t)b->bytes);
}

static inline void say_memory(cuda_script *s, int thread, int step) {
    if (s->held[thread] && one_in(s, 2)) {
        say_free(s, thread, step);
        return;
    }
    if (s->block_count == MOST_BLOCKS)
        return;
    int id = s->block_count++;
    expected_block *b = &s->blocks[id];
    *b = (expected_block){.bytes = 1 + below(s, 5000),
                          .device = below(s, 2),
                          .range = range_of(s, thread),
                          .step = step,
                          .freed_range = -1,
                          .freed_step = -1};
    s->held[thread] = id + 1;
    say(s, "malloc address=%llu device=%u bytes=%llu", (unsigned long long)block_at((uint64_t)id),
        b->device, (unsigned long long)b->bytes);
    say_door(s, 4);
    say(s, "\n");
    account_bytes(s, b->range, (int64_t)b->bytes);
}

/* Calls that wait, or start nothing. */
static inline void say_call(cuda_script *s) {
    static const char *const waits[] = {"sync_device", "sync_stream", "sync_event", "wait_event"};
    switch (below(s, 4)) {
    case 0: /* a failed call */
        say(s, "launch result=%u\n", 1 + below(s, 700));
        s->calls++;
        break;
    case 1:
        say(s, "call cbid=135\n"); /* cudaEventRecord */
        s->calls++;
        break;
    case 2:
        say(s, "call cbid=17\n"); /* cudaGetDevice: ignored */
        break;
    default:
        say(s, "%s device=%u stream=%u\n", waits[below(s, 4)], below(s, 2), 7 + below(s, 3));
        s->calls++;
        s->syncs++;
    }
}

static inline void say_line(cuda_script *s, int thread, int step) {
    uint32_t what = below(s, 14);
    if (what < 2)
        begin_range(s, thread);
    else if (what < 4)
        end_range(s, thread);
    else if (what < 10)
        say_work(s, thread, step);
    else if (what < 12)
        say_memory(s, thread, step);
    else
        say_call(s);
}

/* ---- the whole ----------------------------------------------------------------------------- */

/* Concurrent threads. They end all their ranges, except the first thread, which continues. */
static inline void say_stretch(cuda_script *s, int step) {
    int threads = 1 + (int)below(s, MOST_THREADS);
    for (int t = 0; t < threads; t++) {
        say(s, "thread %d\n", t);
        for (uint32_t n = below(s, 20); n > 0; n--)
            say_line(s, t, step);
        while (t && s->depth[t])
            end_range(s, t);
    }
    say(s, "join\n");
}

static inline void say_delivery(cuda_script *s) {
    if (one_in(s, 2))
        say(s, "shuffle %u\n", 1 + below(s, 1000));
    if (one_in(s, 4))
        say(s, "late %u\n", 1 + below(s, 3));
}

static inline void write_script(cuda_script *s, uint64_t seed, bool plain) {
    memset(s, 0, sizeof *s);
    s->random = (seed + 1) * 0x9e3779b97f4a7c15u;
    s->plain = plain;
    say_delivery(s);
    int step = -1;
    for (uint32_t n = 1 + below(s, 4); n > 0; n--) {
        if (one_in(s, 2)) {
            while (s->depth[0]) { /* no range outlives a step */
                say(s, "thread 0\n");
                end_range(s, 0);
            }
            say(s, "thread 0\nstep\njoin\n");
            step = s->steps++;
        }
        say_stretch(s, step);
        if (one_in(s, 4))
            say(s, "flush 0\n");
    }
    say(s, "thread 0\n");
    while (s->depth[0])
        end_range(s, 0);
}

static inline uint64_t expected_changes(const cuda_script *s) {
    uint64_t changes = (uint64_t)s->block_count;
    for (int i = 0; i < s->block_count; i++)
        changes += s->blocks[i].freed;
    return changes;
}

static inline uint64_t expected_rows(const cuda_script *s) {
    uint64_t rows = 0;
    for (int i = 0; i < s->work_count; i++)
        rows += s->works[i].records;
    return rows;
}

#endif
