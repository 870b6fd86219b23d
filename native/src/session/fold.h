/* Sums of a window with too many events to look at: rows are built, summed up and discarded, so memory
 * depends on the number of names and paths, not on how much ran. Details of rows are lost, so only ops
 * and ranges can be folded, without their inputs. */
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
    uint32_t *place; /* by row: its new index */
    uint64_t room;   /* capacity in rows */
    uint64_t most;   /* rows at a time, or slightly more */
    bool counts; /* false in the first of two walks, which only finds the steps of autograd's numbers */
} op_fold;

int op_fold_open(op_fold *f, op_result *r, op_writable *w, uint64_t most);
/* Before a record at `depth`: once there are `most` rows, sums up those that have ended. `nearest` has
 * the rows around the record (walk.h). */
int op_fold_rows(op_fold *f, uint64_t *count, uint32_t *nearest, uint32_t depth);
/* Sums up all remaining rows, after a thread's last record. */
int op_fold_thread(op_fold *f, uint64_t *count, uint32_t *nearest);
/* Call this between the two walks. */
void op_fold_begin_counting(op_fold *f);
/* Moves the sums to the result, which has no rows. */
int op_fold_finish(op_fold *f);
void op_fold_release(op_fold *f);

#endif
