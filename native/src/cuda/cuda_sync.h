/* Waiting for the devices that this process uses. */
#ifndef OP_CUDA_SYNC_H
#define OP_CUDA_SYNC_H

#include "cuda/cupti_api.h"

/* Until all that was given to the devices in use is done: how many contexts that were, or an error; the
 * others are waited for all the same. What is not in use stays so. */
int op_cuda_wait(const op_cuda_functions *cuda);

#endif
