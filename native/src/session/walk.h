/* Turns the records of each thread, which are in preorder, into rows. */
#ifndef OP_WALK_H
#define OP_WALK_H

#include "core/tick_map.h"
#include "result/nest.h"
#include "result/result.h"
#include "session/fold.h"

#include <stdbool.h>

typedef struct op_walk {
    const op_source *source;
    op_result *result;
    op_writable w;
    op_tick_map time;
    uint32_t line;
    uint32_t arg_base;
    uint64_t row;
    uint64_t last;     /* 1 + row of the last event that is not a CUDA call */
    uint16_t depth;    /* and its depth */
    uint32_t *nearest; /* by depth: 1 + row of a possible parent, at that depth or below; 0: none */
    uint32_t step;     /* 1 + the last step that began before the event */
    bool takes_part;
    bool no_memory;
    const op_block *block, *blocks_end; /* the thread's retained blocks that are left */
    op_nest calls;
    uint64_t cuda_row, cuda_end; /* the last CUDA call of the thread, and its end in ticks */
    uint64_t cuda_args;          /* word offset of CUDA's argument blocks */
    op_fold *fold;               /* NULL: all rows are kept */
    bool cannot_fold;            /* there are records that need rows */
} op_walk;

int op_walk_threads(op_walk *k);

#endif
