/* Merges Python and C calls with the ops: two trees of records become one tree of columns. */
#ifndef OP_NEST_H
#define OP_NEST_H

#include "result/result.h"

#include <stdbool.h>

typedef struct op_nest {
    uint32_t *nearest; /* by depth of calls: row + 1; 0: a call without a row */
    uint64_t rows;     /* of calls */
    op_open_call *open;
    uint32_t open_count, open_capacity;
    bool no_memory;
} op_nest;

/* Returns the parent, in the tree of calls, of a call's row. `first_row` is the first of its thread. */
int32_t op_nest_call(op_nest *nest, uint32_t depth, uint64_t row, uint64_t first_row);
/* Records a call that was open when its thread entered the window and has no row. */
void op_nest_before(op_nest *nest, uint32_t depth, op_open_call call);
/* Call this if records are missing before the one at `depth` and `at_ns`: calls that had ended by then
 * contain nothing later. */
void op_nest_skip_gap(op_nest *nest, const op_writable *w, uint32_t depth, int64_t at_ns);
/* Computes parents and self times for both trees as one. The open calls move to the result. */
int op_nest_finish(op_nest *nest, op_result *r, const op_writable *w);
void op_nest_release(op_nest *nest);

#endif
