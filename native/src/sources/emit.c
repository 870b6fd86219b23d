#include "sources/emit.h"

#include "core/error.h"
#include "core/fault.h"
#include "opprof.h"
#include "sources/itt_abi.h"
#include "sources/nvtx_abi.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

uint32_t op_emitting;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the following; not for emitting */
static uint32_t started[2]; /* by target: op_emit_start() calls minus op_emit_stop() calls */
static __thread uint32_t depths[2];

static void *open_tool(const char *variable) {
    const char *path = getenv(variable);
    if (!path || !*path) {
        op_error_set(OP_ESTATE, "no tool is listening: set %s to its library", variable);
        return NULL;
    }
    void *tool = dlopen(path, RTLD_LAZY);
    if (!tool)
        op_error_set(OP_EIO, "%s names %s, which cannot be loaded: %s", variable, path, dlerror());
    return tool;
}

static int refuse(const char *variable) {
    return op_error_set(OP_EIO, "%s names %s, which is not a usable tool", variable, getenv(variable));
}

/* ---- ITT -------------------------------------------------------------------------------- */

#define ITT_VARIABLE "INTEL_LIBITTNOTIFY64"
#define ITT_DOMAIN "PyTorch" /* where tools look for torch's own ranges */
#define ITT_GROUP_ALL (-1)

static void (*itt_task_begin)(const itt_domain *, itt_id, itt_id, itt_string *);
static void (*itt_task_end)(const itt_domain *);
static void (*itt_marker)(const itt_domain *, itt_id, itt_string *, int);
static itt_domain *(*itt_domain_create)(const char *);
static itt_string *(*itt_string_create)(const char *);
static itt_domain *domain;

static void itt_none(void) {}

/* A function pointer through `void *`, as in the ABI. */
#define API(symbol, pointer) {.name = "__itt_" symbol, .func_ptr = (void **)&(pointer)}
static itt_api_info functions[] = {
    API("task_begin", itt_task_begin),
    API("task_end", itt_task_end),
    API("marker", itt_marker),
    API("domain_create", itt_domain_create),
    API("string_handle_create", itt_string_create),
    {0},
};

/* Fields that the tool expects after those we declare: empty lists. */
static struct {
    itt_global global;
    void *rest[16];
} program = {.global = {.magic = {0xed, 0xab, 0xab, 0xec, 0x0d, 0xee, 0xda, 0x30},
                        .version_major = 3,
                        .version_minor = 26,
                        .api_initialized = 1,
                        .mutex_initialized = 1,
                        .mutex = PTHREAD_MUTEX_INITIALIZER,
                        .api_list_ptr = functions}};

/* Tools with the older protocol export the functions by name. */
static void bind_by_name(void *tool) {
    for (itt_api_info *api = functions; api->name; api++)
        *api->func_ptr = dlsym(tool, api->name);
}

static int open_itt(void) {
    if (domain)
        return OP_OK;
    void *tool = open_tool(ITT_VARIABLE);
    if (!tool)
        return OP_EIO;
    void (*init)(itt_global *, int);
    *(void **)&init = dlsym(tool, "__itt_api_init");
    void (*none)(void) = itt_none;
    for (itt_api_info *api = functions; api->name; api++)
        memcpy(&api->null_func, &none, sizeof none);
    program.global.lib = tool;
    if (init)
        init(&program.global, ITT_GROUP_ALL);
    else
        bind_by_name(tool);
    void (*create)(void) = (void (*)(void))itt_domain_create;
    if (!itt_task_begin || !itt_task_end || !itt_string_create || !create || create == itt_none)
        return refuse(ITT_VARIABLE);
    domain = itt_domain_create(ITT_DOMAIN);
    return domain ? OP_OK : refuse(ITT_VARIABLE);
}

/* The tool has switched off a domain whose flags are 0. */
static bool itt_listens(void) { return domain && domain->flags; }

static void itt_push(const char *text) {
    static const itt_id none;
    if (itt_listens())
        itt_task_begin(domain, none, none, itt_string_create(text));
}

static void itt_pop(void) {
    if (itt_listens())
        itt_task_end(domain);
}

