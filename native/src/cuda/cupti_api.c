#include "cuda/cupti_api.h"

#include "core/error.h"
#include "opprof.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
    const char *name;
    size_t at;
    bool optional;
} entry;

#define CUPTI(name, optional) {"cupti" #name, offsetof(op_cupti_functions, name), optional}
static const entry of_cupti[] = {
    CUPTI(GetVersion, false),
    CUPTI(GetResultString, false),
    CUPTI(GetCallbackName, false),
    CUPTI(ActivityRegisterCallbacks, false),
    CUPTI(ActivityRegisterTimestampCallback, false),
    CUPTI(ActivityEnable, false),
    CUPTI(ActivityDisable, false),
    CUPTI(ActivityFlushAll, false),
    CUPTI(ActivityGetNextRecord, false),
    CUPTI(ActivityGetNumDroppedRecords, false),
    CUPTI(SetThreadIdType, false),
    CUPTI(ActivityEnableRuntimeApi, true),
    CUPTI(ActivityEnableDriverApi, true),
    CUPTI(ActivityEnableAllSyncRecords, true),
    CUPTI(ActivitySetAttribute, true),
    CUPTI(Subscribe, true),
    CUPTI(Unsubscribe, true),
    CUPTI(ActivityGetEnabledKinds, true),
    {NULL, 0, false},
};
#define CUDA(name, optional) {"cu" #name, offsetof(op_cuda_functions, name), optional}
static const entry of_cuda[] = {
    CUDA(CtxGetCurrent, false),
    CUDA(CtxPushCurrent_v2, false),
    CUDA(CtxPopCurrent_v2, false),
    CUDA(CtxSynchronize, false),
    CUDA(DeviceGetCount, false),
    CUDA(DeviceGet, false),
    CUDA(DevicePrimaryCtxGetState, false),
    CUDA(DevicePrimaryCtxRetain, false),
    CUDA(DevicePrimaryCtxRelease_v2, false),
    CUDA(DriverGetVersion, false),
    CUDA(GetErrorName, true),
    CUDA(DeviceGetName, true),
    CUDA(DeviceGetAttribute, true),
    CUDA(DeviceTotalMem_v2, true),
    CUDA(StreamIsCapturing, true),
    {NULL, 0, false},
};

/* Binds the table. Returns the name of the first missing function that is required; NULL: none. */
static const char *bind(void *handle, const entry *entries, void *table) {
    for (const entry *e = entries; e->name; e++) {
        void *found = dlsym(handle, e->name);
        if (!found && !e->optional)
            return e->name;
        memcpy((char *)table + e->at, &found, sizeof found);
    }
    return NULL;
}

static void *loaded(const char *name) { return dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD); }

static int note_loads(struct dl_phdr_info *info, size_t size, void *out) {
    (void)size;
    *(unsigned long long *)out = info->dlpi_adds;
    return 1;
}

/* Asked before each window. The loader searches all folders for a missing library, so the search is
 * only repeated after it has loaded something. */
int op_cuda_is_loaded(void) {
    static unsigned long long searched;
    unsigned long long loads = 0;
    dl_iterate_phdr(note_loads, &loads);
    if (loads == __atomic_load_n(&searched, __ATOMIC_RELAXED))
        return 0;
    void *handle = loaded("libcuda.so.1");
    if (handle)
        dlclose(handle); /* drop the reference just taken */
    else
        __atomic_store_n(&searched, loads, __ATOMIC_RELAXED);
    return handle != NULL;
}

static int find_loaded(struct dl_phdr_info *info, size_t size, void *out) {
    (void)size;
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *base = slash ? slash + 1 : info->dlpi_name;
    if (strncmp(base, "libcupti.so", 11) != 0)
        return 0;
    snprintf(out, PATH_MAX, "%s", info->dlpi_name);
    return 1;
}

/* The instance already used by CUDA or another profiler, because two instances exclude each other. */
static void *in_process(char path[PATH_MAX]) {
    path[0] = 0;
    dl_iterate_phdr(find_loaded, path);
    return path[0] ? loaded(path) : NULL;
}

static void *load(const char *path) { return dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE); }

