/* Resolves waits: an event stands for the work of the stream that last recorded it. */
#ifndef OP_CUDA_WAITS_H
#define OP_CUDA_WAITS_H

#include "cuda/cuda_window.h"

typedef struct op_cuda_waits {
    op_cuda_event *events; /* by context, event and correlation */
    uint64_t count;
    bool is_sorted;
} op_cuda_waits;

/* Adds the stream and the call that recorded a synchronization's event. Calls must have rows. False: no
 * memory. */
bool op_cuda_waits_tell(op_cuda_waits *waits, const op_cuda_window *window, op_device_work *sync);
void op_cuda_waits_free(op_cuda_waits *waits);

#endif
