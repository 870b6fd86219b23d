/* Module state: types, and functions of other modules that it calls. */
#ifndef OP_MODULE_STATE_H
#define OP_MODULE_STATE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

typedef struct op_fast {
    PyTypeObject *range, *op, *decorated;
    PyObject *decorate;       /* capture.ranges.decorate, once needed */
    PyObject *end_with;       /* capture.futures.end_with, once needed */
    PyObject *update_wrapper; /* functools.update_wrapper, once needed */
} op_fast;

extern struct PyModuleDef op_fast_definition; /* fast.c */
/* State of the module that defines the type or one of its bases; NULL: an exception is set. */
op_fast *op_fast_of(PyTypeObject *type);
/* A function of a module, looked up once and cached in `kept`, which owns it; NULL: an exception is
 * set. */
PyObject *op_fast_function(PyObject **kept, const char *module_name, const char *name);

#endif
