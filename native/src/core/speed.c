/* How fast this processor runs just now. A loop that keeps its integer units busy takes the same time
 * again and again, within a thousandth, unless the core's other hardware thread wants those units too
 * or the clock has another frequency: caches, memory and branches have no part in it. */
#include "opprof.h"

#include "core/clock.h"

/* 30 us on a machine of 2020: long beside the reading of a clock, short beside most steps. */
enum { ROUNDS = 20000 };

uint64_t op_speed_probe(void) {
    /* Chains that wait for nothing but their own last link: together they ask for more than one
     * hardware thread gets while its neighbour computes. */
    uint64_t a = 1, b = 2, c = 3, d = 4, e = 5, f = 6;
    uint64_t began = op_clock_now(CLOCK_MONOTONIC);
    for (uint64_t i = 0; i < ROUNDS; i++) {
        a = a * 6364136223846793005u + 1;
        b ^= b << 13;
        b ^= b >> 7;
        c += a >> 3;
        d ^= c * 3;
        e += (d << 1) + i;
        f = f * 31 + e;
        /* The compiler must take each round's values for used. */
        __asm__ volatile("" ::"r"(a), "r"(b), "r"(c), "r"(d), "r"(e), "r"(f));
    }
    return op_clock_now(CLOCK_MONOTONIC) - began;
}
