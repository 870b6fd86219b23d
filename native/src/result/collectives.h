/* Kernels in which the ranks of a job wait for each other. */
#ifndef OP_COLLECTIVES_H
#define OP_COLLECTIVES_H

#include "opprof.h"

#include <stdbool.h>

bool op_is_collective_row(const op_columns *columns, uint64_t row);

#endif
