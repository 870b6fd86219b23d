/* The objects record_function and _RecordFunctionFast. */
#ifndef OP_RANGE_OBJECT_H
#define OP_RANGE_OBJECT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "core/record.h"

#include <stdbool.h>

typedef struct op_pyrange_entry {
    op_slot slot;
    unsigned long thread; /* Python's id of the thread that entered */
    uint32_t emitted;     /* op_emit_target bits of the tools that got it */
    bool is_handed_over;  /* something else than the exit ends it */
} op_pyrange_entry;

typedef struct op_pyrange {
    PyObject_HEAD
    PyObject *name;  /* str */
    PyObject *args;  /* str or NULL */
    uint32_t *block; /* of _RecordFunctionFast: its argument block, or NULL */
    uint32_t words;  /* of the block */
    bool is_unread;  /* the block has yet to be built from the inputs */
    uint8_t scope;
    uint32_t id;            /* 0 until the name is needed */
    uint32_t open;          /* entries in use */
    uint32_t room;          /* entries in `more` */
    op_pyrange_entry first; /* the usual case needs no allocation */
    op_pyrange_entry *more;
} op_pyrange;

#endif
