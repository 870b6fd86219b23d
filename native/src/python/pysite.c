#include "python/pysite.h"

#include "core/names.h"
#include "python/pyframe.h"
#include "sources/call.h"
#include "sources/sites.h"

#include <string.h>

#define LONGEST 4096u /* bytes of a path or a function's name; the rest is cut */

typedef struct text {
    size_t length;
    char bytes[LONGEST];
} text;

/* Folders whose files are not the user's own, each with a separator at its end. They are never freed: a
 * thread may be at a lookup when a window closes. */
typedef struct folders {
    size_t count;
    struct folders *outdated;
    const char *paths[];
} folders;

static folders *libraries;
static bool with_callers; /* a site is noted with those that it is reached from */

#define MOST_CALLERS 32 /* of one op: recursion would take all numbers */

/* A string that a code object holds, in UTF-8 (surrogates pass), without the GIL: nobody changes it,
 * and the frame that runs keeps it. */
static void take_text(text *out, PyObject *string) {
    out->length = 0;
    Py_ssize_t count = PyUnicode_GET_LENGTH(string);
    for (Py_ssize_t i = 0; i < count && out->length + 4 < LONGEST; i++) {
        Py_UCS4 c = PyUnicode_READ_CHAR(string, i);
        char *at = out->bytes + out->length;
        if (c < 0x80) {
            at[0] = (char)c;
            out->length += 1;
        } else if (c < 0x800) {
            at[0] = (char)(0xc0 | c >> 6);
            at[1] = (char)(0x80 | (c & 0x3f));
            out->length += 2;
        } else if (c < 0x10000) {
            at[0] = (char)(0xe0 | c >> 12);
            at[1] = (char)(0x80 | (c >> 6 & 0x3f));
            at[2] = (char)(0x80 | (c & 0x3f));
            out->length += 3;
        } else {
            at[0] = (char)(0xf0 | c >> 18);
            at[1] = (char)(0x80 | (c >> 12 & 0x3f));
            at[2] = (char)(0x80 | (c >> 6 & 0x3f));
            at[3] = (char)(0x80 | (c & 0x3f));
            out->length += 4;
        }
    }
    out->bytes[out->length] = 0;
}

/* As of `<frozen importlib>`: it has no line that anybody could look at. */
static bool is_in_no_file(const text *path) { return path->length == 0 || path->bytes[0] == '<'; }

static bool is_installed(const text *path) {
    const folders *known = __atomic_load_n(&libraries, __ATOMIC_ACQUIRE);
    for (size_t i = 0; i < known->count; i++)
        if (strncmp(path->bytes, known->paths[i], strlen(known->paths[i])) == 0)
            return true;
    return false;
}

/* Code that is made at run time comes and goes, and all that it is made of gets the addresses of what
 * went before it: its lines must differ where they begin. */
static inline uint64_t mark_of(const PyCodeObject *code) {
    size_t size = (size_t)PyBytes_GET_SIZE(code->co_linetable);
    uint64_t start = 0;
    memcpy(&start, PyBytes_AS_STRING(code->co_linetable), size < sizeof start ? size : sizeof start);
    uint64_t other = (uint64_t)(uintptr_t)code->co_filename ^
                     (uint64_t)(uintptr_t)code->co_qualname << 20 ^
                     (uint64_t)(uint32_t)code->co_firstlineno << 44 ^ size;
    return start ^ other * 0x9e3779b97f4a7c15u;
}

static __attribute__((noinline)) uint16_t meet(const op_instruction *met, PyCodeObject *code) {
    text path;
    take_text(&path, code->co_filename);
    if (is_in_no_file(&path) || is_installed(&path))
        return op_sites_add(met, NULL);
    text name;
    take_text(&name, code->co_qualname);
    int line = PyCode_Addr2Line(code, (int)met->offset);
    const op_site place = {.file = op_names_intern(path.bytes, path.length),
                           .function = op_names_intern(name.bytes, name.length),
                           .line = line > 0 ? (uint32_t)line : 0};
    return op_sites_add(met, &place);
}

