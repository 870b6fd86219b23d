/* Results built from hand-written events with known times. A tick is a nanosecond. */
#ifndef MADE_H
#define MADE_H

#include "fixture.h"
#include "result/result.h"

enum { MADE_EVENTS = 64, MADE_WORDS = 256, MADE_THREADS = 4, MADE_STEPS = 4 };

typedef struct made_thread {
    op_event events[MADE_EVENTS];
    uint32_t words[MADE_WORDS]; /* as in a chunk: blocks grow downwards */
    uint32_t count, arg_words, os_tid;
    uint64_t torch_thread;
} made_thread;

typedef struct made {
    made_thread threads[MADE_THREADS];
    op_step_mark steps[MADE_STEPS];
    uint32_t step_count;
    uint32_t sites; /* of sites, which are the events' lines; 0: none */
} made;

#define MADE_START 1000000u /* ticks at the window's start */
#define MADE_END 2000000u

/* An event from `start` to `end`, in ticks since the window's start; end 0: still open. */
static inline op_event *add_event(made_thread *t, const char *name, uint16_t depth, uint64_t start,
                                  uint64_t end) {
    CHECK(t->count < MADE_EVENTS);
    op_event *e = &t->events[t->count++];
    *e = (op_event){.start = MADE_START + start,
                    .end = end ? MADE_START + end : 0,
                    .name = name_id(name),
                    .aux = OP_NO_SEQUENCE,
                    .kind = OP_TORCH,
                    .depth = depth};
    return e;
}

static inline op_event *add_kind(made_thread *t, const char *name, uint16_t depth, uint64_t start,
                                 uint64_t end, uint8_t kind) {
    op_event *e = add_event(t, name, depth, start, end);
    e->kind = kind;
    return e;
}

static inline void add_block(made_thread *t, op_event *e, const uint32_t *words, uint32_t count) {
    t->arg_words += count;
    CHECK(t->arg_words <= MADE_WORDS);
    memcpy(t->words + MADE_WORDS - t->arg_words, words, count * sizeof *words);
    e->args = (uint16_t)(2000 + MADE_WORDS - t->arg_words); /* as if 2,000 words of chunk lay before */
}

/* A torch op's autograd number and, for a backward op, the thread of its forward op. */
static inline void set_sequence(made_thread *t, op_event *e, uint32_t number, uint32_t forward_thread) {
    e->aux = number;
    if (!forward_thread)
        return;
    uint32_t words[3] = {OP_ARGS_HEADER(OP_ARGS_TORCH, 2), forward_thread, 0};
    e->flags = OP_SCOPE_BACKWARD;
    add_block(t, e, words, 3);
}

static inline void add_step(made *m, int64_t number, uint64_t start, uint64_t end, uint32_t stepper) {
    CHECK(m->step_count < MADE_STEPS);
    m->steps[m->step_count++] = (op_step_mark){.number = number,
                                               .start = MADE_START + start,
                                               .end = end ? MADE_START + end : 0,
                                               .stepper = stepper};
}

static inline op_result *build_summed(const op_raw *raw, uint32_t count, const op_steps *steps,
                                      uint64_t most_events, uint32_t sites) {
    static op_clock_pair pairs[2] = {
        {.ticks = MADE_START, .monotonic_ns = MADE_START, .realtime_ns = 5000000000u},
        {.ticks = MADE_END, .monotonic_ns = MADE_END}};
    const op_timeline timeline = {.pairs = pairs, .count = 2};
    const op_source source = {.raw = raw,
                              .raw_count = count,
                              .timeline = &timeline,
                              .steps = steps,
                              .most_events = most_events};
    op_clock_kind = OP_CLOCK_MONOTONIC;
    op_result *r = op_result_new();
    CHECK(r != NULL);
    if (sites) {
        r->sites = calloc(sites, sizeof *r->sites);
        r->site_count = sites;
        CHECK(r->sites != NULL);
    }
    CHECK_OK(op_tree_build(&source, r));
    return r;
}

static inline op_result *build_from(const op_raw *raw, uint32_t count, const op_steps *steps) {
    return build_summed(raw, count, steps, 0, 0);
}

/* Each event inside the previous one, each with its own name. */
static inline op_result *build_tower(op_event *events, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "many %u", i);
        events[i] = (op_event){.start = MADE_START + i,
                               .end = MADE_START + 2 * count - i,
                               .name = name_id(name),
                               .kind = OP_RANGE,
                               .depth = (uint16_t)i};
    }
    const op_raw raw = {.count = count, .events = events};
    const op_steps none = {0};
    return build_from(&raw, 1, &none);
}

static inline op_result *build_at_most(made *m, uint64_t most_events) {
    op_raw raw[MADE_THREADS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < MADE_THREADS; i++) {
        const made_thread *t = &m->threads[i];
        if (t->count)
            raw[count++] = (op_raw){.thread = i,
                                    .os_tid = t->os_tid,
                                    .torch_thread = t->torch_thread,
                                    .count = t->count,
                                    .events = t->events,
                                    .arg_words = t->arg_words,
                                    .args = t->words + MADE_WORDS - t->arg_words,
                                    .args_at = 2000 + MADE_WORDS - t->arg_words};
    }
    const op_steps steps = {.marks = m->steps, .count = m->step_count};
    return build_summed(raw, count, &steps, most_events, m->sites);
}

static inline op_result *build(made *m) { return build_at_most(m, 0); }

static inline int32_t step_of(const op_result *r, const char *name) {
    return columns_of(r).step[row_of(r, name)];
}

static inline bool is_background(const op_result *r, const char *name) {
    return columns_of(r).flags[row_of(r, name)] & OP_FLAG_BACKGROUND;
}

#endif