/* A driver supports CUDA up to its own major release. */
static bool is_served(const char *path, const op_cuda_functions *cuda) {
    int driver = 0;
    const char *so = strstr(path, ".so.");
    return !so || cuda->DriverGetVersion(&driver) != 0 || atoi(so + 4) <= driver / 1000;
}

static void *find_cupti(char path[PATH_MAX], const op_cuda_functions *cuda, const char *named,
                        const char *const *paths, uint32_t count) {
    if (named) {
        snprintf(path, PATH_MAX, "%s", named);
        return load(named);
    }
    void *handle = in_process(path);
    for (uint32_t i = 0; i < count && !handle; i++) {
        snprintf(path, PATH_MAX, "%s", paths[i]);
        handle = is_served(path, cuda) ? load(path) : NULL;
    }
    return handle;
}

/* Notes the file that was actually loaded. */
static void note_path(op_cupti_library *out, const char *asked) {
    Dl_info info;
    union {
        int (*function)(uint32_t *);
        void *address;
    } version = {.function = out->cupti.GetVersion};
    bool known = dladdr(version.address, &info) && info.dli_fname;
    snprintf(out->path, sizeof out->path, "%s", known ? info.dli_fname : asked);
}

int op_cuda_find(op_cuda_functions *out) {
    void *handle = op_cuda_is_loaded() ? loaded("libcuda.so.1") : NULL;
    if (!handle)
        return op_error_set(OP_CUDA_ABSENT, "nothing in this process has loaded CUDA (libcuda.so.1)");
    const char *missing = bind(handle, of_cuda, out);
    if (!missing)
        return OP_CUDA_READY; /* and keeps the library */
    dlclose(handle);
    return op_error_set(OP_CUDA_TOO_OLD,
                        "libcuda.so.1 has no %s: install a driver for CUDA 12 or later", missing);
}

static int load_cuda(op_cupti_library *out) {
    int rc = op_cuda_find(&out->cuda);
    if (rc != OP_CUDA_READY)
        return rc;
    void *context;
    if (out->cuda.CtxGetCurrent(&context) == OP_CUDA_NOT_STARTED)
        return op_error_set(OP_CUDA_ABSENT, "nothing in this process has started CUDA yet");
    return OP_CUDA_READY;
}

int op_cupti_load(op_cupti_library *out, const char *named, const char *const *paths, uint32_t count) {
    char path[PATH_MAX];
    int rc = load_cuda(out);
    if (rc != OP_CUDA_READY)
        return rc;
    void *handle = find_cupti(path, &out->cuda, named, paths, count);
    if (!handle && named)
        return op_error_set(OP_CUDA_NO_CUPTI, "OPPROF_CUPTI_PATH: %s", dlerror());
    if (!handle)
        return op_error_set(OP_CUDA_NO_CUPTI,
                            "no libcupti found: install nvidia-cuda-cupti (CUDA 13) or "
                            "nvidia-cuda-cupti-cu12, or set OPPROF_CUPTI_PATH to the library");
    const char *missing = bind(handle, of_cupti, &out->cupti);
    if (missing)
        return op_error_set(OP_CUDA_NO_CUPTI, "%s has no %s: it is not a libcupti of CUDA 12 or later",
                            path, missing);
    note_path(out, path);
    rc = out->cupti.GetVersion(&out->version);
    if (rc != OP_CUPTI_SUCCESS)
        return op_error_set(OP_CUDA_FAILED, "%s does not start: %s", out->path,
                            op_cupti_words(out, rc));
    if (out->version < OP_CUPTI_OLDEST)
        return op_error_set(OP_CUDA_TOO_OLD,
                            "%s has an API (%u) older than CUDA 12.0: install a later CUDA, or set "
                            "OPPROF_CUPTI_PATH to a later libcupti",
                            out->path, out->version);
    return OP_CUDA_READY;
}

const char *op_cupti_words(const op_cupti_library *library, int code) {
    static __thread char number[32];
    const char *text = NULL;
    if (library->cupti.GetResultString)
        library->cupti.GetResultString(code, &text);
    if (text)
        return text;
    snprintf(number, sizeof number, "CUPTI's error %d", code);
    return number;
}
