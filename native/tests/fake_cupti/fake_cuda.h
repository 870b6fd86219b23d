/* Controls of the fake libcuda.so.1, the driver of the devices that fake_cupti.h uses. Its functions
 * have the driver's names and meanings; all work happens in the fake libcupti. */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <stdint.h>

/* Later calls of this function return this CUresult; 0 ends that. */
void fake_cuda_fail(const char *symbol, int code);
/* Number of devices (default 2), and the driver's version (default 13000). */
void fake_cuda_devices(int count);
void fake_cuda_driver_version(int version);
/* Creates the device's context and makes it current on the calling thread, as the runtime does. */
void fake_cuda_use(int device);
/* Value of an attribute (CUdevice_attribute) of all devices until the next reset. */
void fake_cuda_attribute(int attribute, int value);
/* Calls of a function since the last reset. */
uint64_t fake_cuda_calls(const char *symbol);
void fake_cuda_reset(void);

#endif
