/* Numbers the stacks of a result's events: equal numbers mean equal calls. */
#ifndef OP_STACK_IDS_H
#define OP_STACK_IDS_H

#include "result/result.h"

/* By event, a number for its `depth` innermost calls and their lines; 0 for none. The stack follows the
 * same rule as pytest_opprof/events/stacks.py, which renders it as text: the calls around the event and
 * those open before the window, for a backward op those of its forward op, without autograd's own entry
 * points. NULL: no memory. The caller frees it. */
uint32_t *op_stack_ids(const op_result *result, uint32_t depth);

#endif
