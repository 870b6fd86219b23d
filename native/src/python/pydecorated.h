/* Functions that record_function decorates. */
#ifndef OP_PYDECORATED_H
#define OP_PYDECORATED_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyType_Spec op_pydecorated_spec;
/* The result of `range(function)` for a record_function `range`; NULL: an exception is set. */
PyObject *op_pydecorate(PyObject *range, PyObject *function);

#endif
