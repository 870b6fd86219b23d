/* What a step allocates and does not free, for windows that record nothing else about memory: a table
 * of the blocks in use instead of two records for each. The table is in order of time by itself,
 * whichever thread frees a block, and a long step costs no more than the blocks it has in use. */
#ifndef OP_RETAINED_H
#define OP_RETAINED_H

#include "core/record.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct op_block {
    uint64_t address; /* 0: an empty place of the table */
    int64_t bytes;
    uint64_t start;  /* ticks at the begin of the innermost record around the allocation */
    uint32_t thread; /* index of that record's thread */
} op_block;

/* May be called on any thread at any time; allocations outside of a step or record are ignored. */
void op_retained_take(uint64_t address, int64_t bytes);
void op_retained_give(uint64_t address);

void op_retained_step_begin(void);
void op_retained_step_end(void); /* keeps what it retained; does nothing if called again */
/* Blocks retained by the steps since then, by thread and start; valid until the next
 * op_retained_forget(). NULL: some could not be followed for lack of memory; sets the error. */
const op_block *op_retained_blocks(uint64_t *count);
void op_retained_forget(void);

void op_retained_lock(void); /* for fork */
void op_retained_unlock(void);

#ifdef __cplusplus
}
#endif

#endif
