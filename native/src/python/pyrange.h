/* record_function: the type. */
#ifndef OP_PYRANGE_H
#define OP_PYRANGE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "core/record.h"

#include <stdbool.h>

typedef struct op_pyrange_entry {
    op_slot slot;
    unsigned long thread; /* Python's number of the thread that entered */
    uint32_t emitted;     /* to other tools: op_emit_target */
    bool is_handed_over;  /* what ends it is not the exit */
} op_pyrange_entry;

typedef struct op_pyrange {
    PyObject_HEAD
    PyObject *name;  /* str */
    PyObject *args;  /* str or NULL */
    uint32_t *block; /* of _RecordFunctionFast: its argument block, or NULL */
    uint32_t words;  /* of the block */
    bool is_unread;  /* the block is to be made of what it was given */
    uint8_t scope;
    uint32_t id;            /* 0 until the name was needed */
    uint32_t open;          /* entries in use */
    uint32_t room;          /* entries in `more` */
    op_pyrange_entry first; /* the usual case needs no allocation */
    op_pyrange_entry *more;
} op_pyrange;

extern PyType_Spec op_pyrange_spec;
/* For the type's tp_vectorcall, which has no slot. */
PyObject *op_pyrange_new(PyObject *type, PyObject *const *args, size_t nargsf, PyObject *keywords);
/* The general way, by the type's own __new__ and __init__. */
PyObject *op_pyrange_make(PyTypeObject *type, PyObject *const *args, Py_ssize_t n, PyObject *keywords);
/* What __init__ does; `args` is NULL or None for none. -1: an exception is set. */
int op_pyrange_set(op_pyrange *r, PyObject *name, PyObject *args);
void op_pyrange_dealloc(PyObject *self);

#endif
