#include "python/pyop.h"

#include "python/op_inputs.h"
#include "python/pyrange.h"

static int warn_of_others(PyObject *name, PyObject *values) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(values, &at, &key, &value))
        if (!op_is_number(value) && !PyUnicode_Check(value) && !op_is_list_of_str(value) &&
            PyErr_WarnFormat(
                PyExc_UserWarning, 1,
                "%U: the value of %R is left out: it is %.100s, not a number, string or list of "
                "strings",
                name, key, Py_TYPE(value)->tp_name))
            return -1;
    return 0;
}

static int set_given(op_pyop *op, PyObject *name, PyObject *inputs, PyObject *values) {
    op->range.scope = 0;
    if (op_pyrange_set(&op->range, name, NULL))
        return -1;
    PyObject *items = NULL, *dict = NULL;
    if (inputs && inputs != Py_None &&
        !(items = PySequence_Fast(inputs, "input_values: a list or tuple is needed")))
        return -1;
    if (values && values != Py_None) {
        dict = PyDict_Check(values) ? Py_NewRef(values) : PyDict_New();
        if (!dict || (dict != values && PyDict_Update(dict, values)) || warn_of_others(name, dict)) {
            Py_XDECREF(items);
            Py_XDECREF(dict);
            return -1;
        }
    }
    if (items && !PySequence_Fast_GET_SIZE(items))
        Py_CLEAR(items);
    Py_XSETREF(op->inputs, items);
    Py_XSETREF(op->values, dict);
    PyMem_Free(op->range.block);
    op->range.block = NULL;
    op->range.words = 0;
    op->range.is_unread = items || dict;
    return 0;
}

static int Op_init(PyObject *self, PyObject *args, PyObject *kwargs) {
    static char *keywords[] = {"name", "input_values", "keyword_values", NULL};
    PyObject *name, *inputs = NULL, *values = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OO:_RecordFunctionFast", keywords, &name, &inputs,
                                     &values))
        return -1;
    return set_given((op_pyop *)self, name, inputs, values);
}

PyObject *op_pyop_new(PyObject *type, PyObject *const *args, size_t nargsf, PyObject *keywords) {
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    PyTypeObject *cls = (PyTypeObject *)type;
    if (n < 1 || n > 3 || keywords)
        return op_pyrange_make(cls, args, n, keywords);
    PyObject *self = cls->tp_alloc(cls, 0);
    if (self && set_given((op_pyop *)self, args[0], n > 1 ? args[1] : NULL, n > 2 ? args[2] : NULL))
        Py_CLEAR(self);
    return self;
}

static int Op_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((op_pyop *)self)->inputs);
    Py_VISIT(((op_pyop *)self)->values);
    return 0;
}

static int Op_clear(PyObject *self) {
    Py_CLEAR(((op_pyop *)self)->inputs);
    Py_CLEAR(((op_pyop *)self)->values);
    return 0;
}

static void Op_dealloc(PyObject *self) {
    PyObject_GC_UnTrack(self);
    Op_clear(self);
    op_pyrange_dealloc(self);
}

PyDoc_STRVAR(
    Op_doc,
    "RecordFunctionFast(name, input_values=None, keyword_values=None)\n--\n\n"
    "A range that counts as an op, not as a user's annotation, such as torch.compile's code "
    "launches.\n\n"
    "Args:\n"
    "    name: The op's name.\n"
    "    input_values: The op's inputs. Numbers, and the shapes and types of arrays and tensors,\n"
    "        are recorded.\n"
    "    keyword_values: Named values to record: numbers, strings, and lists of strings.\n"
    "        Others are left out, with a warning.");

/* Torch's cannot be copied either: the inputs would be held twice. */
static PyObject *Op_getstate(PyObject *self, PyObject *unused) {
    (void)unused;
    return PyErr_Format(PyExc_TypeError, "cannot pickle '%.50s' object", Py_TYPE(self)->tp_name);
}

static PyMethodDef Op_methods[] = {{"__getstate__", Op_getstate, METH_NOARGS, NULL},
                                   {NULL, NULL, 0, NULL}};

static PyType_Slot Op_slots[] = {{Py_tp_doc, (void *)Op_doc},
                                 {Py_tp_init, Op_init},
                                 {Py_tp_traverse, Op_traverse},
                                 {Py_tp_clear, Op_clear},
                                 {Py_tp_dealloc, Op_dealloc},
                                 {Py_tp_methods, Op_methods},
                                 {0, NULL}};
PyType_Spec op_pyop_spec = {"pytest_opprof.capture.ranges.RecordFunctionFast", sizeof(op_pyop), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, Op_slots};
