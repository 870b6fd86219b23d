/* Controls of the fake libcuda.so.1: a driver with devices that fake_cupti.h runs things on.
 * Its functions have the driver's own names and meanings; all work is in the fake libcupti. */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <stdint.h>

/* The next calls of this function give this CUresult; 0 takes it back. */
void fake_cuda_fail(const char *symbol, int code);
/* How many devices there are (default 2), and the driver's version (default 13000). */
void fake_cuda_devices(int count);
void fake_cuda_driver_version(int version);
/* Makes the context of this device, and makes it the calling thread's; as the runtime does. */
void fake_cuda_use(int device);
/* What all devices say of an attribute (CUdevice_attribute) until the next reset. */
void fake_cuda_attribute(int attribute, int value);
/* Calls of a function since the last reset. */
uint64_t fake_cuda_calls(const char *symbol);
void fake_cuda_reset(void);

#endif
