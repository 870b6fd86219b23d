/* record_function, range_push, range_pop: C types, because a cffi call gives up the GIL twice.
 *
 * A Range finds its own records: it keeps an entry for each enter that has no exit yet, so one
 * object may be entered again while open, by another thread too, and end in any order. An enter
 * outside of a window is kept as well: its exit must not be taken for that of another thread's. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "call.h"
#include "counters.h"
#include "emit.h"
#include "names.h"
#include "pycall.h"
#include "pymem.h"
#include "range_parts.h"
#include "record.h"

#include <pthread.h>
#include <stdbool.h>
#include <structmember.h>

typedef struct {
    PyTypeObject *range, *decorated;
    PyObject *decorate;       /* capture.ranges.decorate, once needed */
    PyObject *end_with;       /* capture.futures.end_with, once needed */
    PyObject *update_wrapper; /* functools.update_wrapper, once needed */
} fast_state;

typedef struct {
    op_slot slot;
    unsigned long thread; /* Python's number of the thread that entered */
    uint32_t emitted;     /* to other tools: op_emit_target */
    bool is_handed_over;  /* what ends it is not the exit */
} entry;

typedef struct {
    PyObject_HEAD
    PyObject *name;  /* str */
    PyObject *args;  /* str or NULL */
    uint32_t *block; /* of _RecordFunctionFast: its argument block, or NULL */
    uint32_t words;  /* of the block */
    uint8_t scope;
    uint32_t id;   /* 0 until the name was needed */
    uint32_t open; /* entries in use */
    uint32_t room; /* entries in `more` */
    entry first;   /* the usual case needs no allocation */
    entry *more;
} Range;

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *function, *dict, *weakrefs;
    uint32_t id;
} Decorated;

/* ---- names ------------------------------------------------------------------------------ */

/* Lone surrogates have no UTF-8; they pass as the three bytes that Python's "surrogatepass" makes. */
static int intern_text(PyObject *text, uint32_t *id) {
    Py_ssize_t length;
    const char *utf8 = PyUnicode_AsUTF8AndSize(text, &length);
    if (utf8) {
        *id = op_names_intern(utf8, (size_t)length);
        return 0;
    }
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

/* Emits a range to the tools that are emitted to now, and says which: they get its end too. */
static uint32_t emit_begin(uint32_t id) {
    uint32_t targets = op_emits();
    uint32_t length;
    if (targets)
        op_emit_push_to(targets, op_names_text(id, &length));
    return targets;
}

/* What every range does once it has begun, and before it ends. */
static inline void note_begin(const op_slot *slot) {
    op_note_line(slot);
    if (__builtin_expect(op_counts() != 0, 0))
        op_count_begin(slot);
}

static inline void end_range(const op_slot *slot) {
    if (__builtin_expect(op_counts() != 0, 0))
        op_count_end(slot);
    op_end(slot);
}

#define TEXT_MAX 1024u

/* `args` goes into the record as text, cut to what a trace viewer shows anyway. */
static op_slot begin_with_text(uint32_t id, PyObject *text) {
    uint32_t words[2 + TEXT_MAX / 4] = {0};
    PyObject *bytes = PyUnicode_AsEncodedString(text, "utf-8", "replace");
    if (!bytes) {
        PyErr_Clear();
        return op_begin(id, OP_RANGE, OP_SCOPE_USER, 0, NULL, 0);
    }
    size_t n = (size_t)PyBytes_GET_SIZE(bytes);
    const char *utf8 = PyBytes_AS_STRING(bytes);
    if (n > TEXT_MAX) {
        n = TEXT_MAX;
        while (n && ((unsigned char)utf8[n] & 0xc0) == 0x80)
            n--;
    }
    uint32_t payload = 1 + (uint32_t)(n + 3) / 4;
    words[0] = OP_ARGS_HEADER(OP_ARGS_TEXT, payload);
    words[1] = (uint32_t)n;
    memcpy(words + 2, utf8, n);
    Py_DECREF(bytes);
    return op_begin(id, OP_RANGE, OP_SCOPE_USER, 0, words, 1 + payload);
}

/* ---- Range ------------------------------------------------------------------------------ */

static entry *entry_at(Range *r, uint32_t i) { return i == 0 ? &r->first : &r->more[i - 1]; }

static int make_room(Range *r) {
    uint32_t room = r->room ? r->room * 2 : 4;
    entry *bigger = PyMem_Realloc(r->more, room * sizeof *bigger);
    if (!bigger) {
        PyErr_NoMemory();
        return -1;
    }
    r->more = bigger;
    r->room = room;
    return 0;
}

static int range_begin(Range *r) {
    if (r->open > r->room && make_room(r))
        return -1;
    op_slot slot = {NULL, NULL, 0};
    uint32_t emitted = 0;
    if (op_recording() | op_emits()) {
        if (!r->id && intern_text(r->name, &r->id))
            return -1;
        emitted = emit_begin(r->id);
        slot = r->args ? begin_with_text(r->id, r->args)
                       : op_begin(r->id, OP_RANGE, r->scope, 0, r->block, r->words);
        note_begin(&slot);
    }
    *entry_at(r, r->open++) = (entry){slot, PyThread_get_thread_ident(), emitted, false};
    return 0;
}

/* This thread's latest entry, else the latest of all: a range handed to another thread. */
static uint32_t latest_entry(Range *r, unsigned long here) {
    for (uint32_t i = r->open; i-- > 0;)
        if (entry_at(r, i)->thread == here)
            return i;
    return r->open - 1;
}

static void range_finish(Range *r) {
    if (r->open == 0)
        return;
    unsigned long here = PyThread_get_thread_ident();
    uint32_t at = latest_entry(r, here);
    entry ended = *entry_at(r, at);
    for (uint32_t i = at; i + 1 < r->open; i++)
        *entry_at(r, i) = *entry_at(r, i + 1);
    r->open--;
    if (!ended.is_handed_over)
        end_range(&ended.slot);
    if (ended.emitted && ended.thread == here) /* a tool's stack is its thread's own */
        op_emit_pop_from(ended.emitted);
}

static int set_fields(Range *r, PyObject *name, PyObject *args) {
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
    if (op_recording() && intern_text(name, &r->id))
        return -1;
    Py_XSETREF(r->name, Py_NewRef(name));
    Py_XSETREF(r->args, args && args != Py_None ? Py_NewRef(args) : NULL);
    return 0;
}

/* Fields are set by __init__, as torch's class does it: a subclass may have arguments of its own. */
static PyObject *Range_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    (void)args;
    (void)kwargs;
    Range *r = (Range *)type->tp_alloc(type, 0);
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
    return set_fields((Range *)self, name, text);
}

