/* A Range finds its own records: it keeps an entry for each enter without an exit. So one object may be
 * entered again while open, on other threads too, and the entries may end in any order. An enter
 * outside of a window has an entry as well, so that its exit is not taken for another thread's. */
#include "python/pyrange.h"

#include "python/module_state.h"
#include "python/op_inputs.h"
#include "python/pydecorated.h"
#include "python/range_parts.h"

static op_pyrange_entry *entry_at(op_pyrange *r, uint32_t i) {
    return i == 0 ? &r->first : &r->more[i - 1];
}

static int make_room(op_pyrange *r) {
    uint32_t room = r->room ? r->room * 2 : 4;
    op_pyrange_entry *bigger = PyMem_Realloc(r->more, room * sizeof *bigger);
    if (!bigger) {
        PyErr_NoMemory();
        return -1;
    }
    r->more = bigger;
    r->room = room;
    return 0;
}

static int range_begin(op_pyrange *r) {
    bool is_seen = op_recording() | op_emits();
    if (__builtin_expect(r->is_unread, 0) && is_seen && op_pyop_read(r)) /* which runs other code */
        return -1;
    if (r->open > r->room && make_room(r))
        return -1;
    op_slot slot = {NULL, NULL, 0};
    uint32_t emitted = 0;
    if (is_seen) {
        if (!r->id && op_range_intern(r->name, &r->id))
            return -1;
        emitted = op_range_emit(r->id);
        slot = r->args ? op_range_begin_with_text(r->id, r->args)
                       : op_begin_unwound(r->id, OP_RANGE, r->scope, 0, r->block, r->words);
        op_range_note(&slot);
    }
    *entry_at(r, r->open++) = (op_pyrange_entry){slot, PyThread_get_thread_ident(), emitted, false};
    return 0;
}

/* This thread's latest entry, else the latest of all, for a range handed to another thread. */
static uint32_t latest_entry(op_pyrange *r, unsigned long here) {
    for (uint32_t i = r->open; i-- > 0;)
        if (entry_at(r, i)->thread == here)
            return i;
    return r->open - 1;
}

static void range_finish(op_pyrange *r) {
    if (r->open == 0)
        return;
    unsigned long here = PyThread_get_thread_ident();
    uint32_t at = latest_entry(r, here);
    op_pyrange_entry ended = *entry_at(r, at);
    for (uint32_t i = at; i + 1 < r->open; i++)
        *entry_at(r, i) = *entry_at(r, i + 1);
    r->open--;
    if (!ended.is_handed_over)
        op_range_end(&ended.slot);
    if (ended.emitted && ended.thread == here) /* a tool's stack belongs to its thread */
        op_emit_pop_from(ended.emitted);
}

int op_pyrange_set(op_pyrange *r, PyObject *name, PyObject *args) {
    if (!PyUnicode_Check(name)) {
        PyErr_Format(PyExc_TypeError, "record_function() argument 'name' must be str, not %.50s",
                     Py_TYPE(name)->tp_name);
        return -1;
    }
    if (args && args != Py_None && !PyUnicode_Check(args)) {
        PyErr_Format(PyExc_TypeError,
                     "record_function() argument 'args' must be str or None, not %.50s",
                     Py_TYPE(args)->tp_name);
        return -1;
    }
    r->id = 0;
    if (op_recording() && op_range_intern(name, &r->id))
        return -1;
    Py_XSETREF(r->name, Py_NewRef(name));
    Py_XSETREF(r->args, args && args != Py_None ? Py_NewRef(args) : NULL);
    return 0;
}

/* __init__ sets the fields, as in torch's class: a subclass may have other arguments. */
static PyObject *Range_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    (void)args;
    (void)kwargs;
    op_pyrange *r = (op_pyrange *)type->tp_alloc(type, 0);
    if (!r)
        return NULL;
    r->scope = OP_SCOPE_USER;
    r->name = PyUnicode_New(0, 0);
    if (!r->name)
        Py_CLEAR(r);
    return (PyObject *)r;
}

