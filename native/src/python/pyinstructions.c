#include "python/pyinstructions.h"

#include "python/pyframe.h"

#include <stdbool.h>
#include <stdint.h>

#define FIRST_SLOTS 1024u /* a power of two */

/* Bytecodes that a code object ran. It owns the object, so that no other one gets the address. */
typedef struct slot {
    PyCodeObject *code;
    uint64_t count;
} slot;

/* Guarded by the GIL: the counts since the last start. Other threads than the starting one are not
 * counted by code, because what they run depends on the machine; only that they ran is reported. */
static struct {
    slot *slots;
    size_t capacity;
    size_t used;
    slot *last; /* most events have the code object of the previous one */
    const PyThreadState *thread;
    uint64_t elsewhere;
    bool is_short; /* out of memory: the counts are incomplete */
    uint64_t threads_before;
} counts;

static inline size_t home_of(const PyCodeObject *code, size_t capacity) {
    return (size_t)(((uint64_t)(uintptr_t)code >> 4) * 0x9E3779B97F4A7C15u >> 20) & (capacity - 1);
}

static slot *place_of(slot *slots, size_t capacity, const PyCodeObject *code) {
    size_t at = home_of(code, capacity);
    while (slots[at].code && slots[at].code != code)
        at = (at + 1) & (capacity - 1);
    return &slots[at];
}

static bool grow(void) {
    size_t wider = counts.capacity ? counts.capacity * 2 : FIRST_SLOTS;
    slot *slots = PyMem_RawCalloc(wider, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < counts.capacity; i++)
        if (counts.slots[i].code)
            *place_of(slots, wider, counts.slots[i].code) = counts.slots[i];
    PyMem_RawFree(counts.slots);
    counts.slots = slots;
    counts.capacity = wider;
    return true;
}

static __attribute__((noinline)) void meet(PyCodeObject *code) {
    counts.last = NULL;
    if (counts.used * 2 >= counts.capacity && !grow()) {
        counts.is_short = true;
        return;
    }
    slot *found = place_of(counts.slots, counts.capacity, code);
    if (!found->code) {
        found->code = (PyCodeObject *)Py_NewRef((PyObject *)code);
        counts.used++;
    }
    counts.last = found;
    found->count++;
}

static inline void count(PyCodeObject *code) {
    if (__builtin_expect(PyThreadState_Get() != counts.thread, 0))
        counts.elsewhere++;
    else if (__builtin_expect(counts.last && counts.last->code == code, 1))
        counts.last->count++;
    else
        meet(code);
}

static void forget(void) {
    slot *slots = counts.slots;
    size_t capacity = counts.capacity;
    counts.slots = counts.last = NULL;
    counts.capacity = counts.used = 0;
    for (size_t i = 0; i < capacity; i++)
        Py_XDECREF((PyObject *)slots[i].code); /* may run code */
    PyMem_RawFree(slots);
}

#if PY_VERSION_HEX >= 0x030C0000

static PyObject *on_instruction(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    (void)module;
    (void)n;
    count((PyCodeObject *)args[0]);
    Py_RETURN_NONE;
}

static int watch(void) { return 0; }

static bool unwatch(void) { return true; }

#else

static int trace_function(PyObject *unused, PyFrameObject *frame, int what, PyObject *arg) {
    (void)unused;
    (void)arg;
    if (what == PyTrace_CALL) {
        frame->f_trace_opcodes = 1;
        frame->f_trace_lines = 0;
        counts.elsewhere += PyThreadState_Get() != counts.thread;
    } else if (what == PyTrace_OPCODE) {
        count(frame->f_frame->f_code);
    }
    return 0;
}

static PyThreadState *first_thread(void) {
    return PyInterpreterState_ThreadHead(PyInterpreterState_Get());
}

/* 0, or -1 with an exception set: a thread has one trace function, and a debugger keeps its own. */
static int watch(void) {
    for (PyThreadState *s = first_thread(); s; s = PyThreadState_Next(s))
        if (s->c_tracefunc) {
            PyErr_SetString(PyExc_RuntimeError, "a thread has a trace function");
            return -1;
        }
    for (PyThreadState *s = first_thread(); s; s = PyThreadState_Next(s))
        if (_PyEval_SetTrace(s, trace_function, NULL))
            return -1;
    counts.threads_before = op_threads_made();
    return 0;
}

/* Whether the thread's trace function is still ours; another one stays. */
static bool unwatch(void) {
    bool is_ours = PyThreadState_Get()->c_tracefunc == trace_function;
    counts.elsewhere += op_threads_made() - counts.threads_before;
    for (PyThreadState *s = first_thread(); s; s = PyThreadState_Next(s))
        if (s->c_tracefunc == trace_function && _PyEval_SetTrace(s, NULL, NULL))
            PyErr_Clear();
    return is_ours;
}

#endif

static PyObject *instructions_start(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    forget();
    counts.elsewhere = 0;
    counts.is_short = !grow();
    counts.thread = PyThreadState_Get();
    if (watch()) {
        counts.thread = NULL;
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *told_row(const slot *counted) {
    return Py_BuildValue("(OOK)", counted->code->co_filename, counted->code->co_qualname,
                         (unsigned long long)counted->count);
}

/* Returns the rows, whether other threads ran code, and whether the counts are complete. */
static PyObject *instructions_stop(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    bool is_whole = unwatch() && !counts.is_short;
    counts.thread = NULL;
    PyObject *rows = PyList_New(0);
    for (size_t i = 0; rows && i < counts.capacity; i++) {
        if (!counts.slots[i].code)
            continue;
        PyObject *row = told_row(&counts.slots[i]);
        if (!row || PyList_Append(rows, row))
            Py_CLEAR(rows);
        Py_XDECREF(row);
    }
    forget();
    return rows ? Py_BuildValue("(NNN)", rows, PyBool_FromLong(counts.elsewhere != 0),
                                PyBool_FromLong(is_whole))
                : NULL;
}

#define FAST(name) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, NULL}

PyMethodDef op_pyinstructions_functions[] = {
    {"instructions_start", instructions_start, METH_NOARGS,
     PyDoc_STR("Count the bytecodes that this thread runs from now on.")},
    {"instructions_stop", instructions_stop, METH_NOARGS,
     PyDoc_STR("Stop counting; return (file, function, bytecodes) of each code object, whether other "
               "threads ran code, and whether the counts are complete.")},
#if PY_VERSION_HEX >= 0x030C0000
    FAST(on_instruction),
#endif
    {NULL, NULL, 0, NULL}};
