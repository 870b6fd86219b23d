/* What a step takes and does not give back, where a window asks nothing else of memory: a table of the
 * blocks that are in use, in place of two records for each. It is in order of time by itself, whichever
 * thread gives a block back, and a long step costs no more than what it has in use. */
#ifndef OP_RETAINED_H
#define OP_RETAINED_H

#include "core/record.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct op_block {
    uint64_t address; /* 0: an empty place of the table */
    int64_t bytes;
    uint64_t start;  /* of the innermost record around it when it was taken, in ticks */
    uint32_t thread; /* of that record */
} op_block;

/* Any thread, at any time: what was taken outside of a step, or of any record, nobody asks for. */
void op_retained_take(uint64_t address, int64_t bytes);
void op_retained_give(uint64_t address);

void op_retained_step_begin(void);
void op_retained_step_end(void); /* what it left counts; again: nothing happens */
/* Of the steps since then, by thread and start. NULL: there was no memory to follow all, which is the
 * error that is set. It is there until the next op_retained_forget(). */
const op_block *op_retained_blocks(uint64_t *count);
void op_retained_forget(void);

void op_retained_lock(void); /* for fork */
void op_retained_unlock(void);

#ifdef __cplusplus
}
#endif

#endif
