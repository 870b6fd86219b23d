/* Rows for what ran on devices, after those of the host. */
#ifndef OP_CUDA_ROWS_H
#define OP_CUDA_ROWS_H

#include "cuda/cuda_window.h"

/* Rows for what ran on devices, and for the ranges that it was launched in. */
typedef struct op_cuda_rows {
    op_cuda_window *window;
    op_result *result; /* its columns hold the host's rows; its threads get the streams */
    op_writable *columns;
    const op_tick_map *lines;
    uint64_t work_args; /* word offset of the argument block of the first record of work */
} op_cuda_rows;

int op_cuda_add_rows(const op_cuda_rows *rows);
/* What CUPTI and the window say of their losses. */
void op_cuda_count(const op_cuda_window *window, op_stats *stats);

#endif
