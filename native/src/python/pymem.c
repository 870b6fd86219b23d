#include "python/pymem.h"

#include "core/names.h"
#include "core/record.h"
#include "python/pyframe.h"
#include "sources/malloc_watch.h"

#include <stdbool.h>

enum { DOMAINS = 3 };

static const PyMemAllocatorDomain domains[DOMAINS] = {PYMEM_DOMAIN_RAW, PYMEM_DOMAIN_MEM,
                                                      PYMEM_DOMAIN_OBJ};
/* The allocators before ours, kept because a hook installed over ours may call ours forever. */
static PyMemAllocatorEx below[DOMAINS];
static bool installed[DOMAINS];
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

/* Python's object allocator gets large blocks from the raw allocator; each block is recorded once. */
static void *hook_malloc(void *context, size_t bytes) {
    const PyMemAllocatorEx *next = context;
    if (!is_watching())
        return next->malloc(next->ctx, bytes);
    op_memory_paused = true;
    void *block = next->malloc(next->ctx, bytes);
    op_memory_paused = false;
    return taken(block, bytes);
}

static void *hook_calloc(void *context, size_t count, size_t size) {
    const PyMemAllocatorEx *next = context;
    if (!is_watching())
        return next->calloc(next->ctx, count, size);
    op_memory_paused = true;
    void *block = next->calloc(next->ctx, count, size);
    op_memory_paused = false;
    return taken(block, count * size);
}

/* The free is recorded first: afterwards another thread may get the same address. */
static void *hook_realloc(void *context, void *old, size_t bytes) {
    const PyMemAllocatorEx *next = context;
    if (!is_watching())
        return next->realloc(next->ctx, old, bytes);
    if (old)
        changed(memory_name, old, OP_BYTES_UNKNOWN);
    op_memory_paused = true;
    void *block = next->realloc(next->ctx, old, bytes);
    op_memory_paused = false;
    return taken(block, bytes);
}

static void hook_free(void *context, void *block) {
    const PyMemAllocatorEx *next = context;
    if (!block || !is_watching()) {
        next->free(next->ctx, block);
        return;
    }
    changed(memory_name, block, OP_BYTES_UNKNOWN);
    op_memory_paused = true;
    next->free(next->ctx, block);
    op_memory_paused = false;
}

static PyObject *start(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(args)) {
    static const char memory[] = "[memory]", out_of_memory[] = "[OutOfMemory]";
    memory_name = op_names_intern(memory, sizeof memory - 1);
    out_of_memory_name = op_names_intern(out_of_memory, sizeof out_of_memory - 1);
    for (int i = 0; i < DOMAINS; i++) {
        if (installed[i])
            continue;
        PyMem_GetAllocator(domains[i], &below[i]);
        PyMemAllocatorEx hook = {.ctx = &below[i],
                                 .malloc = hook_malloc,
                                 .calloc = hook_calloc,
                                 .realloc = hook_realloc,
                                 .free = hook_free};
        PyMem_SetAllocator(domains[i], &hook);
        installed[i] = true;
    }
    __atomic_store_n(&active, true, __ATOMIC_RELEASE);
    Py_RETURN_NONE;
}

/* If a later hook (tracemalloc) is on top, ours stays and passes everything on. */
static PyObject *stop(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(args)) {
    __atomic_store_n(&active, false, __ATOMIC_RELEASE);
    for (int i = 0; i < DOMAINS; i++) {
        PyMemAllocatorEx current;
        PyMem_GetAllocator(domains[i], &current);
        if (installed[i] && current.ctx == &below[i] && current.malloc == hook_malloc) {
            PyMem_SetAllocator(domains[i], &below[i]);
            installed[i] = false;
        }
    }
    Py_RETURN_NONE;
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
    {"pymem_stop", stop, METH_NOARGS, PyDoc_STR("Restore the previous allocators.")},
    {"watch_malloc", watch_malloc, METH_NOARGS,
     PyDoc_STR(
         "Record what libraries allocate with malloc; return the collector's error code if Python's "
         "own calls of it cannot be observed.")},
    {NULL, NULL, 0, NULL}};
