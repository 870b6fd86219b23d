#include "python/pysite.h"

#include "core/names.h"
#include "python/pyframe.h"
#include "sources/call.h"
#include "sources/sites.h"

#include <string.h>

#define LONGEST 4096u /* bytes of a path or function name; the rest is cut */

typedef struct text {
    size_t length;
    char bytes[LONGEST];
} text;

/* Folders whose files are not the user's own, each with a trailing separator. They are never freed,
 * because a thread may be reading them when a window closes. */
typedef struct folders {
    size_t count;
    struct folders *outdated;
    const char *paths[];
} folders;

static folders *libraries;

#define MOST_CALLERS 32 /* per op: recursion would use up all numbers */

/* Converts a string of a code object to UTF-8 (surrogates pass) without the GIL: nobody changes it, and
 * the running frame keeps it alive. */
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

/* Such as `<frozen importlib>`, which has no line that anybody could look at. */
static bool is_in_no_file(const text *path) { return path->length == 0 || path->bytes[0] == '<'; }

static bool is_installed(const text *path) {
    const folders *known = __atomic_load_n(&libraries, __ATOMIC_ACQUIRE);
    for (size_t i = 0; i < known->count; i++)
        if (strncmp(path->bytes, known->paths[i], strlen(known->paths[i])) == 0)
            return true;
    return false;
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
                                 .mark = op_code_mark(code),
                                 .offset = offset < 0 ? 0 : (uint32_t)offset};
    const op_instruction *known = op_sites_look(&here);
    return known ? known->site : meet(&here, code);
}

/* The innermost site below those it is reached from, up to the engine's if that is around it. This
 * takes the lock once per site: it is for a failed test that is measured again. */
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

/* The site of a frame whose code is not in the memo; OP_SITE_NONE: not the user's code. */
static uint16_t look_up(op_site_memo *memo, op_frame *f) {
    bool is_entry = op_frame_is_entry(f);
    if (!is_entry && _PyFrame_IsIncomplete(f))
        return OP_SITE_NONE;
    uint16_t site = is_entry ? OP_SITE_NONE : site_of(f, op_frame_code(f));
    if (site == OP_SITE_NONE) { /* true for every instruction of this code */
        const void *code = op_frame_executable(f);
        *op_site_memo_library(memo, code) = code;
    }
    return site;
}

/* The site of the innermost frame that is the user's, by a lookup of each frame. */
static __attribute__((noinline)) uint16_t walk(op_site_memo *memo, op_frame *innermost,
                                               const op_frame *end) {
    bool is_chain = !end;
    uint64_t chain = 0;
    for (op_frame *f = innermost; f != end && f; f = f->previous) {
        const PyCodeObject *code = op_frame_executable(f);
        if (*op_site_memo_library(memo, code) != code) {
            uint16_t site = look_up(memo, f);
            if (site != OP_SITE_NONE) {
                if (is_chain) {
                    uint64_t key = op_chain_with(chain, op_frame_at(f));
                    uint32_t slot = op_site_memo_slot(key);
                    memo->calls[slot].key = key;
                    memo->calls[slot].site = site;
                    *op_site_memo_user(memo, code) = code;
                }
                return site;
            }
            is_chain = is_chain && *op_site_memo_library(memo, code) == code;
        }
        chain = op_chain_with(chain, code);
    }
    return OP_SITE_NONE;
}

/* A walk mostly waits for memory, including code, that the previous op evicted from the caches, so it
 * touches as little as possible: the frames, and a number that stands for all of them. */
static uint16_t site_from(op_thread *t, op_frame *innermost, const op_frame *end) {
    op_site_memo *memo = op_site_memo_of(t);
    if (!memo)
        return OP_SITE_NONE;
    uint16_t site = OP_SITE_NONE;
    uint64_t chain = 0;
    for (op_frame *f = end ? NULL : innermost; f; f = f->previous) {
        const PyCodeObject *code = op_frame_executable(f);
        if (*op_site_memo_user(memo, code) == code) {
            uint64_t key = op_chain_with(chain, op_frame_at(f));
            uint32_t slot = op_site_memo_slot(key);
            if (memo->calls[slot].key == key)
                site = memo->calls[slot].site;
            break;
        }
        chain = op_chain_with(chain, code);
    }
    if (site == OP_SITE_NONE)
        site = walk(memo, innermost, end);
    return site == OP_SITE_BEYOND ? OP_SITE_NONE : site;
}

