/* Sums of a window that has more events than anybody can look at: rows are made, summed up and let go,
 * so that memory is bounded by how many names and paths there are, and not by how much ran. What would
 * be read of the rows later is not there: only ops and ranges can be folded, without their inputs. */
#ifndef OP_FOLD_H
#define OP_FOLD_H

#include "result/backward.h"
#include "result/called_from.h"
#include "result/group.h"
#include "result/paths.h"

typedef struct op_fold {
    op_grouping groups;
    op_tracing paths;
    op_numbers numbers;
    op_calling calling;
    op_segment rows;
    uint8_t *state, *is_open;
    uint32_t *place; /* by row: where it moves */
    uint64_t room;   /* rows that the above hold */
    uint64_t most;   /* rows at a time, and some more */
    bool counts;     /* the first of two walks only finds the steps of autograd's numbers */
} op_fold;

int op_fold_open(op_fold *f, op_result *r, op_writable *w, uint64_t most);
/* Before a record at `depth`, which `nearest` has the rows around of (tree.c), once there are `most`
 * rows: sums up those that have ended. */
int op_fold_rows(op_fold *f, uint64_t *count, uint32_t *nearest, uint32_t depth);
/* All that are left: a thread's last record is read. */
int op_fold_thread(op_fold *f, uint64_t *count, uint32_t *nearest);
/* Between the walks. */
void op_fold_begin_counting(op_fold *f);
/* The result has the sums, and no rows. */
int op_fold_finish(op_fold *f);
void op_fold_release(op_fold *f);

#endif
