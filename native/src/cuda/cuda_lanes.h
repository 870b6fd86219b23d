/* Streams of devices, as places of events: one a device and stream, as in Kineto's traces. */
#ifndef OP_CUDA_LANES_H
#define OP_CUDA_LANES_H

#include "cuda/cupti_records.h"

#include <stdbool.h>

typedef struct op_cuda_lane {
    uint32_t device, stream;
    uint64_t work, ranges; /* on it */
    uint64_t last_start;   /* ticks; of its work so far */
    bool is_unsorted;      /* some of its work began no later than what came before */
} op_cuda_lane;

typedef struct op_cuda_lanes {
    op_cuda_lane *lanes;
    uint32_t count, capacity;
    uint32_t *slots; /* lane + 1, by hash; 0: empty */
    uint32_t mask;
    uint32_t last; /* that was asked for */
    struct op_cuda_context {
        uint32_t context, device;
    } *contexts; /* of which the device is known */
    uint32_t context_count;
} op_cuda_lanes;

/* A synchronization names its context, not its device: what ran there tells that. */
bool op_cuda_lanes_learn(op_cuda_lanes *l, const op_cuda_work *work);
/* Its number; -1: no memory. */
int64_t op_cuda_lanes_find(op_cuda_lanes *l, const op_cuda_work *work);
void op_cuda_lanes_free(op_cuda_lanes *l);

#endif
