/* Names in CUPTI's records. A kernel's is the address of a text that lives as long as CUPTI, so each is
 * looked up once; a call's is a number. */
#include "cuda/cupti_names.h"

#include "core/fault.h"
#include "core/names.h"
#include "cuda/cupti_records.h"
#include "sources/symbols.h"

#include <stdio.h>
#include <string.h>

bool op_cupti_name_kernel(op_cupti_decoder *d, const char *mangled, uint32_t *id) {
    if (!mangled)
        mangled = "(unnamed)";
    uint32_t *known = op_key_map_at(&d->names.kernels, (uintptr_t)mangled, 0);
    if (!known)
        return false;
    if (*known == OP_NAME_NONE)
        *known = op_symbol_name(mangled);
    *id = *known;
    return true;
}

/* ---- calls ------------------------------------------------------------------------------ */

static bool ends_with(const char *name, size_t length, const char *end) {
    size_t n = strlen(end);
    return length > n && memcmp(name + length - n, end, n) == 0;
}

/* As in Kineto: cudaLaunchKernel for cudaLaunchKernel_v7000, and for cudaLaunchKernel_ptsz_v7000, which
 * is the same call in a program with per-thread streams. */
static size_t plain_length(const char *name) {
    size_t length = strlen(name), digits = 0;
    while (digits < length && name[length - 1 - digits] >= '0' && name[length - 1 - digits] <= '9')
        digits++;
    if (digits >= 4 && length > digits + 2 && name[length - digits - 1] == 'v' &&
        name[length - digits - 2] == '_')
        length -= digits + 2;
    if (ends_with(name, length, "_ptsz") || ends_with(name, length, "_ptds"))
        length -= 5;
    return length;
}

/* Frequent queries, which Kineto leaves out too. */
static bool is_ignored(const char *name, size_t length) {
    static const char *const ignored[] = {"cudaGetDevice",    "cudaSetDevice",
                                          "cudaGetLastError", "cudaEventCreate",
                                          "cudaEventDestroy", "cudaEventCreateWithFlags"};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        if (strlen(ignored[i]) == length && memcmp(name, ignored[i], length) == 0)
            return true;
    return false;
}

/* Driver calls with which libraries bypass the runtime to start work, allocate, wait or capture. By the
 * beginning of their names, so that none of CUDA's many forms of them is missing. */
static bool is_wanted_of_driver(const char *name) {
    static const char *const wanted[] = {"cuLaunch",
                                         "cuGraphLaunch",
                                         "cuMemcpy",
                                         "cuMemset",
                                         "cuMemAlloc",
                                         "cuMemFree",
                                         "cuStreamSynchronize",
                                         "cuStreamWaitEvent",
                                         "cuStreamBeginCapture",
                                         "cuStreamEndCapture",
                                         "cuEventSynchronize",
                                         "cuEventRecord",
                                         "cuCtxSynchronize"};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (strncmp(name, wanted[i], strlen(wanted[i])) == 0)
            return !strstr(name, "Host"); /* its memory and its functions are not the device's */
    return false;
}

/* A call that CUPTI cannot name cannot be accounted for. */
static bool look_up(const op_cupti_decoder *d, uint32_t domain, uint32_t callback,
                    op_cupti_call_name *out) {
    const char *name = NULL;
    int rc = d->library->cupti.GetCallbackName((int)domain, callback, &name);
    if (rc != OP_CUPTI_SUCCESS || !name)
        return false;
    size_t length = plain_length(name);
    *out = (op_cupti_call_name){.id = op_names_intern(name, length),
                                .role = (uint8_t)op_call_role_of(name, length),
                                .ignored = domain == OP_CUPTI_OF_DRIVER ? !is_wanted_of_driver(name)
                                                                        : is_ignored(name, length)};
    return true;
}

bool op_cupti_name_call(op_cupti_decoder *d, uint32_t domain, uint32_t callback,
                        op_cupti_call_name *out) {
    enum { MOST = 4096 }; /* releases have some hundreds */
    int which = domain == OP_CUPTI_OF_DRIVER;
    op_cupti_names *n = &d->names;
    if (callback >= MOST)
        return look_up(d, domain, callback, out);
    if (callback >= n->call_capacity[which]) {
        uint32_t capacity = callback < 1024 ? 1024 : MOST;
        op_cupti_call_name *grown = op_realloc(n->calls[which], capacity * sizeof *grown);
        if (!grown)
            return false;
        memset(grown + n->call_capacity[which], 0,
               (capacity - n->call_capacity[which]) * sizeof *grown);
        n->calls[which] = grown;
        n->call_capacity[which] = capacity;
    }
    op_cupti_call_name *known = &n->calls[which][callback];
    if (known->id == OP_NAME_NONE && !look_up(d, domain, callback, known))
        return false;
    *out = *known;
    return true;
}

void op_cupti_names_free(op_cupti_names *n) {
    op_key_map_free(&n->kernels);
    free(n->calls[0]);
    free(n->calls[1]);
    *n = (op_cupti_names){0};
}

/* ---- copies and similar: Kineto's names ------------------------------------------------------- */

enum { MEMORY_KINDS = 8, COPY_KINDS = 11 };
static const char *const memory_kinds[MEMORY_KINDS] = {
    "Unknown", "Pageable", "Pinned", "Device", "Array", "Managed", "Device Static", "Managed Static"};

static uint8_t known_kind(uint32_t kind) { return kind < MEMORY_KINDS ? (uint8_t)kind : 0; }

/* Interns a name of a small fixed set, once each. */
static uint32_t once(uint32_t *known, const char *name) {
    uint32_t id = op_names_intern(name, strlen(name));
    __atomic_store_n(known, id, __ATOMIC_RELAXED);
    return id;
}

uint32_t op_cupti_name_copy(const op_cupti_copy *c) {
    static uint32_t known[COPY_KINDS][MEMORY_KINDS][MEMORY_KINDS];
    static const char *const kinds[COPY_KINDS] = {"Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
                                                  "AtoD",    "DtoA", "DtoD", "HtoH", "PtoP"};
    char name[64];
    uint8_t copy = c->copy_kind < COPY_KINDS ? c->copy_kind : 0;
    uint8_t source = known_kind(c->source_kind), target = known_kind(c->target_kind);
    uint32_t *id = &known[copy][source][target];
    uint32_t found = __atomic_load_n(id, __ATOMIC_RELAXED);
    if (found)
        return found;
    snprintf(name, sizeof name, "Memcpy %s (%s -> %s)", kinds[copy], memory_kinds[source],
             memory_kinds[target]);
    return once(id, name);
}

uint32_t op_cupti_name_set(uint16_t kind) {
    static uint32_t known[MEMORY_KINDS];
    char name[64];
    uint32_t found = __atomic_load_n(&known[known_kind(kind)], __ATOMIC_RELAXED);
    if (found)
        return found;
    snprintf(name, sizeof name, "Memset (%s)", memory_kinds[known_kind(kind)]);
    return once(&known[known_kind(kind)], name);
}

uint32_t op_cupti_name_sync(uint32_t type) {
    static const char *const types[] = {"Unknown Sync", "Event Sync", "Stream Wait Event",
                                        "Stream Sync", "Context Sync"};
    const char *name = types[type < sizeof types / sizeof *types ? type : 0];
    return op_names_intern(name, strlen(name));
}
