/* Rows of device work, after those of the host. */
#ifndef OP_CUDA_ROWS_H
#define OP_CUDA_ROWS_H

#include "cuda/cuda_window.h"

/* Input for the rows of device work and of the ranges around its launches. */
typedef struct op_cuda_rows {
    op_cuda_window *window;
    op_result *result; /* its columns hold the host's rows; the streams are added to its threads */
    op_writable *columns;
    const op_tick_map *lines;
    uint64_t work_args; /* word offset of the first work record's argument block */
} op_cuda_rows;

int op_cuda_add_rows(const op_cuda_rows *rows);
/* Copies the losses that CUPTI and the window report. */
void op_cuda_count(const op_cuda_window *window, op_stats *stats);

#endif