static void itt_mark(const char *text) {
    static const itt_id none;
    enum { SCOPE_TASK = 4 };
    if (itt_listens() && itt_marker)
        itt_marker(domain, none, itt_string_create(text), SCOPE_TASK);
}

/* ---- NVTX ------------------------------------------------------------------------------- */

#define NVTX_VARIABLE "NVTX_INJECTION64_PATH"

enum { MARK_A = 2, PUSH_A = 9, POP = 11, CORE_SIZE = 16 }; /* NvtxCallbackIdCore */

static nvtx_function core[CORE_SIZE];
static nvtx_function *core_slots[CORE_SIZE + 1]; /* NULL-terminated */
static bool nvtx_is_open;

static int functions_of(int module, nvtx_function ***table, unsigned *count) {
    if (module != NVTX_MODULE_CORE)
        return 0;
    *table = core_slots;
    *count = CORE_SIZE;
    return 1;
}

static void set_tool_version(uint32_t version) { (void)version; }

static const void *export_table(uint32_t id) {
    static const nvtx_callbacks_table callbacks = {sizeof callbacks, functions_of};
    static const nvtx_version_table version = {sizeof version, NVTX_VERSION, 0, set_tool_version};
    if (id == NVTX_TABLE_CALLBACKS)
        return &callbacks;
    return id == NVTX_TABLE_VERSION ? &version : NULL;
}

static int open_nvtx(void) {
    if (nvtx_is_open)
        return OP_OK;
    void *tool = open_tool(NVTX_VARIABLE);
    if (!tool)
        return OP_EIO;
    int (*init)(const void *(*)(uint32_t));
    *(void **)&init = dlsym(tool, "InitializeInjectionNvtx2");
    for (unsigned i = 1; i < CORE_SIZE; i++)
        core_slots[i] = &core[i];
    if (!init || init(export_table) != 1)
        return refuse(NVTX_VARIABLE);
    nvtx_is_open = true;
    return OP_OK;
}

/* A tool may leave out callbacks that it does not use. */
static void nvtx_push(const char *text) {
    if (core[PUSH_A])
        ((int (*)(const char *))core[PUSH_A])(text);
}

static void nvtx_pop(void) {
    if (core[POP])
        ((int (*)(void))core[POP])();
}

static void nvtx_mark(const char *text) {
    if (core[MARK_A])
        ((void (*)(const char *))core[MARK_A])(text);
}

/* ---- both ------------------------------------------------------------------------------- */

static uint32_t index_of(uint32_t target) { return target == OP_EMIT_NVTX; }

int op_emit_open(uint32_t target) {
    pthread_mutex_lock(&lock);
    int rc = target == OP_EMIT_ITT ? open_itt() : open_nvtx();
    pthread_mutex_unlock(&lock);
    return rc;
}

void op_emit_start(uint32_t target) {
    pthread_mutex_lock(&lock);
    if (started[index_of(target)]++ == 0)
        __atomic_or_fetch(&op_emitting, target, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&lock);
}

void op_emit_stop(uint32_t target) {
    pthread_mutex_lock(&lock);
    if (--started[index_of(target)] == 0)
        __atomic_and_fetch(&op_emitting, ~target, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&lock);
}

uint32_t op_emit_push(uint32_t target, const char *text) {
    op_emit_push_to(target, text);
    return depths[index_of(target)] - 1;
}

uint32_t op_emit_depth(uint32_t target) { return depths[index_of(target)]; }

void op_emit_pop(uint32_t target) { op_emit_pop_from(target); }

void op_emit_mark(uint32_t target, const char *text) {
    if (target == OP_EMIT_ITT)
        itt_mark(text);
    else
        nvtx_mark(text);
}

void op_emit_push_to(uint32_t targets, const char *text) {
    if (targets & OP_EMIT_ITT) {
        depths[0]++;
        itt_push(text);
    }
    if (targets & OP_EMIT_NVTX) {
        depths[1]++;
        nvtx_push(text);
    }
}

void op_emit_pop_from(uint32_t targets) {
    if (targets & OP_EMIT_ITT) {
        depths[0]--;
        itt_pop();
    }
    if (targets & OP_EMIT_NVTX) {
        depths[1]--;
        nvtx_pop();
    }
}
