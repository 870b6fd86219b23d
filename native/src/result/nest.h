/* Python and C calls among the ops: two trees of records become one tree of columns. */
#ifndef OP_NEST_H
#define OP_NEST_H

#include "result/result.h"

#include <stdbool.h>

typedef struct op_nest {
    uint32_t *nearest; /* by depth of calls: row + 1; 0: a call that is not a row */
    uint64_t rows;     /* of calls */
    op_open_call *open;
    uint32_t open_count, open_capacity;
    bool no_memory;
} op_nest;

/* A call's row; its parent in the tree of calls. `first_row` is the first of its thread. */
int32_t op_nest_call(op_nest *nest, uint32_t depth, uint64_t row, uint64_t first_row);
/* A call that was open when its thread came to the window: no row. */
void op_nest_before(op_nest *nest, uint32_t depth, op_open_call call);
/* What comes next, that deep and then, is not what came next: calls that had ended are around none of
 * it. */
void op_nest_skip_gap(op_nest *nest, const op_writable *w, uint32_t depth, int64_t at_ns);
/* Parents and self times of both trees as one. The open calls go to the result. */
int op_nest_finish(op_nest *nest, op_result *r, const op_writable *w);
void op_nest_release(op_nest *nest);

#endif
