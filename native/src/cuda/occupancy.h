/* How far a kernel can fill the multiprocessors it runs on. */
#ifndef OP_OCCUPANCY_H
#define OP_OCCUPANCY_H

#include "cuda/cuda_devices.h"
#include "opprof.h"

/* The percentage of a device's threads that the kernel's blocks occupy if they are spread evenly:
 * Kineto's "est. achieved occupancy %". -1: unknown architecture. */
int op_occupancy_percent(const op_cuda_device *device, const op_device_work *kernel);

#endif
