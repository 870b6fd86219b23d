#include "python/pymem.h"

#include "core/names.h"
#include "core/record.h"
#include "python/pyframe.h"
#include "sources/malloc_watch.h"

#include <stdbool.h>

enum { RAW, MEM, OBJ, DOMAINS };

static const PyMemAllocatorDomain domains[DOMAINS] = {PYMEM_DOMAIN_RAW, PYMEM_DOMAIN_MEM,
                                                      PYMEM_DOMAIN_OBJ};
/* The allocators before ours, kept because a hook installed over ours may call ours forever. */
static PyMemAllocatorEx below[DOMAINS];
static bool installed[DOMAINS];
static bool reached[DOMAINS]; /* a call came through to our hook */
static bool active;
static uint32_t memory_name, out_of_memory_name;

static bool is_watching(void) {
    return __atomic_load_n(&active, __ATOMIC_RELAXED) && !op_memory_paused && op_recording();
}

static void changed(uint32_t name, const void *address, int64_t bytes) {
    const op_memory_change change = {.address = (uintptr_t)address,
                                     .bytes = bytes,
                                     .total_allocated = -1,
                                     .total_reserved = -1,
                                     .device_index = -1};
    op_memory_changed(name, &change);
}

/* Allocations of a tracer such as coverage do not belong to the test. What it frees may. */
static void *taken(void *block, size_t bytes) {
    if (!op_frame_is_traced_for(bytes))
        changed(block ? memory_name : out_of_memory_name, block, (int64_t)bytes);
    return block;
}

static const PyMemAllocatorEx *next_of(int domain) {
    if (!__atomic_load_n(&active, __ATOMIC_RELAXED))
        __atomic_store_n(&reached[domain], true, __ATOMIC_RELAXED);
    return &below[domain];
}

/* Python's object allocator gets large blocks from the raw allocator; each block is recorded once. */
static void *hook_malloc(int domain, size_t bytes) {
    const PyMemAllocatorEx *next = next_of(domain);
    if (!is_watching())
        return next->malloc(next->ctx, bytes);
    op_memory_paused = true;
    void *block = next->malloc(next->ctx, bytes);
    op_memory_paused = false;
    return taken(block, bytes);
}

static void *hook_calloc(int domain, size_t count, size_t size) {
    const PyMemAllocatorEx *next = next_of(domain);
    if (!is_watching())
        return next->calloc(next->ctx, count, size);
    op_memory_paused = true;
    void *block = next->calloc(next->ctx, count, size);
    op_memory_paused = false;
    return taken(block, count * size);
}

/* The free is recorded first: afterwards another thread may get the same address. */
static void *hook_realloc(int domain, void *old, size_t bytes) {
    const PyMemAllocatorEx *next = next_of(domain);
    if (!is_watching())
        return next->realloc(next->ctx, old, bytes);
    if (old)
        changed(memory_name, old, OP_BYTES_UNKNOWN);
    op_memory_paused = true;
    void *block = next->realloc(next->ctx, old, bytes);
    op_memory_paused = false;
    return taken(block, bytes);
}

static void hook_free(int domain, void *block) {
    const PyMemAllocatorEx *next = next_of(domain);
    if (!block || !is_watching()) {
        next->free(next->ctx, block);
        return;
    }
    changed(memory_name, block, OP_BYTES_UNKNOWN);
    op_memory_paused = true;
    next->free(next->ctx, block);
    op_memory_paused = false;
}

/* Threads call the raw allocator without the GIL. While it is swapped, they may combine the context of
 * one allocator with a function of the other: so ours have the context of those below and ignore it. */
#define HOOKS_OF(domain)                                                                               \
    static void *malloc_##domain(void *Py_UNUSED(context), size_t bytes) {                             \
        return hook_malloc(domain, bytes);                                                             \
    }                                                                                                  \
    static void *calloc_##domain(void *Py_UNUSED(context), size_t count, size_t size) {                \
        return hook_calloc(domain, count, size);                                                       \
    }                                                                                                  \
    static void *realloc_##domain(void *Py_UNUSED(context), void *old, size_t bytes) {                 \
        return hook_realloc(domain, old, bytes);                                                       \
    }                                                                                                  \
    static void free_##domain(void *Py_UNUSED(context), void *block) { hook_free(domain, block); }
HOOKS_OF(RAW)
HOOKS_OF(MEM)
HOOKS_OF(OBJ)

#define HOOKS(domain) {NULL, malloc_##domain, calloc_##domain, realloc_##domain, free_##domain}
static const PyMemAllocatorEx hooks[DOMAINS] = {HOOKS(RAW), HOOKS(MEM), HOOKS(OBJ)};

#define PROBE 1024u /* bytes; more than an allocator of small objects has at hand */

/* Whether our hook is on top, or below a later one that still calls it. While it is not active. */
static bool still_runs(int domain, const PyMemAllocatorEx *top) {
    if (top->malloc == hooks[domain].malloc)
        return true;
    reached[domain] = false;
    top->free(top->ctx, top->malloc(top->ctx, PROBE));
    return reached[domain];
}

static PyObject *start(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(args)) {
    static const char memory[] = "[memory]", out_of_memory[] = "[OutOfMemory]";
    memory_name = op_names_intern(memory, sizeof memory - 1);
    out_of_memory_name = op_names_intern(out_of_memory, sizeof out_of_memory - 1);
    for (int i = 0; i < DOMAINS; i++) {
        PyMemAllocatorEx top;
        PyMem_GetAllocator(domains[i], &top);
        if (installed[i] && still_runs(i, &top))
            continue;
        PyMemAllocatorEx hook = hooks[i];
        hook.ctx = top.ctx;
        below[i] = top;
        PyMem_SetAllocator(domains[i], &hook);
        installed[i] = true;
    }
    __atomic_store_n(&active, true, __ATOMIC_RELEASE);
    Py_RETURN_NONE;
}

/* If a later hook (tracemalloc) is on top, ours stays and passes everything on. Returns whether one
 * was removed meanwhile, as by an earlier hook that restored what was there before itself. */
static PyObject *stop(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(args)) {
    bool removed = false;
    __atomic_store_n(&active, false, __ATOMIC_RELEASE);
    for (int i = 0; i < DOMAINS; i++) {
        PyMemAllocatorEx top;
        PyMem_GetAllocator(domains[i], &top);
        if (!installed[i])
            continue;
        if (!still_runs(i, &top)) {
            removed = true;
            installed[i] = false;
        } else if (top.malloc == hooks[i].malloc) {
            PyMem_SetAllocator(domains[i], &below[i]);
            installed[i] = false;
        }
    }
    return PyBool_FromLong(removed);
}

static PyObject *watch_malloc(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(args)) {
    int rc;
    Py_BEGIN_ALLOW_THREADS;
    rc = op_malloc_watch(PyMem_RawMalloc, PyMem_RawFree);
    Py_END_ALLOW_THREADS;
    return PyLong_FromLong(rc);
}

PyMethodDef op_pymem_functions[] = {
    {"pymem_start", start, METH_NOARGS,
     PyDoc_STR("Record allocations and frees of Python's allocators.")},
    {"pymem_stop", stop, METH_NOARGS,
     PyDoc_STR("Restore the previous allocators; return whether ours were removed meanwhile.")},
    {"watch_malloc", watch_malloc, METH_NOARGS,
     PyDoc_STR(
         "Record what libraries allocate with malloc; return the collector's error code if Python's "
         "own calls of it cannot be observed.")},
    {NULL, NULL, 0, NULL}};
