/* The clock given to CUPTI. CUPTI wants nanoseconds, but events are recorded in ticks, whose exact rate
 * is known only later. So CUPTI gets nanoseconds by a fixed, approximate line, which is inverted to
 * recover the ticks to a nanosecond. This way CUPTI's times and events share one clock. */
#ifndef OP_CUPTI_CLOCK_H
#define OP_CUPTI_CLOCK_H

#include "core/clock.h"

typedef struct op_cupti_clock {
    op_clock_line line;
    uint64_t ticks_a_ns; /* 16.48 fixed point */
} op_cupti_clock;

static inline op_cupti_clock op_cupti_clock_through(const op_clock_pair *from,
                                                    const op_clock_pair *to) {
    op_cupti_clock c = {.line = op_clock_through(from, to)};
    if (c.line.scale == 0)
        c.line.scale = 1ull << 32;
    c.ticks_a_ns = (uint64_t)((((unsigned __int128)1 << 80) + c.line.scale - 1) / c.line.scale);
    return c;
}

static inline uint64_t op_cupti_clock_ns(const op_cupti_clock *c, uint64_t ticks) {
    return (uint64_t)op_clock_ns(&c->line, ticks);
}

static inline uint64_t op_cupti_clock_ticks(const op_cupti_clock *c, uint64_t ns) {
    __int128 product = (__int128)((int64_t)ns - c->line.base_ns) * (__int128)c->ticks_a_ns;
    return c->line.from_ticks + (uint64_t)(int64_t)(product >> 48);
}

/* The last of the several ticks in a nanosecond: a call that began in the same nanosecond as the op
 * around it began after it. */
static inline uint64_t op_cupti_clock_last_tick(const op_cupti_clock *c, uint64_t ns) {
    __int128 product = (__int128)((int64_t)ns + 1 - c->line.base_ns) * (__int128)c->ticks_a_ns;
    return c->line.from_ticks + (uint64_t)(int64_t)((product - 1) >> 48);
}

#endif
