#include "python/pyname.h"

#include "core/names.h"
#include "python/pyframe.h"

#include <stdbool.h>
#include <string.h>

#define CODES 4096u
#define METHODS 1024u
#define LINES 256u

/* An entry owns its object, because a freed address may be reused by another object. Modules are not
 * owned: they hold tensors, which the program may want to free. */
typedef struct code_name {
    PyCodeObject *code;
    uint32_t id;
} code_name;

typedef struct method_name {
    const PyMethodDef *method;
    PyTypeObject *type; /* of the object it is called on */
    uint32_t id;
} method_name;

static code_name codes[CODES];
static method_name methods[METHODS];
static PyObject *prefixes, *hidden;
static PyCodeObject *module_code;
static PyObject *modules;      /* ids of their names */
static PyObject *class_counts; /* of named modules */

static size_t place_of(const void *pointer, size_t places) {
    uintptr_t bits = (uintptr_t)pointer >> 4;
    return (bits ^ bits >> 12) & (places - 1);
}

/* Steals `text`; NULL means there was no memory for it. A path that is not UTF-8 has lone surrogates,
 * which are encoded as by "surrogatepass". */
static uint32_t interned_in(PyObject *text, uint32_t group) {
    PyObject *bytes = text ? PyUnicode_AsEncodedString(text, "utf-8", "surrogatepass") : NULL;
    uint32_t id = OP_NAME_OVERFLOW;
    if (bytes)
        id = op_names_intern_in(PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes), group);
    Py_XDECREF(bytes);
    Py_XDECREF(text);
    return id;
}

static uint32_t interned(PyObject *text) { return interned_in(text, OP_NAME_NONE); }

/* ---- Python functions ------------------------------------------------------------------- */

/* A path as torch writes it: without the folder from which it is imported. */
static PyObject *short_path(PyObject *path) {
    Py_ssize_t length = PyUnicode_GetLength(path);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(prefixes); i++) {
        PyObject *prefix = PyTuple_GET_ITEM(prefixes, i);
        if (PyUnicode_Tailmatch(path, prefix, 0, PY_SSIZE_T_MAX, -1) == 1)
            return PyUnicode_Substring(path, PyUnicode_GetLength(prefix), length);
    }
    return Py_NewRef(path);
}

/* A call has torch's name. Its group is the function, wherever in the file it is. */
static uint32_t name_of_code(PyCodeObject *code) {
    if (PyUnicode_Tailmatch(code->co_filename, hidden, 0, PY_SSIZE_T_MAX, -1) == 1)
        return OP_NAME_NONE;
    PyObject *path = short_path(code->co_filename), *text = NULL;
    uint32_t group = OP_NAME_OVERFLOW;
    if (path) {
        group = interned(PyUnicode_FromFormat("%U: %U", path, code->co_qualname));
        text = PyUnicode_FromFormat("%U(%d): %U", path, code->co_firstlineno, code->co_name);
    }
    Py_XDECREF(path);
    return interned_in(text, group);
}

/* Whatever happens here, the user's function continues with the exception it had. */
uint32_t op_pyname_of_code(PyCodeObject *code) {
    code_name *entry = &codes[place_of(code, CODES)];
    if (__builtin_expect(entry->code == code, 1))
        return entry->id;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    uint32_t id = name_of_code(code);
    PyErr_Restore(type, value, traceback);
    Py_XSETREF(entry->code, (PyCodeObject *)Py_NewRef(code));
    entry->id = id;
    return id;
}

/* ---- C functions ------------------------------------------------------------------------ */

/* Like repr() but without an address: `append` of all lists has one name. */
static uint32_t name_of_method(const PyMethodDef *method, PyTypeObject *type) {
    if (!type)
        return interned(PyUnicode_FromFormat("<built-in function %s>", method->ml_name));
    if (strncmp(type->tp_name, "pytest_opprof.", 14) == 0)
        return OP_NAME_NONE;
    return interned(
        PyUnicode_FromFormat("<built-in method %s of %s object>", method->ml_name, type->tp_name));
}

uint32_t op_pyname_of_method(const PyMethodDef *method, PyObject *self) {
    PyTypeObject *type = self && !PyModule_Check(self) ? Py_TYPE(self) : NULL;
    method_name *entry = &methods[place_of(method, METHODS)];
    if (__builtin_expect(entry->method == method && entry->type == type, 1))
        return entry->id;
    PyObject *kind, *value, *traceback;
    PyErr_Fetch(&kind, &value, &traceback);
    uint32_t id = name_of_method(method, type);
    PyErr_Restore(kind, value, traceback);
    Py_XINCREF(type);
    PyTypeObject *before = entry->type;
    *entry = (method_name){method, type, id};
    Py_XDECREF(before);
    return id;
}