/* The common call, record_function("x"), without a tuple; everything else goes the general way. */
static PyObject *Range_vectorcall(PyObject *type, PyObject *const *args, size_t nargsf,
                                  PyObject *keywords) {
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    PyTypeObject *cls = (PyTypeObject *)type;
    if (n == 1 && !keywords) {
        Range *r = (Range *)cls->tp_alloc(cls, 0);
        if (r)
            r->scope = OP_SCOPE_USER;
        if (r && set_fields(r, args[0], NULL)) {
            Py_DECREF(r);
            return NULL;
        }
        return (PyObject *)r;
    }
    PyObject *positional = PyTuple_New(n), *named = keywords ? PyDict_New() : NULL, *r = NULL;
    if (!positional || (keywords && !named))
        goto done;
    for (Py_ssize_t i = 0; i < n; i++)
        PyTuple_SET_ITEM(positional, i, Py_NewRef(args[i]));
    for (Py_ssize_t i = 0; keywords && i < PyTuple_GET_SIZE(keywords); i++)
        if (PyDict_SetItem(named, PyTuple_GET_ITEM(keywords, i), args[n + i]))
            goto done;
    r = Range_new(cls, positional, named);
    if (r && Range_init(r, positional, named))
        Py_CLEAR(r);
done:
    Py_XDECREF(positional);
    Py_XDECREF(named);
    return r;
}

/* A range that is dropped while open (an abandoned generator) stays open in the recording. */
static void Range_dealloc(PyObject *self) {
    Range *r = (Range *)self;
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
    return range_begin((Range *)self) ? NULL : Py_NewRef(self);
}

static PyObject *Range_exit(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    (void)args;
    (void)n;
    range_finish((Range *)self);
    Py_RETURN_NONE;
}

static fast_state *state_of(PyTypeObject *type);
static PyObject *kept_function(PyObject **kept, const char *module_name, const char *name);

