/* The forward op of each backward op: the arrows of a trace. */
#ifndef OP_FLOWS_H
#define OP_FLOWS_H

#include "result/result.h"

typedef struct op_flows {
    uint32_t *of_row; /* number of the arrow that begins or ends at the row, from 1; 0: none */
    uint32_t count;
} op_flows;

int op_flows_find(op_flows *out, const op_result *result); /* without arrows `of_row` is NULL */

#endif
