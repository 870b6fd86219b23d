#include "python/pycall.h"

#include "core/names.h"
#include "python/pyframe.h"
#include "python/pyname.h"
#include "sources/call.h"

/* Guarded by the GIL: whether calls are recorded, and whether only those of torch modules. */
static bool active, modules_only;

/* ---- one call --------------------------------------------------------------------------- */

static uint16_t line_of(op_frame *f) { return f ? op_pyline(op_frame_code(f), op_frame_offset(f)) : 0; }

/* Line of the innermost shown call. Our own calls are hidden, with lines in other files, so the frame
 * that called us is used instead. 0 for a C function, which has no lines. */
static uint16_t line_shown(const op_thread *t, op_frame *f) {
    uint32_t depth = t->call_depth;
    if (__builtin_expect(!depth || !t->calls[depth - 1].hidden, 1))
        return line_of(f);
    while (depth && t->calls[depth - 1].hidden)
        depth--;
    const void *code = depth ? t->calls[depth - 1].code : NULL;
    while (f && op_frame_code(f) != code)
        f = op_frame_back(f);
    return line_of(f);
}

/* May run without the GIL, which torch releases before an op. Nodes record their Python calls too. */
static void note_line(const op_slot *slot, enum op_caller caller) {
    if (op_line_of(slot, caller) != OP_LINE_OWN)
        return;
    op_frame *innermost = op_frame_of(PyGILState_GetThisThreadState());
    const op_thread *t = slot->thread;
    slot->event->line =
        op_calls_are_of(t, op_open_window()) ? line_shown(t, innermost) : line_of(innermost);
}

/* The thread's frames when it entered the window, outermost first: not events, but around them. */
static void note_open_frames(op_thread *t, op_frame *innermost) {
    size_t count = 0;
    for (op_frame *f = innermost; f; f = op_frame_back(f))
        count++;
    op_frame **frames = PyMem_RawMalloc((count + 1) * sizeof *frames);
    if (!frames)
        return;
    size_t at = count;
    for (op_frame *f = innermost; f; f = op_frame_back(f))
        frames[--at] = f;
    for (at = 0; at < count; at++) {
        PyCodeObject *code = op_frame_code(frames[at]);
        uint32_t name = op_pyname_of_code(code);
        if (name == OP_NAME_NONE)
            op_call_pass(t, code, true);
        else
            op_call_begin(t, code, name, OP_PYTHON_CALL, OP_FLAG_BEFORE, line_of(frames[at]));
    }
    PyMem_RawFree(frames);
}

/* Handles a thread's first call in the window, which happens in `innermost`. */
static op_thread *arrive(uint32_t window, op_frame *innermost) {
    op_thread *t = op_self;
    if (op_recording() != window) /* paused: the thread enters later */
        return NULL;
    if (t == NULL || t->window != window)
        t = op_thread_prepare(window, 0);
    if (t == NULL || !op_calls_grow(t, window))
        return NULL;
    if (!modules_only)
        note_open_frames(t, innermost);
    return t;
}

static inline op_thread *known_here(uint32_t window) {
    op_thread *t = op_self;
    return __builtin_expect(op_calls_are_of(t, window), 1) ? t : NULL;
}

/* `callee` has just begun or resumed. */
static inline void begin_function(PyCodeObject *code, op_frame *callee) {
    uint32_t window = op_open_window();
    if (!window || !active)
        return;
    op_frame *caller = op_frame_back(callee);
    op_thread *t = known_here(window);
    if (!t && !(t = arrive(window, caller)))
        return;
    uint32_t name;
    if (__builtin_expect(op_pyname_is_module_call(code), 0)) {
        PyObject *module = op_frame_first_argument(callee);
        name = module ? op_pyname_of_module(module) : op_pyname_of_code(code);
    } else if (modules_only) {
        return;
    } else {
        name = op_pyname_of_code(code);
    }
    if (name == OP_NAME_NONE || !op_recording())
        op_call_pass(t, code, name == OP_NAME_NONE);
    else
        op_call_begin(t, code, name, OP_PYTHON_CALL, 0, line_shown(t, caller));
}

static inline void end_function(const PyCodeObject *code) {
    uint32_t window = op_open_window();
    if (!window || !active)
        return;
    op_thread *t = known_here(window);
    if (t || (t = arrive(window, op_frame_of(PyThreadState_Get()))))
        op_call_end(t, code);
}

/* A function of ours calls nothing worth recording. */
static inline bool is_called_by_us(const op_thread *t) {
    return t->call_depth && t->calls[t->call_depth - 1].hidden;
}