/* ---- modules ---------------------------------------------------------------------------- */

int op_pyname_is_module_call(const PyCodeObject *code) { return module_code && code == module_code; }

/* An object has one weak reference without a callback, so that of a freed object tells the object from
 * a later one at its address. `numbers`: (this reference, a number) by address. -1: it has none. */
static long number_of(PyObject *numbers, PyObject *object) {
    PyObject *address = PyLong_FromVoidPtr(object), *reference = PyWeakref_NewRef(object, NULL);
    PyObject *entry = address && reference ? PyDict_GetItemWithError(numbers, address) : NULL;
    long number = -1;
    if (entry && PyTuple_GET_ITEM(entry, 0) == reference)
        number = PyLong_AsLong(PyTuple_GET_ITEM(entry, 1));
    PyErr_Clear();
    Py_XDECREF(address);
    Py_XDECREF(reference);
    return number;
}

static bool keep_number(PyObject *numbers, PyObject *object, long number) {
    PyObject *address = PyLong_FromVoidPtr(object), *reference = PyWeakref_NewRef(object, NULL);
    PyObject *entry = address && reference ? Py_BuildValue("(Ol)", reference, number) : NULL;
    bool is_kept = entry && PyDict_SetItem(numbers, address, entry) == 0;
    Py_XDECREF(address);
    Py_XDECREF(reference);
    Py_XDECREF(entry);
    return is_kept;
}

/* `nn.Module: Linear_0` is the first Linear called in the window. */
static uint32_t name_of_module(PyObject *module) {
    PyObject *cls = (PyObject *)Py_TYPE(module), *name = PyType_GetName((PyTypeObject *)cls);
    long number = number_of(class_counts, cls) + 1;
    uint32_t id = OP_NAME_OVERFLOW;
    if (name && keep_number(class_counts, cls, number))
        id = interned(PyUnicode_FromFormat("nn.Module: %U_%ld", name, number));
    Py_XDECREF(name);
    keep_number(modules, module, id);
    return id;
}

uint32_t op_pyname_of_module(PyObject *module) {
    PyObject *kind, *value, *traceback;
    PyErr_Fetch(&kind, &value, &traceback);
    long known = number_of(modules, module);
    uint32_t id = known < 0 ? name_of_module(module) : (uint32_t)known;
    PyErr_Restore(kind, value, traceback);
    return id;
}

/* ---- lines ------------------------------------------------------------------------------ */

/* Thread-local, so no lock is needed. The line table and the mark distinguish a code object from an
 * earlier one at the same address. */
typedef struct line_entry {
    const PyCodeObject *code;
    const PyObject *table;
    uint64_t mark;
    int offset;
    uint16_t line;
} line_entry;

static __thread line_entry lines[LINES];

uint16_t op_pyline(PyCodeObject *code, int offset) {
    line_entry *entry = &lines[(place_of(code, LINES) + (size_t)offset) & (LINES - 1)];
    uint64_t mark = op_code_mark(code);
    bool is_known = entry->code == code && entry->offset == offset &&
                    entry->table == code->co_linetable && entry->mark == mark;
    if (__builtin_expect(is_known, 1))
        return entry->line;
    int line = PyCode_Addr2Line(code, offset < 0 ? 0 : offset);
    *entry = (line_entry){code, code->co_linetable, mark, offset, 0};
    entry->line = line > 0 && line <= UINT16_MAX ? (uint16_t)line : 0;
    return entry->line;
}

/* ---- all of it -------------------------------------------------------------------------- */

int op_pynames_open(PyObject *paths, PyObject *folder, PyObject *code) {
    op_pynames_close();
    modules = PyDict_New();
    class_counts = PyDict_New();
    if (!modules || !class_counts)
        return -1;
    prefixes = Py_NewRef(paths);
    hidden = Py_NewRef(folder);
    module_code = code == Py_None ? NULL : (PyCodeObject *)Py_NewRef(code);
    return 0;
}

void op_pynames_close(void) {
    for (size_t i = 0; i < CODES; i++)
        Py_CLEAR(codes[i].code);
    for (size_t i = 0; i < METHODS; i++) {
        methods[i].method = NULL;
        Py_CLEAR(methods[i].type);
    }
    Py_CLEAR(prefixes);
    Py_CLEAR(hidden);
    Py_CLEAR(module_code);
    Py_CLEAR(modules);
    Py_CLEAR(class_counts);
}
