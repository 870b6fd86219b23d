/* Ticks: the processor's time-stamp counter if the kernel trusts it, else nanoseconds of
 * CLOCK_MONOTONIC. clock.c calibrates them against CLOCK_MONOTONIC. */
#ifndef OP_CLOCK_H
#define OP_CLOCK_H

#include <stdint.h>
#include <time.h>

enum op_clock_kind { OP_CLOCK_MONOTONIC = 0, OP_CLOCK_COUNTER = 1 };

#ifdef __cplusplus
extern "C" {
#endif

extern int op_clock_kind; /* set once, before the first window */

static inline uint64_t op_clock_now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t op_ticks(void) {
#if defined(__x86_64__)
    if (__builtin_expect(op_clock_kind, OP_CLOCK_COUNTER))
        return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    if (__builtin_expect(op_clock_kind, OP_CLOCK_COUNTER)) {
        uint64_t ticks;
        __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
        return ticks;
    }
#endif
    return op_clock_now(CLOCK_MONOTONIC);
}

/* One instant on three clocks. */
typedef struct op_clock_pair {
    uint64_t ticks, monotonic_ns, realtime_ns;
} op_clock_pair;

/* A line through two pairs: nanoseconds since the epoch as (ticks - from) * scale / 2^32 + base. */
typedef struct op_clock_line {
    uint64_t from_ticks;
    uint64_t scale; /* nanoseconds per tick, 32.32 fixed point */
    int64_t base_ns;
} op_clock_line;

void op_clock_choose(void);
void op_clock_calibrate(op_clock_pair *out);
op_clock_line op_clock_through(const op_clock_pair *from, const op_clock_pair *to);
const char *op_clock_name(void);

static inline int64_t op_clock_ns(const op_clock_line *line, uint64_t ticks) {
    __int128 product = (__int128)(int64_t)(ticks - line->from_ticks) * (__int128)line->scale;
    return (int64_t)(product >> 32) + line->base_ns;
}

#ifdef __cplusplus
}
#endif
#endif
