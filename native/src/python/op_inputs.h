/* What a _RecordFunctionFast was given. It is read when the op first begins in a recording: nobody pays
 * for what nobody records. */
#ifndef OP_OP_INPUTS_H
#define OP_OP_INPUTS_H

#include "python/range_object.h"

typedef struct op_pyop {
    op_pyrange range;
    PyObject *inputs, *values; /* a list or tuple, and a dict; NULL for none */
} op_pyop;

/* Makes the block of what the op was given; -1: an exception is set. */
int op_pyop_read(op_pyrange *r);
/* What is kept of named values. */
bool op_is_number(PyObject *item);
bool op_is_list_of_str(PyObject *value);

#endif
