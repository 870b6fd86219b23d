/* _RecordFunctionFast: the type. */
#ifndef OP_PYOP_H
#define OP_PYOP_H

#include "python/pyrange.h"

extern PyType_Spec op_pyop_spec;
/* For the type's tp_vectorcall, which has no slot. */
PyObject *op_pyop_new(PyObject *type, PyObject *const *args, size_t nargsf, PyObject *keywords);
/* Makes the block of what the op was given; -1: an exception is set. */
int op_pyop_read(op_pyrange *r);

#endif
