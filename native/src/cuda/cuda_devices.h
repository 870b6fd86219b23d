/* The devices of this process, for a trace's deviceProperties. */
#ifndef OP_CUDA_DEVICES_H
#define OP_CUDA_DEVICES_H

#include "cuda/cupti_api.h"

enum op_device_attribute {                  /* in the order of op_device_attributes */
                           OP_DEVICE_MAJOR, /* of its compute capability */
                           OP_DEVICE_MINOR,
                           OP_DEVICE_BLOCK_THREADS,
                           OP_DEVICE_THREADS, /* per multiprocessor, as are the following */
                           OP_DEVICE_BLOCK_REGISTERS,
                           OP_DEVICE_REGISTERS,
                           OP_DEVICE_WARP,
                           OP_DEVICE_BLOCK_SHARED,
                           OP_DEVICE_PROCESSORS,
                           OP_DEVICE_BLOCK_SHARED_OPTIN,
                           OP_DEVICE_SHARED,
                           OP_DEVICE_ATTRIBUTES /* number of attributes */
};

typedef struct op_cuda_device {
    char name[96];
    uint64_t bytes; /* of its memory */
    int values[OP_DEVICE_ATTRIBUTES];
} op_cuda_device;

/* Kineto's names. */
extern const char *const op_device_attributes[OP_DEVICE_ATTRIBUTES];

/* Asks the loaded libcuda; NULL: not loaded, or no answer. The caller frees it. */
op_cuda_device *op_cuda_devices(const op_cuda_functions *cuda, uint32_t *count);

#endif