static inline void begin_method(const PyMethodDef *method, PyObject *self, op_frame *caller) {
    uint32_t window = op_open_window();
    if (!window || !active || modules_only)
        return;
    op_thread *t = known_here(window);
    if (!t && !(t = arrive(window, caller)))
        return;
    uint32_t name = is_called_by_us(t) ? OP_NAME_NONE : op_pyname_of_method(method, self);
    if (name == OP_NAME_NONE || !op_recording())
        op_call_pass(t, method, name == OP_NAME_NONE);
    else
        op_call_begin(t, method, name, OP_C_CALL, 0, line_shown(t, caller));
}

static inline void end_method(const PyMethodDef *method) {
    uint32_t window = op_open_window();
    op_thread *t = window && active ? known_here(window) : NULL;
    if (t)
        op_call_end(t, method);
}

/* ---- 3.12 and later: callbacks of sys.monitoring ---------------------------------------- */

#if PY_VERSION_HEX >= 0x030C0000

static PyObject *on_begin(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    (void)module;
    (void)n;
    op_frame *callee = op_frame_of(PyThreadState_Get());
    if (callee)
        begin_function((PyCodeObject *)args[0], callee);
    Py_RETURN_NONE;
}

static PyObject *on_end(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    (void)module;
    (void)n;
    end_function((PyCodeObject *)args[0]);
    Py_RETURN_NONE;
}

/* CALL, C_RETURN and C_RAISE are used like a profile function, for functions and methods in C. What a
 * class or another callable runs is reported separately. */
static inline const PyMethodDef *method_called(PyObject *callable, PyObject *first, PyObject **self) {
    if (PyCFunction_Check(callable)) {
        *self = ((PyCFunctionObject *)callable)->m_self;
        return ((PyCFunctionObject *)callable)->m_ml;
    }
    if (Py_IS_TYPE(callable, &PyMethodDescr_Type)) {
        *self = first;
        return ((PyMethodDescrObject *)callable)->d_method;
    }
    return NULL;
}

static PyObject *on_call(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    (void)module;
    (void)n;
    PyObject *self;
    const PyMethodDef *method = method_called(args[2], args[3], &self);
    if (method)
        begin_method(method, self, op_frame_of(PyThreadState_Get()));
    Py_RETURN_NONE;
}

static PyObject *on_call_end(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    (void)module;
    (void)n;
    PyObject *self;
    const PyMethodDef *method = method_called(args[2], args[3], &self);
    if (method)
        end_method(method);
    Py_RETURN_NONE;
}

#else

/* ---- 3.11: a profile function on each thread -------------------------------------------- */

/* A thread that got our profile function. */
typedef struct profiled {
    struct profiled *next;
    uint64_t thread; /* its state's id */
    /* The profile function that it had before, or NULL. Ours calls it, and restores it at the end. The
     * state keeps its argument, which is what sys.getprofile() returns. */
    Py_tracefunc before;
    bool runs; /* ours has not seen the end of its outermost function */
} profiled;

static profiled *threads; /* newest first */
static bool any_before;

static profiled *profiled_of(const PyThreadState *state) {
    profiled *p = threads;
    while (p && p->thread != state->id)
        p = p->next;
    return p;
}

static void note_outermost(const op_frame *f, bool runs) {
    profiled *here = f->previous ? NULL : profiled_of(PyThreadState_Get());
    if (here)
        here->runs = runs;
}

static int profile_function(PyObject *argument, PyFrameObject *frame, int what, PyObject *arg) {
    switch (what) {
    case PyTrace_CALL:
        note_outermost(frame->f_frame, true);
        begin_function(frame->f_frame->f_code, frame->f_frame);
        break;
    case PyTrace_RETURN:
        note_outermost(frame->f_frame, false);
        end_function(frame->f_frame->f_code);
        break;
    case PyTrace_C_CALL:
        if (PyCFunction_Check(arg))
            begin_method(((PyCFunctionObject *)arg)->m_ml, ((PyCFunctionObject *)arg)->m_self,
                         frame->f_frame);
        break;
    case PyTrace_C_RETURN:
    case PyTrace_C_EXCEPTION:
        if (PyCFunction_Check(arg))
            end_method(((PyCFunctionObject *)arg)->m_ml);
        break;
    default:
        break;
    }
    const profiled *here = __builtin_expect(any_before, 0) ? profiled_of(PyThreadState_Get()) : NULL;
    return here && here->before ? here->before(argument, frame, what, arg) : 0;
}

static int profile_thread(PyThreadState *state) {
    if (state->c_profilefunc == profile_function)
        return 0;
    profiled *p = PyMem_RawMalloc(sizeof *p);
    if (!p) {
        PyErr_NoMemory();
        return -1;
    }
    *p = (profiled){threads, state->id, state->c_profilefunc, op_frame_raw(state) != NULL};
    threads = p;
    any_before = any_before || p->before;
    PyObject *argument = Py_XNewRef(state->c_profileobj);
    int rc = _PyEval_SetProfile(state, profile_function, argument);
    Py_XDECREF(argument);
    return rc;
}

