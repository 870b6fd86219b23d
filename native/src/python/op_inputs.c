#include "python/op_inputs.h"

#include "core/json_out.h"
#include "python/range_parts.h"

/* ---- lists, as JSON ----------------------------------------------------------------------- */

#define ROOM ((size_t)OP_FIELDS_MAX_WORDS * 4)

/* A list being written; one longer than a block is left out. */
typedef struct json_list {
    size_t length;
    char text[ROOM];
} json_list;

static void put(json_list *list, const char *text, size_t n) {
    if (list->length + n <= ROOM)
        memcpy(list->text + list->length, text, n);
    list->length += n;
}

/* A comma, except before the first. */
static void put_next(json_list *list, Py_ssize_t at) {
    if (at)
        put(list, ", ", 2);
}

static void put_string(json_list *list, const char *text, size_t n) {
    char escaped[6 * 64];
    put(list, "\"", 1);
    if (n > ROOM)
        list->length += n;
    else
        for (size_t at = 0; at < n;) {
            size_t take = n - at < 64 ? n - at : 64;
            while (at + take < n && take > 60 && ((unsigned char)text[at + take] & 0xc0) == 0x80)
                take--; /* do not split a character */
            put(list, escaped, (size_t)(op_json_escape(escaped, text + at, take) - escaped));
            at += take;
        }
    put(list, "\"", 1);
}

/* The text's own UTF-8, or else bytes owned by `*kept`. NULL: an exception is set. */
static const char *utf8_of(PyObject *text, Py_ssize_t *n, PyObject **kept) {
    *kept = NULL;
    const char *utf8 = PyUnicode_AsUTF8AndSize(text, n);
    if (utf8 || !PyErr_ExceptionMatches(PyExc_UnicodeEncodeError))
        return utf8;
    PyErr_Clear();
    *kept = PyUnicode_AsEncodedString(text, "utf-8", "replace");
    if (!*kept)
        return NULL;
    *n = PyBytes_GET_SIZE(*kept);
    return PyBytes_AS_STRING(*kept);
}

/* str() of an object, with the prefix removed. */
static int put_str(json_list *list, PyObject *object, const char *prefix) {
    Py_ssize_t n;
    PyObject *text = PyObject_Str(object), *kept = NULL;
    const char *from = text ? utf8_of(text, &n, &kept) : NULL;
    if (from) {
        size_t skipped = strlen(prefix);
        if ((size_t)n < skipped || memcmp(from, prefix, skipped))
            skipped = 0;
        put_string(list, from + skipped, (size_t)n - skipped);
    }
    Py_XDECREF(text);
    Py_XDECREF(kept);
    return from ? 0 : -1;
}

/* The attribute; NULL without an exception if there is none. Plain numbers have none, and asking them
 * would take longer than all the rest. */
static PyObject *attribute(PyObject *object, PyObject **name, const char *text) {
    if (PyLong_CheckExact(object) || PyFloat_CheckExact(object))
        return NULL;
    if (!*name && !(*name = PyUnicode_InternFromString(text)))
        return NULL;
    PyObject *value = PyObject_GetAttr(object, *name);
    if (!value && PyErr_ExceptionMatches(PyExc_AttributeError))
        PyErr_Clear();
    return value;
}

static int put_shape(json_list *list, PyObject *item) {
    static PyObject *name;
    PyObject *shape = attribute(item, &name, "shape");
    if (!shape && PyErr_Occurred())
        return -1;
    PyObject *sizes = shape ? PySequence_Fast(shape, "a shape is a sequence") : NULL;
    int failed = shape && !sizes;
    put(list, "[", 1);
    for (Py_ssize_t i = 0; sizes && !failed && i < PySequence_Fast_GET_SIZE(sizes); i++) {
        char number[24];
        long long size = PyLong_AsLongLong(PySequence_Fast_GET_ITEM(sizes, i));
        failed = size == -1 && PyErr_Occurred();
        put_next(list, i);
        put(list, number, (size_t)snprintf(number, sizeof number, "%lld", size));
    }
    put(list, "]", 1);
    Py_XDECREF(sizes);
    Py_XDECREF(shape);
    return failed ? -1 : 0;
}

bool op_is_number(PyObject *item) { return PyLong_Check(item) || PyFloat_Check(item); }

