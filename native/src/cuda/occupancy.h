/* How far a kernel can fill the multiprocessors it runs on. */
#ifndef OP_OCCUPANCY_H
#define OP_OCCUPANCY_H

#include "cuda/cuda_devices.h"
#include "opprof.h"

/* Of the threads that a device can hold at once, the share that its blocks hold, in percent, where they
 * are spread evenly: Kineto's "est. achieved occupancy %". -1: the device's architecture is not known.
 */
int op_occupancy_percent(const op_cuda_device *device, const op_device_work *kernel);

#endif
