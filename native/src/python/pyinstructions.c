#include "python/pyinstructions.h"

#include "python/pyframe.h"
#include "python/pysite.h"

#include <opcode.h>
#include <stdbool.h>
#include <stdint.h>

#define FIRST_SLOTS 1024u /* a power of two */

/* What a code object ran, in bytecodes; or calls of it, by an instruction of the user's own code. */
typedef struct entry {
    PyCodeObject *code;   /* NULL: empty */
    PyCodeObject *caller; /* NULL: the count is of bytecodes */
    int offset;
    bool is_met;   /* its code is owned, so that no other one gets the address */
    bool is_users; /* once it is met */
    uint64_t count;
} entry;

typedef struct table {
    entry *entries;
    size_t capacity;
    size_t used;
} table;

/* Guarded by the GIL: the counts since the last start. Other threads than the starting one are not
 * counted by code, because what they run depends on the machine; only that they ran is reported. */
static struct {
    table codes;
    table calls;              /* of codes that are met */
    entry *last;              /* most events have the code object of the previous one */
    const PyCodeObject *code; /* of the last instruction, if its events tell it */
    const op_frame *frame;    /* that runs it */
    long offset;
    const PyThreadState *thread;
    uint64_t elsewhere;
    bool is_short; /* out of memory: the counts are incomplete */
    uint64_t threads_before;
} counts;

static inline size_t home_of(const PyCodeObject *code, size_t capacity) {
    return (size_t)(((uint64_t)(uintptr_t)code >> 4) * 0x9E3779B97F4A7C15u >> 20) & (capacity - 1);
}

static entry *place_of(const table *in, const entry *wanted) {
    size_t at = (home_of(wanted->code, in->capacity) ^ home_of(wanted->caller, in->capacity) * 31 ^
                 (size_t)wanted->offset * 7) &
                (in->capacity - 1);
    for (;; at = (at + 1) & (in->capacity - 1)) {
        entry *e = &in->entries[at];
        if (!e->code ||
            (e->code == wanted->code && e->caller == wanted->caller && e->offset == wanted->offset))
            return e;
    }
}

static bool grow(table *t) {
    table wider = {.capacity = t->capacity ? t->capacity * 2 : FIRST_SLOTS, .used = t->used};
    wider.entries = PyMem_RawCalloc(wider.capacity, sizeof *wider.entries);
    if (!wider.entries)
        return false;
    for (size_t i = 0; i < t->capacity; i++)
        if (t->entries[i].code)
            *place_of(&wider, &t->entries[i]) = t->entries[i];
    PyMem_RawFree(t->entries);
    *t = wider;
    return true;
}

/* NULL: no memory. Earlier places may have moved. */
static entry *entry_of(table *t, entry wanted) {
    if (t->used * 2 >= t->capacity && !grow(t))
        return NULL;
    entry *found = place_of(t, &wanted);
    if (!found->code) {
        *found = wanted;
        t->used++;
    }
    return found;
}

static entry *slot_of(PyCodeObject *code) {
    counts.last = NULL;
    entry *found = entry_of(&counts.codes, (entry){.code = code});
    if (!found) {
        counts.is_short = true;
    } else if (!found->is_met) {
        Py_INCREF((PyObject *)code);
        found->is_met = true;
        found->is_users = op_is_users(code);
    }
    return found;
}

static __attribute__((noinline)) void meet(PyCodeObject *code) {
    entry *found = slot_of(code);
    if (found)
        found->count++;
    counts.last = found;
}

static inline void count(PyCodeObject *code) {
    if (__builtin_expect(PyThreadState_Get() != counts.thread, 0))
        counts.elsewhere++;
    else if (__builtin_expect(counts.last && counts.last->code == code, 1))
        counts.last->count++;
    else
        meet(code);
}

/* A call begins: notes the innermost line of the user's own code around it. A library's function that a
 * library calls is not noted. Frames that ran nothing since the start are not the test's. */
static void note_call(PyCodeObject *code, op_frame *around) {
    const entry *called = slot_of(code);
    bool is_users = called && called->is_users;
    for (op_frame *f = around; called && f; f = op_frame_back(f)) {
        const entry *caller = slot_of(op_frame_code(f));
        if (caller && caller->count && caller->is_users) {
            int offset = op_frame_offset(f);
            entry *call = entry_of(
                &counts.calls,
                (entry){.code = code, .caller = caller->code, .offset = offset < 0 ? 0 : offset});
            if (call) /* else the counts are whole without it */
                call->count++;
            return;
        }
        if (!is_users)
            return;
    }
}

static void forget(void) {
    table codes = counts.codes, calls = counts.calls;
    counts.codes = counts.calls = (table){NULL, 0, 0};
    counts.last = NULL;
    PyMem_RawFree(calls.entries);
    for (size_t i = 0; i < codes.capacity; i++)
        Py_XDECREF((PyObject *)codes.entries[i].code); /* may run code */
    PyMem_RawFree(codes.entries);
}

