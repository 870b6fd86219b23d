#include "python/range_parts.h"

/* ---- texts -------------------------------------------------------------------------------- */

/* Lone surrogates have no UTF-8; they become the three bytes of Python's "surrogatepass". */
int op_range_intern_odd(PyObject *text, uint32_t *id) {
    if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError))
        return -1;
    PyErr_Clear();
    PyObject *bytes = PyUnicode_AsEncodedString(text, "utf-8", "surrogatepass");
    if (!bytes)
        return -1;
    *id = op_names_intern(PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
    Py_DECREF(bytes);
    return 0;
}

#define TEXT_MAX 1024u

op_slot op_range_begin_with_text(uint32_t id, PyObject *text) {
    uint32_t words[2 + TEXT_MAX / 4] = {0};
    PyObject *bytes = PyUnicode_AsEncodedString(text, "utf-8", "replace");
    if (!bytes) {
        PyErr_Clear();
        return op_begin_unwound(id, OP_RANGE, OP_SCOPE_USER, 0, NULL, 0);
    }
    size_t n = (size_t)PyBytes_GET_SIZE(bytes);
    const char *utf8 = PyBytes_AS_STRING(bytes);
    if (n > TEXT_MAX) {
        n = TEXT_MAX;
        while (n && ((unsigned char)utf8[n] & 0xc0) == 0x80)
            n--;
    }
    uint32_t payload = 1 + (uint32_t)(n + 3) / 4;
    words[0] = OP_ARGS_HEADER(op_keeps_inputs() ? OP_ARGS_INPUT : OP_ARGS_TEXT, payload);
    words[1] = (uint32_t)n;
    memcpy(words + 2, utf8, n);
    Py_DECREF(bytes);
    return op_begin_unwound(id, OP_RANGE, OP_SCOPE_USER, 0, words, 1 + payload);
}

/* ---- endings ---------------------------------------------------------------------------- */

static const char slot_name[] = "pytest_opprof.op_slot";

static void free_slot(PyObject *capsule) { PyMem_Free(PyCapsule_GetPointer(capsule, slot_name)); }

static PyObject *end(PyObject *capsule, PyObject *const *args, Py_ssize_t n) {
    (void)args;
    (void)n;
    op_slot *slot = PyCapsule_GetPointer(capsule, slot_name);
    if (!slot)
        return NULL;
    op_slot ended = *slot;
    slot->event = NULL;
    op_end(&ended);
    Py_RETURN_NONE;
}

static PyMethodDef end_definition = {"end", (PyCFunction)(void (*)(void))end, METH_FASTCALL,
                                     "End the range, once."};

PyObject *op_ending_new(const op_slot *slot) {
    op_slot *kept = PyMem_Malloc(sizeof *kept);
    if (!kept)
        return PyErr_NoMemory();
    *kept = *slot;
    PyObject *capsule = PyCapsule_New(kept, slot_name, free_slot);
    if (!capsule) {
        PyMem_Free(kept);
        return NULL;
    }
    PyObject *ending = PyCFunction_New(&end_definition, capsule);
    Py_DECREF(capsule);
    return ending;
}
