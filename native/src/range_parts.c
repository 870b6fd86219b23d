#include "range_parts.h"

/* ---- texts -------------------------------------------------------------------------------- */

/* Lone surrogates have no UTF-8; they pass as the three bytes that Python's "surrogatepass" makes. */
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

/* ---- named values ------------------------------------------------------------------------- */

/* What does not fit into 64 bits goes as a number with a fraction. */
static int put_int(op_fields *out, uint32_t key, PyObject *value) {
    int overflow;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    uint64_t bits;
    if (!overflow) {
        bits = (uint64_t)number;
        op_fields_put_numbers(out, key, OP_FIELD_SIGNED, &bits, 1);
        return PyErr_Occurred() ? -1 : 0;
    }
    double real = PyLong_AsDouble(value);
    if (real == -1 && PyErr_Occurred())
        return -1;
    memcpy(&bits, &real, sizeof bits);
    op_fields_put_numbers(out, key, OP_FIELD_DOUBLE, &bits, 1);
    return 0;
}

static int put_text(op_fields *out, uint32_t key, uint32_t type, PyObject *text) {
    PyObject *bytes = PyUnicode_AsEncodedString(text, "utf-8", "replace");
    if (!bytes)
        return -1;
    op_fields_put_text(out, key, type, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
    Py_DECREF(bytes);
    return 0;
}

static int put_value(op_fields *out, uint32_t key, PyObject *value) {
    if (PyBool_Check(value)) {
        op_fields_put_word(out, key, OP_FIELD_BOOL, value == Py_True);
    } else if (PyLong_Check(value)) {
        return put_int(out, key, value);
    } else if (PyFloat_Check(value)) {
        double real = PyFloat_AS_DOUBLE(value);
        uint64_t bits;
        memcpy(&bits, &real, sizeof bits);
        op_fields_put_numbers(out, key, OP_FIELD_DOUBLE, &bits, 1);
    } else if (PyUnicode_Check(value)) {
        return put_text(out, key, OP_FIELD_TEXT, value);
    }
    return 0;
}

int op_fields_add_dict(op_fields *out, PyObject *dict, int are_json) {
    PyObject *key, *value;
    Py_ssize_t at = 0, length;
    while (PyDict_Next(dict, &at, &key, &value)) {
        const char *text = PyUnicode_AsUTF8AndSize(key, &length);
        if (!text)
            return -1;
        uint32_t id = op_names_intern(text, (size_t)length);
        if (are_json ? put_text(out, id, OP_FIELD_JSON, value) : put_value(out, id, value))
            return -1;
    }
    return 0;
}