static uint16_t site_of(op_frame *f, PyCodeObject *code) {
    int offset = op_frame_offset(f);
    const op_instruction here = {.code = code,
                                 .lines = code->co_linetable,
                                 .mark = mark_of(code),
                                 .offset = offset < 0 ? 0 : (uint32_t)offset};
    const op_instruction *known = op_sites_look(&here);
    return known ? known->site : meet(&here, code);
}

/* The innermost site under those that it is reached from, down to the engine's where that is around it.
 * This takes the lock for each: it is for a test that is measured once more, as it fails. */
static __attribute__((noinline)) uint16_t chain_from(op_frame *innermost, const op_frame *end,
                                                     uint16_t outermost) {
    uint16_t sites[MOST_CALLERS], chain = outermost;
    uint32_t count = 0;
    for (op_frame *f = innermost; f && f != end && count < MOST_CALLERS; f = f->previous) {
        uint16_t site = _PyFrame_IsIncomplete(f) ? OP_SITE_NONE : site_of(f, op_frame_code(f));
        if (site != OP_SITE_NONE && site != OP_SITE_BEYOND)
            sites[count++] = site;
    }
    if (!count)
        return OP_SITE_NONE;
    while (count)
        chain = op_sites_under(sites[--count], chain);
    return chain;
}

/* Most of its time a walk waits for memory that the op before pushed out of the caches: it looks at as
 * few lines as it can. */
static uint16_t site_from(op_thread *t, op_frame *innermost, const op_frame *end) {
    if (__builtin_expect(__atomic_load_n(&with_callers, __ATOMIC_RELAXED), 0))
        return chain_from(innermost, end, end ? t->engine_site : OP_SITE_NONE);
    op_site_memo *memo = op_site_memo_of(t);
    if (!memo)
        return OP_SITE_NONE;
    for (op_frame *f = innermost; f && f != end; f = f->previous) {
        const PyCodeObject *code = op_frame_executable(f);
        const void **library = op_site_memo_library(memo, code);
        if (*library == code)
            continue;
        const void *at = op_frame_at(f);
        uint32_t slot = op_site_memo_slot(at);
        if (memo->own[slot].at == at)
            return memo->own[slot].site;
        if (_PyFrame_IsIncomplete(f))
            continue;
        uint16_t site = site_of(f, op_frame_code(f));
        if (site == OP_SITE_NONE) { /* as is any other instruction of this code */
            *library = code;
            continue;
        }
        memo->own[slot].at = at;
        return memo->own[slot].site = site == OP_SITE_BEYOND ? OP_SITE_NONE : site;
    }
    return OP_SITE_NONE;
}

/* Of node after node the engine's caller is the same, until Python runs an op again: the frames, which
 * its nodes push out of the caches, are walked once. Backward ops get their forward op's site later,
 * but for those that have none. */
static uint16_t site_of_engine(op_thread *t, PyThreadState *state, op_frame *innermost) {
    const void *at = op_frame_at(innermost);
    if (t->engine_frame != innermost || t->engine_at != at || t->engine_window != t->window) {
        t->engine_site = site_from(t, innermost, NULL);
        t->engine_frame = innermost;
        t->engine_at = at;
        t->engine_state = state;
        t->engine_window = t->window;
    }
    return t->engine_site;
}

/* Whether no Python runs between the engine's caller and here, as in nearly every node. */
static bool is_where_engine_was_called(const op_thread *t) {
    if (!t->engine_state || t->engine_window != t->window)
        return false;
    const op_frame *innermost = op_frame_raw(t->engine_state);
    return innermost == t->engine_frame && op_frame_at(innermost) == t->engine_at;
}

