/* Device streams as lanes of events: one per device and stream, as in Kineto's traces. */
#ifndef OP_CUDA_LANES_H
#define OP_CUDA_LANES_H

#include "core/key_map.h"
#include "cuda/cupti_records.h"

#include <stdbool.h>

typedef struct op_cuda_lane {
    uint32_t device, stream;
    uint64_t work, ranges; /* on this lane */
    uint64_t last_start;   /* ticks; of the latest work */
    bool is_unsorted;      /* some work did not begin after its predecessor */
} op_cuda_lane;

typedef struct op_cuda_lanes {
    op_cuda_lane *lanes;
    uint32_t count, capacity;
    op_key_map by_stream; /* lane + 1, by device and stream */
    uint32_t last;        /* the last lookup */
    struct op_cuda_context {
        uint32_t context, device;
    } *contexts; /* contexts with a known device */
    uint32_t context_count;
} op_cuda_lanes;

/* A synchronization names its context but not its device; other work of the context shows that. */
bool op_cuda_lanes_learn(op_cuda_lanes *l, const op_cuda_work *work);
/* The lane's number; -1: no memory. */
int64_t op_cuda_lanes_find(op_cuda_lanes *l, const op_cuda_work *work);
void op_cuda_lanes_free(op_cuda_lanes *l);

#endif