static uint16_t any_site_from(op_thread *t, op_frame *innermost, const op_frame *end) {
    return op_lines_noted.has_callers ? chain_from(innermost, end, end ? t->engine_site : OP_SITE_NONE)
                                      : site_from(t, innermost, end);
}

/* The main interpreter's first state, which is the main thread's, lives as long as Python. */
static __attribute__((noinline)) op_frame *find_innermost(op_thread *t) {
    PyThreadState *state = PyGILState_GetThisThreadState();
    if (state && PyThreadState_GetID(state) == 1 &&
        PyThreadState_GetInterpreter(state) == PyInterpreterState_Main())
        t->python = op_frame_word(state);
    return op_frame_raw(state);
}

static inline op_frame *innermost_of(op_thread *t) {
    return t->python ? (op_frame *)*op_frame_place(t->python) : find_innermost(t);
}

/* Whether the frame that runs is the engine's caller, for the same call as at the node before: torch's
 * own frames are the same for calls of other lines too. */
static inline bool is_at_engine(const op_thread *t, const op_frame *innermost) {
    if (!innermost || innermost != t->engine_frame)
        return false;
    const op_frame *f = innermost;
    for (uint32_t links = t->engine_links; links && f; links--)
        f = f->previous;
    return f && op_frame_at(f) == t->engine_at;
}

/* The engine's caller is the same for each of its nodes until Python runs an op again. Backward ops
 * later get the site of their forward op, if they have one. */
static __attribute__((noinline)) void find_engine(op_thread *t, op_frame *innermost) {
    t->engine_site = any_site_from(t, innermost, NULL);
    t->engine_frame = innermost;
    t->engine_links = 0;
    t->engine_at = op_frame_at(innermost);
    op_site_memo *memo = t->sites;
    uint32_t links = 0;
    for (op_frame *f = memo ? innermost : NULL; f; f = f->previous, links++) {
        const void *code = op_frame_executable(f);
        if (*op_site_memo_user(memo, code) == code) {
            t->engine_links = links;
            t->engine_at = op_frame_at(f);
            break;
        }
    }
}

static inline void enter_node(op_thread *t, uint32_t depth) {
    op_forget_line(t);
    if (t->python && !op_lines_noted.has_calls) {
        t->engine_python = *t->python;
        t->engine_word = op_frame_place(t->python);
        t->node = depth;
    }
}

/* Inside a node the search ends at the engine, whose caller did not call the node's ops. */
static __attribute__((noinline)) void note_with_care(const op_slot *slot, enum op_caller caller) {
    op_thread *t = slot->thread;
    op_event *e = slot->event;
    enum op_line line = op_line_of(slot, caller);
    op_forget_line(t);
    if (op_is_plain(e) && !op_lines_noted.has_calls)
        t->lined = line == OP_LINE_SHARED ? e->depth - 1u : e->depth;
    if (line == OP_LINE_SHARED)
        return;
    op_frame *innermost = innermost_of(t);
    if (caller == OP_CALLED_BY_ENGINE && innermost) {
        if (op_lines_noted.has_callers || !is_at_engine(t, innermost))
            find_engine(t, innermost);
        e->line = t->engine_site;
        enter_node(t, e->depth);
    } else if (line == OP_LINE_OWN) {
        t->engine_frame = NULL;
        e->line = any_site_from(t, innermost, NULL);
    } else if (innermost && innermost != t->engine_frame) {
        e->line = any_site_from(t, innermost, t->engine_frame);
    } else if (innermost && !is_at_engine(t, innermost)) { /* the user's own frame called a node */
        e->line = any_site_from(t, innermost, NULL);
    } /* otherwise the node runs no Python, as nearly all nodes */
}

/* May run without the GIL, which torch releases before it runs an op. The usual case is handled here,
 * in few instructions, because the processor has to fetch them for each op. */
