#include "cuda/cuda_devices.h"

#include "core/fault.h"

const char *const op_device_attributes[OP_DEVICE_ATTRIBUTES] = {"computeMajor",
                                                                "computeMinor",
                                                                "maxThreadsPerBlock",
                                                                "maxThreadsPerMultiprocessor",
                                                                "regsPerBlock",
                                                                "regsPerMultiprocessor",
                                                                "warpSize",
                                                                "sharedMemPerBlock",
                                                                "numSms",
                                                                "sharedMemPerBlockOptin",
                                                                "sharedMemPerMultiprocessor"};
/* CUdevice_attribute numbers, from cuda.h of CUDA 12 and 13. */
static const int numbers[OP_DEVICE_ATTRIBUTES] = {75, 76, 1, 39, 12, 82, 10, 8, 16, 97, 81};

static bool describe(const op_cuda_functions *cuda, int ordinal, op_cuda_device *out) {
    int device;
    size_t bytes = 0;
    if (cuda->DeviceGet(&device, ordinal) != 0 ||
        cuda->DeviceGetName(out->name, (int)sizeof out->name, device) != 0 ||
        cuda->DeviceTotalMem_v2(&bytes, device) != 0)
        return false;
    out->name[sizeof out->name - 1] = 0;
    out->bytes = bytes;
    for (int i = 0; i < OP_DEVICE_ATTRIBUTES; i++)
        if (cuda->DeviceGetAttribute(&out->values[i], numbers[i], device) != 0)
            return false;
    return true;
}

op_cuda_device *op_cuda_devices(const op_cuda_functions *cuda, uint32_t *count) {
    int all = 0;
    *count = 0;
    if (!cuda->DeviceGetName || !cuda->DeviceTotalMem_v2 || !cuda->DeviceGetAttribute ||
        cuda->DeviceGetCount(&all) != 0 || all <= 0)
        return NULL;
    op_cuda_device *devices = op_calloc((size_t)all, sizeof *devices);
    for (int i = 0; devices && i < all && describe(cuda, i, &devices[i]); i++)
        ++*count;
    return devices;
}
