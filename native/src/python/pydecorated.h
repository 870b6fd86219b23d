/* Functions that record_function decorates. */
#ifndef OP_PYDECORATED_H
#define OP_PYDECORATED_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyType_Spec op_pydecorated_spec;
/* What `range(function)` is, `range` being a record_function; NULL: an exception is set. */
PyObject *op_pydecorate(PyObject *range, PyObject *function);

#endif
