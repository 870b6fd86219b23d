/* libcuda.so.1 without a device: enough of the driver to query devices and wait for them. It needs no
 * CUDA header: types are pointers and ints, and functions are found by name. */
#include "fake_cuda.h"

#include "fake_cupti.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum {
    CUDA_SUCCESS = 0,
    INVALID_VALUE = 1,
    NOT_INITIALIZED = 3,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    NOT_WHILE_CAPTURING = 900,
    IMPLICITLY_CAPTURED = 906
};
enum { DEVICES = 8, DEPTH = 16 };

typedef struct context {
    int device;
    int retained; /* the primary context of its device is in use */
} context;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int devices = 2, driver_version = 13000, initialized;
static context contexts[DEVICES] = {{0, 0}, {1, 0}, {2, 0}, {3, 0}, {4, 0}, {5, 0}, {6, 0}, {7, 0}};
static _Thread_local context *stack[DEPTH];
static _Thread_local int depth;

static struct {
    char symbol[48];
    uint64_t calls;
    int code;
} functions[48];

/* ---- counts and failures ----------------------------------------------------------------- */

static int find(const char *symbol) {
    int i = 0;
    while (functions[i].symbol[0] && strcmp(functions[i].symbol, symbol) != 0)
        i++;
    snprintf(functions[i].symbol, sizeof functions[i].symbol, "%s", symbol);
    return i;
}

static int enter(const char *symbol, int needs_init) {
    pthread_mutex_lock(&lock);
    int i = find(symbol);
    functions[i].calls++;
    int code = functions[i].code;
    if (!code && needs_init && !initialized)
        code = NOT_INITIALIZED;
    pthread_mutex_unlock(&lock);
    return code;
}

#define ENTER(needs_init)                                                                              \
    do {                                                                                               \
        int early = enter(__func__, needs_init);                                                       \
        if (early)                                                                                     \
            return early;                                                                              \
    } while (0)

FAKE_EXPORT void fake_cuda_fail(const char *symbol, int code) {
    pthread_mutex_lock(&lock);
    functions[find(symbol)].code = code;
    pthread_mutex_unlock(&lock);
}

FAKE_EXPORT uint64_t fake_cuda_calls(const char *symbol) {
    pthread_mutex_lock(&lock);
    uint64_t calls = functions[find(symbol)].calls;
    pthread_mutex_unlock(&lock);
    return calls;
}

FAKE_EXPORT void fake_cuda_devices(int count) { devices = count < DEVICES ? count : DEVICES; }
FAKE_EXPORT void fake_cuda_driver_version(int version) { driver_version = version; }

/* CUdevice_attribute values in a trace's deviceProperties. Others are 0. */
typedef struct attribute {
    int number, value;
} attribute;
#define AN_H100                                                                                        \
    {{1, 1024},    /* MAX_THREADS_PER_BLOCK */                                                         \
     {8, 49152},   /* MAX_SHARED_MEMORY_PER_BLOCK */                                                   \
     {10, 32},     /* WARP_SIZE */                                                                     \
     {12, 65536},  /* MAX_REGISTERS_PER_BLOCK */                                                       \
     {16, 132},    /* MULTIPROCESSOR_COUNT */                                                          \
     {39, 2048},   /* MAX_THREADS_PER_MULTIPROCESSOR */                                                \
     {75, 9},      /* COMPUTE_CAPABILITY_MAJOR */                                                      \
     {76, 0},      /* COMPUTE_CAPABILITY_MINOR */                                                      \
     {81, 233472}, /* MAX_SHARED_MEMORY_PER_MULTIPROCESSOR */                                          \
     {82, 65536},  /* MAX_REGISTERS_PER_MULTIPROCESSOR */                                              \
     {97, 232448}, /* MAX_SHARED_MEMORY_PER_BLOCK_OPTIN */                                             \
     {0, 0}}
static const attribute usual[] = AN_H100;
static attribute attributes[] = AN_H100;

