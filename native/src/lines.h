/* From ticks to nanoseconds along a window: the lines between its clock pairs, joined end to end. */
#ifndef OP_LINES_H
#define OP_LINES_H

#include "clock.h"
#include "steps.h"

typedef struct op_lines {
    op_clock_line *lines; /* one between each two pairs; the last also beyond */
    uint32_t count;
} op_lines;

int op_lines_make(op_lines *out, const op_timeline *pairs);
void op_lines_free(op_lines *lines);

/* From the window's start. `at` is the line of the last time asked for, to begin with 0: times are
 * asked for in order, or nearly. */
static inline int64_t op_lines_ns(const op_lines *l, uint32_t *at, uint64_t ticks) {
    while (*at + 1 < l->count && ticks >= l->lines[*at + 1].from_ticks)
        ++*at;
    return op_clock_ns(&l->lines[*at], ticks);
}

#endif