/* As in traces: an array's dtype, "Scalar" for a number. */
static int put_type(json_list *list, PyObject *item) {
    static PyObject *name;
    PyObject *dtype = attribute(item, &name, "dtype");
    if (!dtype && PyErr_Occurred())
        return -1;
    int failed = 0;
    if (dtype && dtype != Py_None)
        failed = put_str(list, dtype, "torch.");
    else if (op_is_number(item))
        put_string(list, "Scalar", 6);
    else
        put_string(list, "", 0);
    Py_XDECREF(dtype);
    return failed;
}

static int put_number(json_list *list, PyObject *item) {
    if (op_is_number(item))
        return put_str(list, item, "");
    put_string(list, "", 0);
    return 0;
}

static int put_text(json_list *list, PyObject *item) { return put_str(list, item, ""); }

static int add_list(op_fields *out, uint32_t key, PyObject *items,
                    int (*put_item)(json_list *, PyObject *)) {
    json_list list;
    list.length = 0;
    put(&list, "[", 1);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items); i++) {
        put_next(&list, i);
        PyObject *item = Py_NewRef(PySequence_Fast_GET_ITEM(items, i));
        int failed = put_item(&list, item);
        Py_DECREF(item);
        if (failed)
            return -1;
    }
    put(&list, "]", 1);
    if (list.length <= ROOM)
        op_fields_put_text(out, key, OP_FIELD_JSON, list.text, list.length);
    return 0;
}

/* ---- the block ---------------------------------------------------------------------------- */

/* An integer beyond 64 bits is written as a double. */
static int add_int(op_fields *out, uint32_t key, PyObject *value) {
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

static int add_text(op_fields *out, uint32_t key, uint32_t type, PyObject *text) {
    Py_ssize_t n;
    PyObject *kept;
    const char *utf8 = utf8_of(text, &n, &kept);
    if (utf8)
        op_fields_put_text(out, key, type, utf8, (size_t)n);
    Py_XDECREF(kept);
    return utf8 ? 0 : -1;
}

static int add_value(op_fields *out, uint32_t key, PyObject *value) {
    if (PyBool_Check(value)) {
        op_fields_put_word(out, key, OP_FIELD_BOOL, value == Py_True);
    } else if (PyLong_Check(value)) {
        return add_int(out, key, value);
    } else if (PyFloat_Check(value)) {
        double real = PyFloat_AS_DOUBLE(value);
        uint64_t bits;
        memcpy(&bits, &real, sizeof bits);
        op_fields_put_numbers(out, key, OP_FIELD_DOUBLE, &bits, 1);
    } else if (PyUnicode_Check(value)) {
        return add_text(out, key, OP_FIELD_TEXT, value);
    }
    return 0;
}

bool op_is_list_of_str(PyObject *value) {
    if (!PyList_Check(value))
        return false;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(value); i++)
        if (!PyUnicode_Check(PyList_GET_ITEM(value, i)))
            return false;
    return true;
}

static int add_values(op_fields *out, PyObject *values) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(values, &at, &key, &value)) {
        uint32_t id;
        if (op_range_intern(key, &id) ||
            (op_is_list_of_str(value) ? add_list(out, id, value, put_text) : add_value(out, id, value)))
            return -1;
    }
    return 0;
}

static uint32_t name_id(const char *text) { return op_names_intern(text, strlen(text)); }

int op_pyop_read(op_pyrange *r) {
    op_pyop *op = (op_pyop *)r;
    op_fields fields;
    r->is_unread = false;
    op_fields_clear(&fields);
    if ((op->values && add_values(&fields, op->values)) ||
        (op->inputs && (add_list(&fields, name_id("Input Dims"), op->inputs, put_shape) ||
                        add_list(&fields, name_id("Input type"), op->inputs, put_type) ||
                        add_list(&fields, name_id("Concrete Inputs"), op->inputs, put_number))))
        return -1;
    uint32_t words = op_fields_close(&fields);
    if (!words)
        return 0;
    r->block = PyMem_Malloc(words * sizeof *r->block);
    if (!r->block) {
        PyErr_NoMemory();
        return -1;
    }
    memcpy(r->block, fields.words, words * sizeof *r->block);
    r->words = words;
    return 0;
}