FAKE_EXPORT void fake_cuda_attribute(int number, int value) {
    for (attribute *a = attributes; a->number; a++)
        if (a->number == number)
            a->value = value;
}

FAKE_EXPORT void fake_cuda_reset(void) {
    pthread_mutex_lock(&lock);
    memset(functions, 0, sizeof functions);
    devices = 2;
    driver_version = 13000;
    memcpy(attributes, usual, sizeof attributes);
    initialized = depth = 0;
    for (int i = 0; i < DEVICES; i++)
        contexts[i].retained = 0;
    pthread_mutex_unlock(&lock);
}

/* ---- the driver and its devices ---------------------------------------------------------- */

FAKE_EXPORT int cuInit(unsigned flags) {
    ENTER(0);
    (void)flags;
    initialized = devices > 0;
    return devices > 0 ? CUDA_SUCCESS : NO_DEVICE;
}

FAKE_EXPORT int cuDriverGetVersion(int *version) {
    ENTER(0);
    *version = driver_version;
    return CUDA_SUCCESS;
}

FAKE_EXPORT int cuDeviceGetCount(int *count) {
    ENTER(1);
    *count = devices;
    return CUDA_SUCCESS;
}

FAKE_EXPORT int cuDeviceGet(int *device, int ordinal) {
    ENTER(1);
    *device = ordinal;
    return ordinal >= 0 && ordinal < devices ? CUDA_SUCCESS : INVALID_DEVICE;
}

FAKE_EXPORT int cuDeviceGetName(char *name, int length, int device) {
    ENTER(1);
    if (device < 0 || device >= devices)
        return INVALID_DEVICE;
    snprintf(name, (size_t)length, "Fake GPU %d", device);
    return CUDA_SUCCESS;
}

FAKE_EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device) {
    ENTER(1);
    *bytes = (size_t)80 << 30;
    return device >= 0 && device < devices ? CUDA_SUCCESS : INVALID_DEVICE;
}

FAKE_EXPORT int cuDeviceGetAttribute(int *value, int number, int device) {
    ENTER(1);
    *value = 0;
    for (const attribute *a = attributes; a->number; a++)
        if (a->number == number)
            *value = a->value;
    return device >= 0 && device < devices ? CUDA_SUCCESS : INVALID_DEVICE;
}

