/* Converts ticks to nanoseconds along a window, by lines between its clock pairs, joined end to end. */
#ifndef OP_TICK_MAP_H
#define OP_TICK_MAP_H

#include "core/clock.h"
#include "core/steps.h"

typedef struct op_tick_map {
    op_clock_line *lines; /* one between each two pairs; the last one continues */
    uint32_t count;
} op_tick_map;

int op_tick_map_make(op_tick_map *out, const op_timeline *pairs);
void op_tick_map_free(op_tick_map *lines);

/* Since the window's start. `at`, initially 0, is the line last used: lookups are nearly in order. */
static inline int64_t op_tick_map_ns(const op_tick_map *l, uint32_t *at, uint64_t ticks) {
    while (*at + 1 < l->count && ticks >= l->lines[*at + 1].from_ticks)
        ++*at;
    return op_clock_ns(&l->lines[*at], ticks);
}

#endif
