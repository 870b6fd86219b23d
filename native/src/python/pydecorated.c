#include "python/pydecorated.h"

#include "python/module_state.h"
#include "python/range_object.h"
#include "python/range_parts.h"

#include <structmember.h>

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *function, *dict, *weakrefs;
    uint32_t id;
} Decorated;

static PyObject *Decorated_call(PyObject *self, PyObject *const *args, size_t nargsf,
                                PyObject *keywords) {
    Decorated *d = (Decorated *)self;
    uint32_t emitted = op_range_emit(d->id);
    op_slot slot = op_begin_unwound(d->id, OP_RANGE, OP_SCOPE_USER, 0, NULL, 0);
    op_range_note(&slot);
    PyObject *result = PyObject_Vectorcall(d->function, args, nargsf, keywords);
    op_range_end(&slot);
    if (emitted)
        op_emit_pop_from(emitted);
    return result;
}

/* Anything but a plain function is left to Python: coroutines and generators run later in pieces, and a
 * partial or static method may hide one. */
static int runs_at_once(PyObject *function) {
    PyObject *inner = PyMethod_Check(function) ? PyMethod_GET_FUNCTION(function) : function;
    if (!PyFunction_Check(inner))
        return PyCFunction_Check(inner);
    int flags = ((PyCodeObject *)PyFunction_GET_CODE(inner))->co_flags;
    return !(flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR));
}

static PyObject *decorate_here(op_fast *state, op_pyrange *r, PyObject *function) {
    PyObject *update = op_fast_function(&state->update_wrapper, "functools", "update_wrapper");
    if (!update || (!r->id && op_range_intern(r->name, &r->id)))
        return NULL;
    Decorated *d = (Decorated *)state->decorated->tp_alloc(state->decorated, 0);
    if (!d)
        return NULL;
    d->vectorcall = Decorated_call;
    d->function = Py_NewRef(function);
    d->id = r->id;
    PyObject *updated = PyObject_CallFunctionObjArgs(update, (PyObject *)d, function, NULL);
    Py_DECREF(d);
    return updated;
}

/* A subclass may begin and end in its own way, which a C wrapper would bypass. */
PyObject *op_pydecorate(PyObject *self, PyObject *function) {
    op_fast *state = op_fast_of(Py_TYPE(self));
    if (!state)
        return NULL;
    if (!PyCallable_Check(function) && !PyObject_TypeCheck(function, &PyClassMethod_Type)) {
        PyErr_Format(PyExc_TypeError, "record_function(...) decorates a callable, not %.50s",
                     Py_TYPE(function)->tp_name);
        return NULL;
    }
    op_pyrange *r = (op_pyrange *)self;
    bool plain = Py_TYPE(function) == state->decorated || runs_at_once(function);
    if (Py_TYPE(self) == state->range && !r->args && plain)
        return decorate_here(state, r, function);
    PyObject *decorate = op_fast_function(&state->decorate, "pytest_opprof.capture.ranges", "decorate");
    return decorate ? PyObject_CallFunctionObjArgs(decorate, self, function, NULL) : NULL;
}

static int Decorated_traverse(PyObject *self, visitproc visit, void *arg) {
    Decorated *d = (Decorated *)self;
    Py_VISIT(d->function);
    Py_VISIT(d->dict);
    Py_VISIT(Py_TYPE(self));
    return 0;
}

static int Decorated_clear(PyObject *self) {
    Decorated *d = (Decorated *)self;
    Py_CLEAR(d->function);
    Py_CLEAR(d->dict);
    return 0;
}

static void Decorated_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (((Decorated *)self)->weakrefs)
        PyObject_ClearWeakRefs(self);
    Decorated_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *Decorated_get(PyObject *self, PyObject *instance, PyObject *owner) {
    (void)owner;
    return instance && instance != Py_None ? PyMethod_New(self, instance) : Py_NewRef(self);
}

/* Pickled and copied by name, like the function it wraps. */
static PyObject *Decorated_reduce(PyObject *self, PyObject *unused) {
    (void)unused;
    return PyObject_GetAttrString(self, "__qualname__");
}

static PyObject *Decorated_repr(PyObject *self) {
    return PyUnicode_FromFormat("<recorded %R>", ((Decorated *)self)->function);
}

static PyMethodDef Decorated_methods[] = {{"__reduce__", Decorated_reduce, METH_NOARGS, NULL},
                                          {NULL, NULL, 0, NULL}};
static PyMemberDef Decorated_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Decorated, vectorcall), READONLY, NULL},
    {"__dictoffset__", T_PYSSIZET, offsetof(Decorated, dict), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Decorated, weakrefs), READONLY, NULL},
    {NULL, 0, 0, 0, NULL}};
static PyGetSetDef Decorated_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot Decorated_slots[] = {
    {Py_tp_call, PyVectorcall_Call},    {Py_tp_methods, Decorated_methods},
    {Py_tp_members, Decorated_members}, {Py_tp_getset, Decorated_getset},
    {Py_tp_descr_get, Decorated_get},   {Py_tp_traverse, Decorated_traverse},
    {Py_tp_clear, Decorated_clear},     {Py_tp_dealloc, Decorated_dealloc},
    {Py_tp_repr, Decorated_repr},       {0, NULL}};
PyType_Spec op_pydecorated_spec = {"pytest_opprof._fast.Decorated", sizeof(Decorated), 0,
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL |
                                       Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_HAVE_GC |
                                       Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                   Decorated_slots};