FAKE_EXPORT int cuGetErrorName(int code, const char **text) {
    switch (code) {
    case CUDA_SUCCESS:
        *text = "CUDA_SUCCESS";
        break;
    case INVALID_VALUE:
        *text = "CUDA_ERROR_INVALID_VALUE";
        break;
    case NOT_INITIALIZED:
        *text = "CUDA_ERROR_NOT_INITIALIZED";
        break;
    case NO_DEVICE:
        *text = "CUDA_ERROR_NO_DEVICE";
        break;
    case INVALID_DEVICE:
        *text = "CUDA_ERROR_INVALID_DEVICE";
        break;
    default:
        *text = NULL;
        return INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

/* ---- the fake libcupti, which runs the work -------------------------------------------------- */

static int find_cupti(struct dl_phdr_info *info, size_t size, void *found) {
    (void)size;
    const char *base = strrchr(info->dlpi_name, '/');
    if (strncmp(base ? base + 1 : info->dlpi_name, "libcupti.so", 11) != 0)
        return 0;
    *(const char **)found = info->dlpi_name;
    return 1;
}

/* A function of it; NULL if it is not in the process. */
static void *of_cupti(const char *symbol) {
    const char *path = NULL;
    dl_iterate_phdr(find_cupti, &path);
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
    void *function = library ? dlsym(library, symbol) : NULL;
    if (library)
        dlclose(library); /* whoever loaded it keeps it */
    return function;
}

/* A program's first call on a device creates the device's primary context. */
static int is_used(int device) {
    int (*used)(uint32_t) = NULL;
    *(void **)&used = of_cupti("fake_device_is_used");
    return used && used((uint32_t)device);
}

/* ---- contexts ---------------------------------------------------------------------------- */

FAKE_EXPORT int cuCtxGetCurrent(context **current) {
    ENTER(1);
    *current = depth ? stack[depth - 1] : NULL;
    return CUDA_SUCCESS;
}

FAKE_EXPORT int cuCtxSetCurrent(context *current) {
    ENTER(1);
    depth = current != NULL;
    stack[0] = current;
    return CUDA_SUCCESS;
}

/* A context created by the program, not a device's primary one. */
FAKE_EXPORT int cuCtxCreate_v2(context **created, unsigned flags, int device) {
    ENTER(1);
    static context made[DEVICES];
    (void)flags;
    if (device < 0 || device >= devices)
        return INVALID_DEVICE;
    made[device].device = device;
    *created = &made[device];
    depth = 1;
    stack[0] = *created;
    return CUDA_SUCCESS;
}

FAKE_EXPORT int cuCtxPushCurrent_v2(context *current) {
    ENTER(1);
    if (depth == DEPTH)
        return INVALID_VALUE;
    stack[depth++] = current;
    return CUDA_SUCCESS;
}

FAKE_EXPORT int cuCtxPopCurrent_v2(context **current) {
    ENTER(1);
    if (!depth)
        return 201; /* INVALID_CONTEXT */
    *current = stack[--depth];
    return CUDA_SUCCESS;
}

FAKE_EXPORT int cuCtxGetDevice(int *device) {
    ENTER(1);
    if (!depth)
        return 201;
    *device = stack[depth - 1]->device;
    return CUDA_SUCCESS;
}

FAKE_EXPORT int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
    ENTER(1);
    if (device < 0 || device >= devices)
        return INVALID_DEVICE;
    int used = is_used(device);
    pthread_mutex_lock(&lock);
    *flags = 0;
    *active = used || contexts[device].retained > 0;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

static context *retain(int device, int count) {
    pthread_mutex_lock(&lock);
    contexts[device].retained += count;
    pthread_mutex_unlock(&lock);
    return &contexts[device];
}

FAKE_EXPORT int cuDevicePrimaryCtxRetain(context **retained, int device) {
    ENTER(1);
    if (device < 0 || device >= devices)
        return INVALID_DEVICE;
    *retained = retain(device, 1);
    return CUDA_SUCCESS;
}

FAKE_EXPORT int cuDevicePrimaryCtxRelease_v2(int device) {
    ENTER(1);
    if (device < 0 || device >= devices)
        return INVALID_DEVICE;
    retain(device, -1);
    return CUDA_SUCCESS;
}

FAKE_EXPORT void fake_cuda_use(int device) {
    cuInit(0);
    cuCtxSetCurrent(retain(device, 1));
}

/* ---- waiting: ordinary calls, which CUPTI sees --------------------------------------------- */

static int capture_state(void) {
    int (*state)(void) = NULL;
    *(void **)&state = of_cupti("fake_capture");
    return state ? state() : 0;
}

FAKE_EXPORT int cuCtxSynchronize(void) {
    ENTER(1);
    if (!depth)
        return 201;
    uint32_t (*run)(const fake_activity *) = NULL;
    *(void **)&run = of_cupti("fake_run");
    fake_activity wait = {
        .kind = FAKE_SYNC_DEVICE, .api = FAKE_DRIVER, .device = (uint32_t)stack[depth - 1]->device};
    int was = capture_state();
    if (run)
        run(&wait);
    return was & FAKE_CAPTURING ? NOT_WHILE_CAPTURING : CUDA_SUCCESS;
}

/* For the legacy stream, CU_STREAM_LEGACY: whether a stream that waits for it is being captured. */
FAKE_EXPORT int cuStreamIsCapturing(void *stream, int *status) {
    ENTER(1);
    *status = 0;
    if (stream != (void *)1)
        return INVALID_VALUE;
    return capture_state() & FAKE_CAPTURING_BLOCKING ? IMPLICITLY_CAPTURED : CUDA_SUCCESS;
}
