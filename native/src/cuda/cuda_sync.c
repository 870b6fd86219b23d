#include "cuda/cuda_sync.h"

#include "core/error.h"
#include "opprof.h"

#include <pthread.h>

/* CUresult values from cuda.h of CUDA 12 and 13; the three in the middle mean that there is no CUDA. */
enum { DONE = 0, NOT_INITIALIZED = 3, DEINITIALIZED = 4, NO_DEVICE = 100, IMPLICITLY_CAPTURED = 906 };
#define LEGACY_STREAM ((void *)(uintptr_t)1) /* CU_STREAM_LEGACY */

static int refuse(const op_cuda_functions *cuda, const char *call, int code) {
    const char *name = NULL;
    if (!cuda->GetErrorName || cuda->GetErrorName(code, &name) != DONE || !name)
        name = "unknown to the driver";
    return op_error_set(OP_EIO, "cannot wait for CUDA: %s returned %d (%s)", call, code, name);
}

/* Checks the streams that synchronize with the legacy one; unlike a wait, this breaks no capture. */
static bool is_captured(const op_cuda_functions *cuda) {
    int status = 0;
    return cuda->StreamIsCapturing &&
           cuda->StreamIsCapturing(LEGACY_STREAM, &status) == IMPLICITLY_CAPTURED;
}

static int wait_for_current(const op_cuda_functions *cuda) {
    if (is_captured(cuda))
        return op_error_set(OP_EIO, "cannot wait for CUDA: a stream is being captured into a graph");
    int code = cuda->CtxSynchronize();
    return code == DONE ? 1 : refuse(cuda, "cuCtxSynchronize", code);
}

static int wait_for(const op_cuda_functions *cuda, void *context) {
    int code = cuda->CtxPushCurrent_v2(context);
    if (code != DONE)
        return refuse(cuda, "cuCtxPushCurrent", code);
    int waited = wait_for_current(cuda);
    cuda->CtxPopCurrent_v2(&context);
    return waited;
}

/* Waits for the primary context, which CUDA's runtime uses. It is retained meanwhile, because its owner
 * may release it; an inactive one is not created. */
static int wait_for_device(const op_cuda_functions *cuda, int ordinal, const void *current) {
    int device = 0, active = 0;
    unsigned flags = 0;
    void *context = NULL;
    int code = cuda->DeviceGet(&device, ordinal);
    if (code != DONE)
        return refuse(cuda, "cuDeviceGet", code);
    code = cuda->DevicePrimaryCtxGetState(device, &flags, &active);
    if (code != DONE)
        return refuse(cuda, "cuDevicePrimaryCtxGetState", code);
    if (!active)
        return 0;
    code = cuda->DevicePrimaryCtxRetain(&context, device);
    if (code != DONE)
        return refuse(cuda, "cuDevicePrimaryCtxRetain", code);
    int waited = context == current ? 0 : wait_for(cuda, context);
    cuda->DevicePrimaryCtxRelease_v2(device);
    return waited;
}

int op_cuda_wait(const op_cuda_functions *cuda) {
    int count = 0;
    int code = cuda->DeviceGetCount(&count);
    if (code == NOT_INITIALIZED || code == DEINITIALIZED || code == NO_DEVICE)
        return 0;
    if (code != DONE)
        return refuse(cuda, "cuDeviceGetCount", code);
    /* The thread's current context: one that the program created itself is known only this way. */
    void *current = NULL;
    code = cuda->CtxGetCurrent(&current);
    if (code != DONE)
        return refuse(cuda, "cuCtxGetCurrent", code);
    int contexts = current ? wait_for_current(cuda) : 0;
    for (int ordinal = 0; ordinal < count; ordinal++) {
        int waited = wait_for_device(cuda, ordinal, current);
        contexts = contexts < 0 || waited < 0 ? OP_EIO : contexts + waited;
    }
    return contexts;
}

int op_cuda_synchronize(void) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static op_cuda_functions cuda;
    static _Atomic bool found; /* permanent: the library is never unloaded afterwards */
    if (!found) {
        pthread_mutex_lock(&lock);
        found = found || op_cuda_find(&cuda) == OP_CUDA_READY;
        pthread_mutex_unlock(&lock);
    }
    return found ? op_cuda_wait(&cuda) : 0;
}