#if PY_VERSION_HEX >= 0x030C0000

/* Whether the last instruction was a jump to the beginning of the same code, such as of `while True`.
 */
static bool jumped_back(PyCodeObject *code) {
    PyObject *bytes = code == counts.code ? PyCode_GetCode(code) : NULL;
    if (!bytes)
        return false;
    unsigned char opcode = (unsigned char)PyBytes_AS_STRING(bytes)[counts.offset];
    Py_DECREF(bytes);
    return opcode == JUMP_BACKWARD || opcode == JUMP_BACKWARD_NO_INTERRUPT;
}

/* `RESUME`, with which a call begins, has no event. Nor has an instruction whose LINE event another
 * tool just disabled, as coverage does in a function that it meets: then the call is known by its
 * caller, which ran the last instruction. */
static bool begins(PyCodeObject *code, long offset, op_frame *f) {
    if (offset == op_code_second(code))
        return !jumped_back(code);
    return code != counts.code && counts.frame && f && f->owner != FRAME_OWNED_BY_GENERATOR &&
           op_frame_back(f) == counts.frame;
}

static PyObject *on_instruction(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    (void)module;
    (void)n;
    PyCodeObject *code = (PyCodeObject *)args[0];
    long offset = PyLong_AsLong(args[1]);
    PyThreadState *state = PyThreadState_Get();
    if (state == counts.thread) {
        if (code != counts.code || offset == op_code_second(code)) {
            op_frame *f = op_frame_of(state);
            if (begins(code, offset, f))
                note_call(code, f && op_frame_code(f) == code ? op_frame_back(f) : f);
            counts.frame = f;
        }
        counts.code = code;
        counts.offset = offset;
    }
    count(code);
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
        op_frame *f = frame->f_frame;
        if (PyThreadState_Get() != counts.thread)
            counts.elsewhere++;
        else if (op_frame_offset(f) == op_code_start(f->f_code))
            note_call(f->f_code, op_frame_back(f));
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

static PyObject *instructions_start(PyObject *module, PyObject *libraries) {
    (void)module;
    if (!PyTuple_Check(libraries)) {
        PyErr_SetString(PyExc_TypeError, "give a tuple of folders");
        return NULL;
    }
    if (op_know_libraries(libraries))
        return NULL;
    forget();
    counts.code = NULL;
    counts.frame = NULL;
    counts.elsewhere = 0;
    counts.is_short = !grow(&counts.codes);
    counts.thread = PyThreadState_Get();
    if (watch()) {
        counts.thread = NULL;
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *told_row(const entry *counted) {
    return Py_BuildValue("(OOK)", counted->code->co_filename, counted->code->co_qualname,
                         (unsigned long long)counted->count);
}

static PyObject *told_call(const entry *noted) {
    int line = PyCode_Addr2Line(noted->caller, noted->offset);
    return Py_BuildValue("(OOOOiK)", noted->code->co_filename, noted->code->co_qualname,
                         noted->caller->co_filename, noted->caller->co_qualname, line > 0 ? line : 0,
                         (unsigned long long)noted->count);
}

static int append(PyObject *list, PyObject *row) {
    int failed = !row || PyList_Append(list, row);
    Py_XDECREF(row);
    return failed;
}

/* Returns the rows, the calls, whether other threads ran code, and whether the counts are complete. */
static PyObject *instructions_stop(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    bool is_whole = unwatch() && !counts.is_short;
    counts.thread = NULL;
    PyObject *rows = PyList_New(0), *calls = PyList_New(0);
    int failed = !rows || !calls;
    for (size_t i = 0; !failed && i < counts.codes.capacity; i++)
        if (counts.codes.entries[i].count)
            failed = append(rows, told_row(&counts.codes.entries[i]));
    for (size_t i = 0; !failed && i < counts.calls.capacity; i++)
        if (counts.calls.entries[i].count)
            failed = append(calls, told_call(&counts.calls.entries[i]));
    forget();
    if (failed) {
        Py_XDECREF(rows);
        Py_XDECREF(calls);
        return NULL;
    }
    return Py_BuildValue("(NNNN)", rows, calls, PyBool_FromLong(counts.elsewhere != 0),
                         PyBool_FromLong(is_whole));
}

#define FAST(name) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, NULL}

PyMethodDef op_pyinstructions_functions[] = {
    {"instructions_start", instructions_start, METH_O,
     PyDoc_STR("Count the bytecodes that this thread runs from now on, given the folders of installed "
               "packages.")},
    {"instructions_stop", instructions_stop, METH_NOARGS,
     PyDoc_STR(
         "Stop counting; return (file, function, bytecodes) of each code object, (file, function, "
         "caller's file, caller's function, line, calls) of each call by the user's own code, whether "
         "other threads ran code, and whether the counts are complete.")},
#if PY_VERSION_HEX >= 0x030C0000
    FAST(on_instruction),
#endif
    {NULL, NULL, 0, NULL}};