/* A profiler that replaced ours in the meantime stays. */
static int leave_thread(PyThreadState *state) {
    if (state->c_profilefunc != profile_function)
        return 0;
    const profiled *p = any_before ? profiled_of(state) : NULL;
    PyObject *argument = Py_XNewRef(state->c_profileobj);
    int rc = _PyEval_SetProfile(state, p ? p->before : NULL, argument);
    Py_XDECREF(argument);
    return rc;
}

static int each_thread(int (*act)(PyThreadState *)) {
    PyInterpreterState *interpreter = PyInterpreterState_Get();
    for (PyThreadState *s = PyInterpreterState_ThreadHead(interpreter); s; s = PyThreadState_Next(s))
        if (act(s))
            return -1;
    return 0;
}

/* Whether a thread lost ours while it ran Python: it still does so without ours, or ended without. */
static bool is_displaced(void) {
    int64_t lost = 0;
    for (const profiled *p = threads; p; p = p->next)
        lost += p->runs;
    PyInterpreterState *interpreter = PyInterpreterState_Get();
    for (PyThreadState *s = PyInterpreterState_ThreadHead(interpreter); s; s = PyThreadState_Next(s))
        lost -= s->c_profilefunc == profile_function && op_frame_raw(s);
    return lost > 0;
}

static void forget_threads(void) {
    while (threads) {
        profiled *p = threads;
        threads = p->next;
        PyMem_RawFree(p);
    }
    any_before = false;
}

/* threading calls this on a new thread, by way of sys.setprofile, at its first function. From then on
 * the C function is called directly. */
static PyObject *profile_new_thread(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    (void)module;
    if (n != 4)
        return PyErr_Format(PyExc_TypeError, "profile_new_thread() takes 4 arguments, not %zd", n);
    PyThreadState *state = PyThreadState_Get();
    PyObject *before = args[0], *frame = args[1], *event = args[2];
    profiled *earlier = state->c_profilefunc == profile_function ? profiled_of(state) : NULL;
    if (earlier) /* it got ours when the window opened, just before its first function */
        earlier->runs = false;
    if (_PyEval_SetProfile(state, NULL, NULL))
        return NULL;
    if (before != Py_None) {
        PyObject *set = PySys_GetObject("setprofile");
        PyObject *done = set ? PyObject_CallOneArg(set, before) : NULL;
        Py_XDECREF(done);
        if (!done)
            return NULL;
    }
    if (active && profile_thread(state))
        return NULL;
    bool begins = PyUnicode_Check(event) && PyUnicode_CompareWithASCIIString(event, "call") == 0;
    if (begins && !earlier && PyFrame_Check(frame)) {
        op_frame *f = ((PyFrameObject *)frame)->f_frame;
        begin_function(f->f_code, f);
    }
    Py_RETURN_NONE;
}

#endif

/* ---- on and off -------------------------------------------------------------------------- */

static PyObject *calls_start(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *prefixes, *hidden, *module_code;
    int only;
    if (!PyArg_ParseTuple(args, "O!UOp:calls_start", &PyTuple_Type, &prefixes, &hidden, &module_code,
                          &only))
        return NULL;
    if (op_pynames_open(prefixes, hidden, module_code))
        return NULL;
    modules_only = only;
    active = true;
#if PY_VERSION_HEX < 0x030C0000
    if (each_thread(profile_thread)) {
        active = false;
        return NULL;
    }
#endif
    uint32_t window = op_recording();
    if (window)
        arrive(window, op_frame_of(PyThreadState_Get()));
    __atomic_store_n(&op_lines_noted.has_calls, true, __ATOMIC_RELAXED);
    if (!only)
        __atomic_store_n(&op_lines_noted.note, note_line, __ATOMIC_RELAXED);
    Py_RETURN_NONE;
}

/* Returns whether another profile function replaced ours on a thread. */
static PyObject *calls_stop(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    bool displaced = false;
    active = false;
    __atomic_store_n(&op_lines_noted.note, NULL, __ATOMIC_RELAXED);
    __atomic_store_n(&op_lines_noted.has_calls, false, __ATOMIC_RELAXED);
#if PY_VERSION_HEX < 0x030C0000
    displaced = is_displaced();
    if (each_thread(leave_thread))
        return NULL;
    forget_threads();
#endif
    op_pynames_close();
    return PyBool_FromLong(displaced);
}

#define FAST(name) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, NULL}

PyMethodDef op_pycall_functions[] = {{"calls_start", calls_start, METH_VARARGS, NULL},
                                     {"calls_stop", calls_stop, METH_NOARGS, NULL},
#if PY_VERSION_HEX >= 0x030C0000
                                     FAST(on_begin),
                                     FAST(on_end),
                                     FAST(on_call),
                                     FAST(on_call_end),
#else
                                     FAST(profile_new_thread),
#endif
                                     {NULL, NULL, 0, NULL}};
