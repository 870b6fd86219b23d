/* The Python frames of the calling thread, without creating frame objects. CPython has no public API
 * for this, so it uses the internal headers of the very version that the extension is built for. Only
 * the thread itself changes its frames, so the GIL is not needed. All differences between the
 * frames of CPython's releases are in this file. */
#ifndef OP_PYFRAME_H
#define OP_PYFRAME_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE 1
#endif
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <internal/pycore_code.h>
#if PY_VERSION_HEX >= 0x030E0000
#include <internal/pycore_interpframe.h>
#else
#include <internal/pycore_frame.h>
#endif
#if PY_VERSION_HEX < 0x030C0000
#include <internal/pycore_gc.h>
#include <internal/pycore_interp.h>
#endif
#pragma GCC diagnostic pop

typedef struct _PyInterpreterFrame op_frame;

/* The first frame from `f` outwards that runs Python code. */
static inline op_frame *op_frame_complete(op_frame *f) {
    while (f && _PyFrame_IsIncomplete(f))
        f = f->previous;
    return f;
}

/* A thread's innermost frame, which may not run Python code yet; NULL: none. */
static inline op_frame *op_frame_raw(PyThreadState *state) {
    if (!state)
        return NULL;
#if PY_VERSION_HEX >= 0x030D0000
    return state->current_frame;
#else
    return state->cframe->current_frame;
#endif
}

/* The word of a thread's state that tells what Python runs there. It has another value whenever C code
 * that Python called runs Python again, or (before 3.13, of another greenlet) the same value, and
 * another innermost frame. */
static inline const void *const *op_frame_word(const PyThreadState *state) {
#if PY_VERSION_HEX >= 0x030D0000
    return (const void *const *)&state->current_frame;
#else
    return (const void *const *)&state->cframe;
#endif
}

/* Where the innermost frame is, as long as that word has its value. */
static inline const void *const *op_frame_place(const void *const *word) {
#if PY_VERSION_HEX >= 0x030D0000
    return word;
#else
    return (const void *const *)&((const _PyCFrame *)*word)->current_frame;
#endif
}

/* The innermost frame that runs Python code. */
static inline op_frame *op_frame_of(PyThreadState *state) {
    return op_frame_complete(op_frame_raw(state));
}

/* Whether an allocation of this size on this thread belongs to a trace or profile function, or looks
 * like it does: before 3.12 the interpreter creates the frame object for the function before it marks
 * the thread as tracing. */
static inline bool op_frame_is_traced_for(size_t bytes) {
    PyThreadState *state = PyGILState_GetThisThreadState();
    if (!state || state->tracing)
        return state != NULL;
#if PY_VERSION_HEX >= 0x030C0000
    (void)bytes;
    return false;
#else
    op_frame *f = state->cframe->use_tracing ? state->cframe->current_frame : NULL;
    if (!f || _PyFrame_IsIncomplete(f) || f->frame_obj)
        return false;
    Py_ssize_t slots = f->f_code->co_nlocalsplus + f->f_code->co_stacksize;
    return bytes == _PyObject_VAR_SIZE(&PyFrame_Type, slots) + sizeof(PyGC_Head);
#endif
}

#if PY_VERSION_HEX < 0x030C0000
/* How many Python threads there have been so far. */
static inline uint64_t op_threads_made(void) {
    return PyInterpreterState_Get()->threads.next_unique_id;
}
#endif

static inline op_frame *op_frame_back(op_frame *f) { return op_frame_complete(f->previous); }

/* What a frame runs: a code object, or another object if it runs no Python code. */
static inline const PyCodeObject *op_frame_executable(const op_frame *f) {
#if PY_VERSION_HEX >= 0x030E0000
    return (const PyCodeObject *)PyStackRef_AsPyObjectBorrow(f->f_executable);
#elif PY_VERSION_HEX >= 0x030D0000
    return (const PyCodeObject *)f->f_executable;
#else
    return f->f_code;
#endif
}

/* Whether the frame stands for C code that called Python. */
static inline bool op_frame_is_entry(const op_frame *f) {
#if PY_VERSION_HEX >= 0x030E0000
    return f->owner >= FRAME_OWNED_BY_INTERPRETER;
#elif PY_VERSION_HEX >= 0x030C0000
    return f->owner == FRAME_OWNED_BY_CSTACK;
#else
    (void)f;
    return false;
#endif
}

static inline PyCodeObject *op_frame_code(op_frame *f) {
#if PY_VERSION_HEX >= 0x030D0000
    return _PyFrame_GetCode(f);
#else
    return f->f_code;
#endif
}

/* Byte offset of the current instruction; negative before the first. */
static inline int op_frame_offset(op_frame *f) {
    return _PyInterpreterFrame_LASTI(f) * (int)sizeof(_Py_CODEUNIT);
}

/* Byte offset of `RESUME`, the instruction that a call begins with. */
static inline int op_code_start(const PyCodeObject *code) {
    return code->_co_firsttraceable * (int)sizeof(_Py_CODEUNIT);
}

/* Byte offset of the instruction after it. */
static inline int op_code_second(const PyCodeObject *code) {
#ifdef INLINE_CACHE_ENTRIES_RESUME
    int caches = INLINE_CACHE_ENTRIES_RESUME;
#else
    int caches = 0;
#endif
    return op_code_start(code) + (1 + caches) * (int)sizeof(_Py_CODEUNIT);
}

/* Address of the current instruction. */
static inline const void *op_frame_at(const op_frame *f) {
#if PY_VERSION_HEX >= 0x030D0000
    return f->instr_ptr;
#else
    return f->prev_instr;
#endif
}

/* The function's first argument, borrowed; NULL: none. */
static inline PyObject *op_frame_first_argument(op_frame *f) {
    if (op_frame_code(f)->co_argcount == 0)
        return NULL;
#if PY_VERSION_HEX >= 0x030E0000
    return PyStackRef_AsPyObjectBorrow(f->localsplus[0]);
#else
    return f->localsplus[0];
#endif
}

/* Code generated at run time comes and goes, and all its parts reuse the addresses of earlier code. So
 * its line table must differ at the beginning. */
static inline uint64_t op_code_mark(const PyCodeObject *code) {
    size_t size = (size_t)PyBytes_GET_SIZE(code->co_linetable);
    uint64_t start = 0;
    memcpy(&start, PyBytes_AS_STRING(code->co_linetable), size < sizeof start ? size : sizeof start);
    uint64_t other = (uint64_t)(uintptr_t)code->co_filename ^
                     (uint64_t)(uintptr_t)code->co_qualname << 20 ^
                     (uint64_t)(uint32_t)code->co_firstlineno << 44 ^ size;
    return start ^ other * 0x9e3779b97f4a7c15u;
}

#endif