static int Range_init(PyObject *self, PyObject *args, PyObject *kwargs) {
    static char *keywords[] = {"name", "args", NULL};
    PyObject *name, *text = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:record_function", keywords, &name, &text))
        return -1;
    return op_pyrange_set((op_pyrange *)self, name, text);
}

PyObject *op_pyrange_make(PyTypeObject *type, PyObject *const *args, Py_ssize_t n, PyObject *keywords) {
    PyObject *positional = PyTuple_New(n), *named = keywords ? PyDict_New() : NULL, *r = NULL;
    if (!positional || (keywords && !named))
        goto done;
    for (Py_ssize_t i = 0; i < n; i++)
        PyTuple_SET_ITEM(positional, i, Py_NewRef(args[i]));
    for (Py_ssize_t i = 0; keywords && i < PyTuple_GET_SIZE(keywords); i++)
        if (PyDict_SetItem(named, PyTuple_GET_ITEM(keywords, i), args[n + i]))
            goto done;
    r = type->tp_new(type, positional, named);
    if (r && type->tp_init(r, positional, named))
        Py_CLEAR(r);
done:
    Py_XDECREF(positional);
    Py_XDECREF(named);
    return r;
}

/* The common call, record_function("x"), without a tuple. */
PyObject *op_pyrange_new(PyObject *type, PyObject *const *args, size_t nargsf, PyObject *keywords) {
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    PyTypeObject *cls = (PyTypeObject *)type;
    if (n != 1 || keywords)
        return op_pyrange_make(cls, args, n, keywords);
    op_pyrange *r = (op_pyrange *)cls->tp_alloc(cls, 0);
    if (r)
        r->scope = OP_SCOPE_USER;
    if (r && op_pyrange_set(r, args[0], NULL))
        Py_CLEAR(r);
    return (PyObject *)r;
}

/* A range dropped while open (by an abandoned generator) stays open in the recording. */
void op_pyrange_dealloc(PyObject *self) {
    op_pyrange *r = (op_pyrange *)self;
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(r->name);
    Py_XDECREF(r->args);
    PyMem_Free(r->more);
    PyMem_Free(r->block);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *Range_enter(PyObject *self, PyObject *unused) {
    (void)unused;
    return range_begin((op_pyrange *)self) ? NULL : Py_NewRef(self);
}

static PyObject *Range_exit(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    (void)args;
    (void)n;
    range_finish((op_pyrange *)self);
    Py_RETURN_NONE;
}

/* The range will end with a future and not at the exit, which may come at any time now. */
static PyObject *Range_end_with(PyObject *self, PyObject *future) {
    op_pyrange *r = (op_pyrange *)self;
    op_fast *state = op_fast_of(Py_TYPE(self));
    PyObject *end_with =
        state ? op_fast_function(&state->end_with, "pytest_opprof.capture.futures", "end_with") : NULL;
    if (!end_with)
        return NULL;
    op_pyrange_entry *latest =
        r->open ? entry_at(r, latest_entry(r, PyThread_get_thread_ident())) : NULL;
    if (!latest || latest->is_handed_over)
        return PyErr_Format(PyExc_RuntimeError,
                            latest ? "_call_end_callbacks_on_future can only be called once."
                                   : "_call_end_callbacks_on_future() outside of the range");
    op_slot slot = latest->slot;
    PyObject *ending = op_ending_new(&slot);
    PyObject *result = ending ? PyObject_CallFunctionObjArgs(end_with, ending, future, NULL) : NULL;
    Py_XDECREF(ending);
    /* Other code may have run, so the entry is looked up again. */
    latest = r->open ? entry_at(r, latest_entry(r, PyThread_get_thread_ident())) : NULL;
    if (result && latest && latest->slot.event == slot.event) {
        latest->is_handed_over = true;
        op_make_async(&slot);
    }
    return result;
}

static PyObject *Range_call(PyObject *self, PyObject *args, PyObject *kwargs) {
    static char *keywords[] = {"func", NULL};
    PyObject *function;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:record_function", keywords, &function))
        return NULL;
    return op_pydecorate(self, function);
}

static PyObject *Range_repr(PyObject *self) {
    return PyUnicode_FromFormat("record_function(%R)", ((op_pyrange *)self)->name);
}

/* A copy has the name, the args and a subclass's attributes, in the form of an object with slots. It is
 * not open, as a copy of torch's is not. */
static PyObject *Range_getstate(PyObject *self, PyObject *unused) {
    (void)unused;
    op_pyrange *r = (op_pyrange *)self;
    PyObject *dict = PyObject_GenericGetDict(self, NULL);
    if (!dict)
        PyErr_Clear();
    return Py_BuildValue("(N{sOsO})", dict ? dict : Py_NewRef(Py_None), "name", r->name, "args",
                         r->args ? r->args : Py_None);
}

static PyMethodDef Range_methods[] = {
    {"__getstate__", Range_getstate, METH_NOARGS, NULL},
    {"__enter__", Range_enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)(void (*)(void))Range_exit, METH_FASTCALL, NULL},
    {"_call_end_callbacks_on_future", Range_end_with, METH_O,
     "_call_end_callbacks_on_future(fut, /)\n--\n\nEnd the range with a future, and not at the "
     "exit.\n\nReturns a future with the same outcome, which completes after the range's end.\n"
     "Raises RuntimeError when it is called twice, or outside of the range."},
    {NULL, NULL, 0, NULL}};