static void note_site(const op_slot *slot, enum op_caller caller) {
    op_thread *t = slot->thread;
    op_event *e = slot->event;
    if (caller == OP_CALLED_BY_ENGINE && !e->depth && !op_lines_noted.has_callers &&
        is_at_engine(t, innermost_of(t))) {
        enter_node(t, 0);
        e->line = t->engine_site;
        return;
    }
    if (caller == OP_CALLED_BY_ENGINE || e->depth || !op_is_plain(e) || op_lines_noted.has_calls ||
        op_lines_noted.has_callers) {
        note_with_care(slot, caller);
        return;
    }
    t->lined = 0;
    t->node = OP_NOT_LINED;
    t->engine_frame = NULL;
    e->line = site_from(t, innermost_of(t), NULL);
}

bool op_is_users(PyCodeObject *code) {
    text path;
    take_text(&path, code->co_filename);
    return !is_in_no_file(&path) && !is_installed(&path);
}

/* A new reference to bytes in the encoding of take_text(), or NULL with an exception set. */
static PyObject *encoded(PyObject *path) {
    return PyUnicode_AsEncodedString(path, "utf-8", "surrogatepass");
}

static bool is_known(PyObject *paths) {
    if (!libraries || libraries->count != (size_t)PyTuple_GET_SIZE(paths))
        return false;
    for (size_t i = 0; i < libraries->count; i++) {
        PyObject *path = encoded(PyTuple_GET_ITEM(paths, (Py_ssize_t)i));
        bool is_same = path && strcmp(PyBytes_AS_STRING(path), libraries->paths[i]) == 0;
        Py_XDECREF(path);
        PyErr_Clear();
        if (!is_same)
            return false;
    }
    return true;
}

/* Returns 0, or -1 with an exception set. */
static int keep_libraries(PyObject *paths) {
    size_t count = (size_t)PyTuple_GET_SIZE(paths);
    folders *fresh = PyMem_RawCalloc(1, sizeof *fresh + count * sizeof *fresh->paths);
    if (!fresh) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        PyObject *path = encoded(PyTuple_GET_ITEM(paths, (Py_ssize_t)i));
        char *copy = path ? PyMem_RawMalloc((size_t)PyBytes_GET_SIZE(path) + 1) : NULL;
        if (copy)
            fresh->paths[i] = strcpy(copy, PyBytes_AS_STRING(path));
        else if (path)
            PyErr_NoMemory();
        Py_XDECREF(path);
        if (!copy) {
            while (i--)
                PyMem_RawFree((char *)fresh->paths[i]);
            PyMem_RawFree(fresh);
            return -1;
        }
    }
    fresh->count = count;
    fresh->outdated = libraries;
    __atomic_store_n(&libraries, fresh, __ATOMIC_RELEASE);
    return 0;
}

int op_know_libraries(PyObject *paths) { return is_known(paths) ? 0 : keep_libraries(paths); }

static destructor free_code;

static void free_code_and_memos(PyObject *code) {
    op_sites_forget();
    free_code(code);
}

/* Before 3.12 CPython does not report freed code objects. Permanent: a later hook may call ours. */
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
    if (op_know_libraries(paths))
        return NULL;
    watch_code();
    if (op_self) {
        op_self->python = NULL; /* an embedded Python may have been restarted */
        op_forget_line(op_self);
    }
    op_sites_begin();
    __atomic_store_n(&op_lines_noted.has_callers, callers != 0, __ATOMIC_RELAXED);
    __atomic_store_n(&op_lines_noted.note, note_site, __ATOMIC_RELEASE);
    Py_RETURN_NONE;
}

static PyObject *sites_stop(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(args)) {
    __atomic_store_n(&op_lines_noted.note, NULL, __ATOMIC_RELAXED);
    Py_RETURN_NONE;
}

PyMethodDef op_pysite_functions[] = {
    {"sites_start", sites_start, METH_VARARGS,
     PyDoc_STR("Note the call site of each outermost op and range from now on, optionally with its "
               "callers.")},
    {"sites_stop", sites_stop, METH_NOARGS, PyDoc_STR("Stop noting call sites.")},
    {NULL, NULL, 0, NULL}};
