/* Rows that are settled together: all rows of a result, or those that a fold holds at a time. */
#ifndef OP_SEGMENT_H
#define OP_SEGMENT_H

#include "result/result.h"

#include <stdbool.h>

/* `state` is by row, 0 for a new one: what is known about the rows inside it. A row in `is_open` stays,
 * because more rows inside it will follow. */
typedef struct op_segment {
    const op_result *r;
    const op_writable *w;
    uint64_t count;
    uint64_t first_new; /* earlier rows stayed from the last segment */
    uint8_t *state;
    const uint8_t *is_open; /* NULL: none is */
} op_segment;

enum op_row_state {
    OP_RAN_VIEWS = 1,
    OP_RAN_OTHERS = 2,
    OP_RAN_VIEW_NODE = 4,
    OP_ROW_MOVED = 8,
    OP_ROW_INHERITS = 16 /* its call site */
};

static inline bool op_stays(const op_segment *s, uint64_t row) { return s->is_open && s->is_open[row]; }

#endif
