/* Inputs of a _RecordFunctionFast, read when the op first begins in a recording: others cost
 * nothing. */
#ifndef OP_OP_INPUTS_H
#define OP_OP_INPUTS_H

#include "python/range_object.h"

typedef struct op_pyop {
    op_pyrange range;
    PyObject *inputs, *values; /* a list or tuple, and a dict; NULL for none */
} op_pyop;

/* Builds the block of the op's inputs; -1: an exception is set. */
int op_pyop_read(op_pyrange *r);
/* Which named values are kept. */
bool op_is_number(PyObject *item);
bool op_is_list_of_str(PyObject *value);

#endif