static PyObject *Range_name(PyObject *self, void *unused) {
    (void)unused;
    return Py_NewRef(((op_pyrange *)self)->name);
}

static PyObject *Range_args(PyObject *self, void *unused) {
    (void)unused;
    PyObject *args = ((op_pyrange *)self)->args;
    return Py_NewRef(args ? args : Py_None);
}

/* Set, they count from the next enter on, as in torch's class. */
static int Range_set_name(PyObject *self, PyObject *name, void *unused) {
    (void)unused;
    op_pyrange *r = (op_pyrange *)self;
    return op_pyrange_set(r, name ? name : Py_None, r->args);
}

static int Range_set_args(PyObject *self, PyObject *args, void *unused) {
    (void)unused;
    op_pyrange *r = (op_pyrange *)self;
    return op_pyrange_set(r, r->name, args);
}

static PyObject *Range_ends_at_exit(PyObject *self, void *unused) {
    (void)unused;
    op_pyrange *r = (op_pyrange *)self;
    op_pyrange_entry *latest =
        r->open ? entry_at(r, latest_entry(r, PyThread_get_thread_ident())) : NULL;
    return PyBool_FromLong(!latest || !latest->is_handed_over);
}

static PyGetSetDef Range_getters[] = {
    {"name", Range_name, Range_set_name, "The range's name.", NULL},
    {"args", Range_args, Range_set_args, "Text kept with the range, or None.", NULL},
    {"run_callbacks_on_exit", Range_ends_at_exit, NULL,
     "Whether the exit ends the range; a future may.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

PyDoc_STRVAR(Range_doc,
             "record_function(name, args=None)\n--\n\n"
             "A named range: a context manager, and a decorator of functions, coroutines and\n"
             "generators. Recorded while a profile is open; otherwise it costs a few nanoseconds.\n"
             "One object may be entered again while it is open, and from any thread.");

static PyType_Slot Range_slots[] = {{Py_tp_doc, (void *)Range_doc},
                                    {Py_tp_new, Range_new},
                                    {Py_tp_init, Range_init},
                                    {Py_tp_dealloc, op_pyrange_dealloc},
                                    {Py_tp_methods, Range_methods},
                                    {Py_tp_getset, Range_getters},
                                    {Py_tp_call, Range_call},
                                    {Py_tp_repr, Range_repr},
                                    {0, NULL}};
PyType_Spec op_pyrange_spec = {"pytest_opprof.record_function", sizeof(op_pyrange), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, Range_slots};