/* Also without the GIL, which torch gives up before it runs an op. */
static uint16_t site_here(enum op_caller caller, bool in_node) {
    op_thread *t = op_self;
    bool is_engines = caller == OP_CALLED_BY_ENGINE;
    if (in_node && !is_engines && is_where_engine_was_called(t))
        return OP_SITE_NONE;
    PyThreadState *state = PyGILState_GetThisThreadState();
    op_frame *innermost = op_frame_raw(state);
    if (innermost && is_engines)
        return site_of_engine(t, state, innermost);
    if (in_node) /* no further out than the engine: its ops are not called where that was */
        return site_from(t, innermost, t->engine_frame);
    t->engine_frame = NULL;
    t->engine_state = NULL;
    return site_from(t, innermost, NULL);
}

static bool is_known(PyObject *paths) {
    if (!libraries || libraries->count != (size_t)PyTuple_GET_SIZE(paths))
        return false;
    for (size_t i = 0; i < libraries->count; i++) {
        const char *path = PyUnicode_AsUTF8(PyTuple_GET_ITEM(paths, (Py_ssize_t)i));
        if (!path) {
            PyErr_Clear();
            return false;
        }
        if (strcmp(path, libraries->paths[i]) != 0)
            return false;
    }
    return true;
}

/* 0, or -1 with an exception set. */
static int keep_libraries(PyObject *paths) {
    size_t count = (size_t)PyTuple_GET_SIZE(paths);
    folders *fresh = PyMem_RawCalloc(1, sizeof *fresh + count * sizeof *fresh->paths);
    if (!fresh) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        const char *path = PyUnicode_AsUTF8(PyTuple_GET_ITEM(paths, (Py_ssize_t)i));
        char *copy = path ? PyMem_RawMalloc(strlen(path) + 1) : NULL;
        if (!copy) {
            if (path)
                PyErr_NoMemory();
            while (i--)
                PyMem_RawFree((char *)fresh->paths[i]);
            PyMem_RawFree(fresh);
            return -1;
        }
        fresh->paths[i] = strcpy(copy, path);
    }
    fresh->count = count;
    fresh->outdated = libraries;
    __atomic_store_n(&libraries, fresh, __ATOMIC_RELEASE);
    return 0;
}

static destructor free_code;

static void free_code_and_memos(PyObject *code) {
    __atomic_fetch_add(&op_sites_epoch, 1, __ATOMIC_RELEASE);
    free_code(code);
}

/* No watcher of CPython's tells before 3.12 that a code object is freed. It stays for good: who came
 * after us may call ours. */
static void watch_code(void) {
    if (free_code)
        return;
    free_code = PyCode_Type.tp_dealloc;
    PyCode_Type.tp_dealloc = free_code_and_memos;
}

static PyObject *sites_start(PyObject *Py_UNUSED(self), PyObject *args) {
    PyObject *paths;
    int callers;
    if (!PyArg_ParseTuple(args, "O!p:sites_start", &PyTuple_Type, &paths, &callers))
        return NULL;
    if (!is_known(paths) && keep_libraries(paths))
        return NULL;
    watch_code();
    op_sites_begin();
    __atomic_store_n(&with_callers, callers != 0, __ATOMIC_RELAXED);
    __atomic_store_n(&op_lines_noted.here, site_here, __ATOMIC_RELEASE);
    Py_RETURN_NONE;
}

static PyObject *sites_stop(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(args)) {
    __atomic_store_n(&op_lines_noted.here, NULL, __ATOMIC_RELAXED);
    Py_RETURN_NONE;
}

PyMethodDef op_pysite_functions[] = {
    {"sites_start", sites_start, METH_VARARGS,
     PyDoc_STR(
         "Note the call site of each outermost op and range from here on, perhaps with its callers.")},
    {"sites_stop", sites_stop, METH_NOARGS, PyDoc_STR("Note no more call sites.")},
    {NULL, NULL, 0, NULL}};
