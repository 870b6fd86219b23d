/* FLOPs of the rows of a result. */
#ifndef OP_FLOPS_H
#define OP_FLOPS_H

#include "result/result.h"

/* Room for one value per row, -1 for none. NULL: no memory. */
int64_t *op_flops_prepare(const op_result *result);
/* Takes ownership of the filled-in values; from then on the result's rows have FLOPs. */
int op_flops_keep(op_result *result, int64_t *told);

#endif
