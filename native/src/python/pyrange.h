/* The type record_function. */
#ifndef OP_PYRANGE_H
#define OP_PYRANGE_H

#include "python/range_object.h"

extern PyType_Spec op_pyrange_spec;
/* For the type's tp_vectorcall, which has no slot. */
PyObject *op_pyrange_new(PyObject *type, PyObject *const *args, size_t nargsf, PyObject *keywords);
/* The general case, by the type's own __new__ and __init__. */
PyObject *op_pyrange_make(PyTypeObject *type, PyObject *const *args, Py_ssize_t n, PyObject *keywords);
/* Implements __init__; `args` is NULL or None if there are none. -1: an exception is set. */
int op_pyrange_set(op_pyrange *r, PyObject *name, PyObject *args);
void op_pyrange_dealloc(PyObject *self);

#endif
