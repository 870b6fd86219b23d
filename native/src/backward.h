/* Backward ops, once all columns are there: their numbers, and their steps. */
#ifndef OP_BACKWARD_H
#define OP_BACKWARD_H

#include "result.h"

int op_backward_settle(const op_result *result, const op_writable *columns);

#endif