/* The range will end with a future: not with the exit, which may come at any time now. */
static PyObject *Range_end_with(PyObject *self, PyObject *future) {
    Range *r = (Range *)self;
    fast_state *state = state_of(Py_TYPE(self));
    PyObject *end_with =
        state ? kept_function(&state->end_with, "pytest_opprof.capture.futures", "end_with") : NULL;
    if (!end_with)
        return NULL;
    entry *latest = r->open ? entry_at(r, latest_entry(r, PyThread_get_thread_ident())) : NULL;
    if (!latest || latest->is_handed_over)
        return PyErr_Format(PyExc_RuntimeError,
                            latest ? "_call_end_callbacks_on_future can only be called once."
                                   : "_call_end_callbacks_on_future() outside of the range");
    op_slot slot = latest->slot;
    PyObject *ending = op_ending_new(&slot);
    PyObject *result = ending ? PyObject_CallFunctionObjArgs(end_with, ending, future, NULL) : NULL;
    Py_XDECREF(ending);
    /* Other code may have run: the entry is looked for again. */
    latest = r->open ? entry_at(r, latest_entry(r, PyThread_get_thread_ident())) : NULL;
    if (result && latest && latest->slot.event == slot.event) {
        latest->is_handed_over = true;
        op_make_async(&slot);
    }
    return result;
}

/* Of _RecordFunctionFast: an op as torch's are, with named values, and with others that are JSON. */
static PyObject *Range_become_op(PyObject *self, PyObject *args) {
    Range *r = (Range *)self;
    PyObject *values, *json;
    op_fields fields;
    if (!PyArg_ParseTuple(args, "O!O!", &PyDict_Type, &values, &PyDict_Type, &json))
        return NULL;
    op_fields_clear(&fields);
    if (op_fields_add_dict(&fields, values, 0) || op_fields_add_dict(&fields, json, 1))
        return NULL;
    uint32_t words = op_fields_close(&fields);
    uint32_t *block = words ? PyMem_Malloc(words * sizeof *block) : NULL;
    if (words && !block)
        return PyErr_NoMemory();
    if (block)
        memcpy(block, fields.words, words * sizeof *block);
    PyMem_Free(r->block);
    r->block = block;
    r->words = words;
    r->scope = 0;
    Py_RETURN_NONE;
}

/* ---- decorator -------------------------------------------------------------------------- */

static PyObject *Decorated_call(PyObject *self, PyObject *const *args, size_t nargsf,
                                PyObject *keywords) {
    Decorated *d = (Decorated *)self;
    uint32_t emitted = emit_begin(d->id);
    op_slot slot = op_begin(d->id, OP_RANGE, OP_SCOPE_USER, 0, NULL, 0);
    note_begin(&slot);
    PyObject *result = PyObject_Vectorcall(d->function, args, nargsf, keywords);
    end_range(&slot);
    if (emitted)
        op_emit_pop_from(emitted);
    return result;
}

/* What is no plain function is left to Python: coroutines and generators run in pieces, later, and
 * a partial or a static method may hide one. */
static int runs_at_once(PyObject *function) {
    PyObject *inner = PyMethod_Check(function) ? PyMethod_GET_FUNCTION(function) : function;
    if (!PyFunction_Check(inner))
        return PyCFunction_Check(inner);
    int flags = ((PyCodeObject *)PyFunction_GET_CODE(inner))->co_flags;
    return !(flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR));
}

/* A module's function, found when first needed and kept in `kept`. */
static PyObject *kept_function(PyObject **kept, const char *module_name, const char *name) {
    if (!*kept) {
        PyObject *module = PyImport_ImportModule(module_name);
        if (!module)
            return NULL;
        *kept = PyObject_GetAttrString(module, name);
        Py_DECREF(module);
    }
    return *kept;
}

