/* Places device work in a trace: in order, on tracks whose slices do not overlap. */
#ifndef OP_LANES_H
#define OP_LANES_H

#include "result/result.h"

#include <stdbool.h>

typedef struct op_lane_slice {
    uint32_t row;
    uint32_t track; /* 0: the stream's own; overlapping slices go to further tracks */
} op_lane_slice;

typedef struct op_lanes {
    op_lane_slice *slices; /* thread by thread, by start, longer ones first */
    uint64_t count;
} op_lanes;

/* More tracks than this are not drawn; slices that would need one overlap others on the last. */
#define OP_LANE_TRACKS 256u

int op_lanes_lay(op_lanes *out, const op_result *result);
static inline bool op_is_on_device(const op_columns *c, uint64_t row) {
    return c->kind[row] >= OP_KERNEL && c->kind[row] <= OP_DEVICE_RANGE;
}

#endif
