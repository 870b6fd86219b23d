/* Pseudo-random numbers, the same from the same state. */
#ifndef CHANCE_H
#define CHANCE_H

#include <stdint.h>

static uint64_t random_state = 88172645463325252u; /* never 0 */

static inline uint32_t below(uint32_t bound) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return bound ? (uint32_t)(random_state >> 11) % bound : 0;
}

#endif
