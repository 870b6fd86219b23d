/* Waits for the devices that this process uses. */
#ifndef OP_CUDA_SYNC_H
#define OP_CUDA_SYNC_H

#include "cuda/cupti_api.h"

/* Waits until all devices in use are idle. Returns the number of contexts, or an error, after waiting
 * for the others all the same. Unused devices stay unused. */
int op_cuda_wait(const op_cuda_functions *cuda);

#endif