static PyObject *decorate_here(fast_state *state, Range *r, PyObject *function) {
    PyObject *update = kept_function(&state->update_wrapper, "functools", "update_wrapper");
    if (!update || (!r->id && intern_text(r->name, &r->id)))
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

/* A subclass may begin and end in its own way, which a C wrapper would pass by. */
static PyObject *Range_decorate(PyObject *self, PyObject *function) {
    fast_state *state = state_of(Py_TYPE(self));
    if (!state)
        return NULL;
    if (!PyCallable_Check(function) && !PyObject_TypeCheck(function, &PyClassMethod_Type)) {
        PyErr_Format(PyExc_TypeError, "record_function(...) decorates a callable, not %.50s",
                     Py_TYPE(function)->tp_name);
        return NULL;
    }
    Range *r = (Range *)self;
    bool plain = Py_TYPE(function) == state->decorated || runs_at_once(function);
    if (Py_TYPE(self) == state->range && !r->args && plain)
        return decorate_here(state, r, function);
    PyObject *decorate = kept_function(&state->decorate, "pytest_opprof.capture.ranges", "decorate");
    return decorate ? PyObject_CallFunctionObjArgs(decorate, self, function, NULL) : NULL;
}

static PyObject *Range_call(PyObject *self, PyObject *args, PyObject *kwargs) {
    static char *keywords[] = {"func", NULL};
    PyObject *function;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:record_function", keywords, &function))
        return NULL;
    return Range_decorate(self, function);
}

static PyObject *Range_repr(PyObject *self) {
    return PyUnicode_FromFormat("record_function(%R)", ((Range *)self)->name);
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

/* Pickled and copied by its name, as the function is that it stands for. */
static PyObject *Decorated_reduce(PyObject *self, PyObject *unused) {
    (void)unused;
    return PyObject_GetAttrString(self, "__qualname__");
}

static PyObject *Decorated_repr(PyObject *self) {
    return PyUnicode_FromFormat("<recorded %R>", ((Decorated *)self)->function);
}

/* ---- range_push, range_pop -------------------------------------------------------------- */

/* Each thread's pushed ranges, kept by slot so that a pop never ends somebody else's range. */
typedef struct pushed_range {
    op_slot slot;
    uint32_t emitted;
} pushed_range;

typedef struct pushed {
    pushed_range *ranges;
    size_t count, room;
} pushed;

static pthread_key_t pushed_key; /* Python's own thread-local keys have no destructor */

static void free_pushed(void *value) {
    free(((pushed *)value)->ranges);
    free(value);
}

static pushed *pushed_here(void) {
    pushed *p = pthread_getspecific(pushed_key);
    if (p)
        return p;
    p = calloc(1, sizeof *p);
    if (!p || pthread_setspecific(pushed_key, p)) {
        free(p);
        PyErr_NoMemory();
        return NULL;
    }
    return p;
}

/* Like torch's, the depth before the push: 0 for an outermost range. */
static PyObject *push(PyObject *module, PyObject *name) {
    (void)module;
    if (!PyUnicode_Check(name))
        return PyErr_Format(PyExc_TypeError, "range_push() argument must be str, not %.50s",
                            Py_TYPE(name)->tp_name);
    pushed *p = pushed_here();
    if (!p)
        return NULL;
    if (p->count == p->room) {
        size_t room = p->room ? p->room * 2 : 16;
        pushed_range *bigger = realloc(p->ranges, room * sizeof *bigger);
        if (!bigger)
            return PyErr_NoMemory();
        p->ranges = bigger;
        p->room = room;
    }
    pushed_range range = {{NULL, NULL, 0}, 0};
    uint32_t id;
    if (op_recording() | op_emits()) {
        if (intern_text(name, &id))
            return NULL;
        range.emitted = emit_begin(id);
        range.slot = op_begin(id, OP_RANGE, OP_SCOPE_USER, 0, NULL, 0);
        note_begin(&range.slot);
    }
    p->ranges[p->count] = range;
    return PyLong_FromSize_t(p->count++);
}

static PyObject *pop(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    pushed *p = pushed_here();
    if (!p)
        return NULL;
    if (p->count == 0) {
        PyErr_SetString(PyExc_RuntimeError, "range_pop() without a range_push() on this thread");
        return NULL;
    }
    const pushed_range *ended = &p->ranges[--p->count];
    end_range(&ended->slot);
    if (ended->emitted)
        op_emit_pop_from(ended->emitted);
    return PyLong_FromSize_t(p->count);
}

/* ---- module ----------------------------------------------------------------------------- */

static PyMethodDef Range_methods[] = {
    {"__enter__", Range_enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)(void (*)(void))Range_exit, METH_FASTCALL, NULL},
    {"_call_end_callbacks_on_future", Range_end_with, METH_O,
     "_call_end_callbacks_on_future(fut, /)\n--\n\nEnd the range with a future, and not at the "
     "exit.\n\nGives a future with the same outcome, which comes after the range's end.\n"
     "Raises RuntimeError when it is called twice, or outside of the range."},
    {"_become_op", Range_become_op, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL}};

static PyMemberDef Range_members[] = {
    {"name", T_OBJECT_EX, offsetof(Range, name), READONLY, "The range's name."},
    {"args", T_OBJECT, offsetof(Range, args), READONLY, "Text kept with the range, or None."},
    {NULL, 0, 0, 0, NULL}};

PyDoc_STRVAR(Range_doc,
             "record_function(name, args=None)\n--\n\n"
             "A named range: a context manager, and a decorator of functions, coroutines and\n"
             "generators. Recorded while a profile is open; otherwise it costs a few nanoseconds.\n"
             "One object may be entered again while it is open, and from any thread.");

static PyType_Slot Range_slots[] = {
    {Py_tp_doc, (void *)Range_doc}, {Py_tp_new, Range_new},         {Py_tp_init, Range_init},
    {Py_tp_dealloc, Range_dealloc}, {Py_tp_methods, Range_methods}, {Py_tp_members, Range_members},
    {Py_tp_call, Range_call},       {Py_tp_repr, Range_repr},       {0, NULL}};
static PyType_Spec Range_spec = {"pytest_opprof.record_function", sizeof(Range), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, Range_slots};

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
static PyType_Spec Decorated_spec = {"pytest_opprof._fast.Decorated", sizeof(Decorated), 0,
                                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL |
                                         Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_HAVE_GC |
                                         Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                     Decorated_slots};

static PyMethodDef functions[] = {
    {"range_push", push, METH_O,
     "range_push(name, /)\n--\n\nBegin a range on this thread; its depth, from 0."},
    {"range_pop", pop, METH_NOARGS,
     "range_pop()\n--\n\nEnd the range that this thread pushed last; its depth.\n\n"
     "Raises RuntimeError when there is none."},
    {NULL, NULL, 0, NULL}};

static int execute(PyObject *module) {
    fast_state *state = PyModule_GetState(module);
    if (pthread_key_create(&pushed_key, free_pushed)) {
        PyErr_NoMemory();
        return -1;
    }
    state->range = (PyTypeObject *)PyType_FromModuleAndSpec(module, &Range_spec, NULL);
    if (!state->range)
        return -1;
    state->range->tp_vectorcall = Range_vectorcall;
    state->decorated = (PyTypeObject *)PyType_FromModuleAndSpec(module, &Decorated_spec, NULL);
    if (!state->decorated)
        return -1;
    if (PyModule_AddFunctions(module, op_pycall_functions) ||
        PyModule_AddFunctions(module, op_pymem_functions))
        return -1;
    return PyModule_AddObjectRef(module, "record_function", (PyObject *)state->range);
}

static int module_traverse(PyObject *module, visitproc visit, void *arg) {
    fast_state *state = PyModule_GetState(module);
    Py_VISIT(state->range);
    Py_VISIT(state->decorated);
    Py_VISIT(state->decorate);
    Py_VISIT(state->end_with);
    Py_VISIT(state->update_wrapper);
    return 0;
}

static int module_clear(PyObject *module) {
    fast_state *state = PyModule_GetState(module);
    Py_CLEAR(state->range);
    Py_CLEAR(state->decorated);
    Py_CLEAR(state->decorate);
    Py_CLEAR(state->end_with);
    Py_CLEAR(state->update_wrapper);
    return 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void *)execute},
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, NULL}};

static struct PyModuleDef definition = {.m_base = PyModuleDef_HEAD_INIT,
                                        .m_name = "pytest_opprof._fast",
                                        .m_size = sizeof(fast_state),
                                        .m_methods = functions,
                                        .m_slots = slots,
                                        .m_traverse = module_traverse,
                                        .m_clear = module_clear};

/* A subclass made in Python has no module of ours, so the state is looked up along its bases. */
static fast_state *state_of(PyTypeObject *type) {
    PyObject *module = PyType_GetModuleByDef(type, &definition);
    return module ? PyModule_GetState(module) : NULL;
}

PyMODINIT_FUNC PyInit__fast(void);
PyMODINIT_FUNC PyInit__fast(void) { return PyModuleDef_Init(&definition); }
