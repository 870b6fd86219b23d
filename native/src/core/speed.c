/* How fast this processor runs right now. A loop that keeps the integer units busy takes the same time
 * within a thousandth, unless the core's other hardware thread uses those units too or the clock
 * frequency changes. Caches, memory and branches do not matter. */
#include "opprof.h"

#include "core/clock.h"

/* 30 us on a machine of 2020: long compared with reading the clock, short compared with most steps. */
enum { ROUNDS = 20000 };

uint64_t op_speed_probe(void) {
    /* Independent chains need more units than one hardware thread gets while its neighbour computes. */
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
        /* Makes the compiler treat each round's values as used. */
        __asm__ volatile("" ::"r"(a), "r"(b), "r"(c), "r"(d), "r"(e), "r"(f));
    }
    return op_clock_now(CLOCK_MONOTONIC) - began;
}
