/* Entry points of the process's libcupti and libcuda. A process without CUDA never loads libcupti. */
#ifndef OP_CUPTI_API_H
#define OP_CUPTI_API_H

#include "cuda/cupti_abi.h"

#include <stdbool.h>

/* Functions of libcuda (cuda.h of CUDA 12 and 13), to wait for devices. By their names without "cu". */
typedef struct op_cuda_functions {
    int (*CtxGetCurrent)(
        void **context); /* OP_CUDA_NOT_STARTED: before cuInit(), or in a forked child */
    int (*CtxPushCurrent_v2)(void *context);
    int (*CtxPopCurrent_v2)(void **context);
    int (*CtxSynchronize)(void);
    int (*DeviceGetCount)(int *count);
    int (*DeviceGet)(int *device, int ordinal);
    int (*DevicePrimaryCtxGetState)(int device, unsigned *flags, int *active);
    int (*DevicePrimaryCtxRetain)(void **context, int device);
    int (*DevicePrimaryCtxRelease_v2)(int device);
    int (*DriverGetVersion)(int *version); /* 12080 for 12.8 */
    /* ---- may be missing ---- */
    int (*GetErrorName)(int code, const char **text);
    int (*DeviceGetName)(char *name, int length, int device);
    int (*DeviceGetAttribute)(int *value, int attribute, int device);
    int (*DeviceTotalMem_v2)(size_t *bytes, int device);
    int (*StreamIsCapturing)(void *stream, int *status);
} op_cuda_functions;
enum { OP_CUDA_NOT_STARTED = 3 }; /* CUDA_ERROR_NOT_INITIALIZED, cuda.h */

typedef struct op_cupti_library {
    op_cupti_functions cupti;
    op_cuda_functions cuda;
    uint32_t version; /* of CUPTI's API */
    char path[512];
} op_cupti_library;

/* Finds this process's libcuda. OP_CUDA_READY, or the error: there is none, or it is too old. */
int op_cuda_find(op_cuda_functions *out);
/* Loads libcupti: `named` alone unless NULL; else the one in the process, else the first of `paths`
 * that loads. OP_CUDA_READY, or an enum op_cuda and op_last_error(). A loaded library stays loaded. */
int op_cupti_load(op_cupti_library *out, const char *named, const char *const *paths, uint32_t count);
/* CUPTI's text for a code, or else a number. */
const char *op_cupti_words(const op_cupti_library *library, int code);

#endif
