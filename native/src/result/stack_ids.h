/* Stacks of a result's events as numbers: equal numbers, equal calls. */
#ifndef OP_STACK_IDS_H
#define OP_STACK_IDS_H

#include "result/result.h"

/* By event the number of its `depth` innermost calls and the lines they were at, 0 for none. The
 * stack of an event is that of pytest_opprof/events/stacks.py, which says it in words: the calls
 * around it and those that were open before the window, of a backward op those of its forward op,
 * and none of autograd's own entry points. NULL: no memory. The caller frees it. */
uint32_t *op_stack_ids(const op_result *result, uint32_t depth);

#endif
