/* The type _RecordFunctionFast. */
#ifndef OP_PYOP_H
#define OP_PYOP_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyType_Spec op_pyop_spec;
/* For the type's tp_vectorcall, which has no slot. */
PyObject *op_pyop_new(PyObject *type, PyObject *const *args, size_t nargsf, PyObject *keywords);

#endif
