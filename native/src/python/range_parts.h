/* Common parts of all ranges made in Python. */
#ifndef OP_RANGE_PARTS_H
#define OP_RANGE_PARTS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "core/fields.h"
#include "core/names.h"
#include "core/record.h"
#include "sources/call.h"
#include "sources/counters.h"
#include "sources/emit.h"
#include "sources/unwinding.h"

int op_range_intern_odd(PyObject *text, uint32_t *id); /* for a text that is not UTF-8 */

/* The name's id; -1: an exception is set. */
static inline int op_range_intern(PyObject *text, uint32_t *id) {
    Py_ssize_t length;
    const char *utf8 = PyUnicode_AsUTF8AndSize(text, &length);
    if (!utf8)
        return op_range_intern_odd(text, id);
    *id = op_names_intern(utf8, (size_t)length);
    return 0;
}

/* Emits a range to the currently active tools. Returns which, for the matching end. */
static inline uint32_t op_range_emit(uint32_t id) {
    uint32_t targets = op_emits();
    uint32_t length;
    if (targets)
        op_emit_push_to(targets, op_names_text(id, &length));
    return targets;
}

/* Every range calls these: after its begin, and to end it. */
static inline void op_range_note(const op_slot *slot) {
    op_note_line(slot, OP_CALLED_BY_PYTHON);
    if (__builtin_expect(op_counts() != 0, 0))
        op_count_begin(slot);
}

static inline void op_range_end(const op_slot *slot) {
    if (__builtin_expect(op_counts() != 0, 0))
        op_count_end(slot);
    op_end(slot);
}

/* Begins a range with a text, cut to what a trace viewer shows. */
op_slot op_range_begin_with_text(uint32_t id, PyObject *text);
/* A callable that ends the record once, with any arguments and on any thread. */
PyObject *op_ending_new(const op_slot *slot);

#endif
