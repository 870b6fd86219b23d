/* How long each host range lasted on a device: per stream, from the first to the last work launched in
 * it, like Kineto's gpu_user_annotation. */
#ifndef OP_CUDA_RANGES_H
#define OP_CUDA_RANGES_H

#include "result/result.h"

typedef struct op_cuda_extent {
    uint32_t row; /* of the range */
    uint32_t lane;
    uint32_t around;     /* 1 + this lane's extent of the enclosing range; 0: none */
    uint64_t start, end; /* ticks */
} op_cuda_extent;

typedef struct op_cuda_ranges {
    op_cuda_extent *extents;
    uint32_t count, capacity;
    uint32_t *slots; /* extent + 1, by hash; 0: empty */
    uint32_t mask;
    uint32_t last;     /* 1 + the extent last looked up; 0: none */
    uint32_t *nearest; /* by host row: 1 + the row of the range that it is or is in; 0: none */
    const op_columns *columns;
} op_cuda_ranges;

int op_cuda_ranges_open(op_cuda_ranges *out, const op_columns *columns);
/* Extends all ranges around the launcher by this work. */
int op_cuda_ranges_extend(op_cuda_ranges *r, uint32_t launcher, uint32_t lane, uint64_t start,
                          uint64_t end);
void op_cuda_ranges_close(op_cuda_ranges *r);

#endif
