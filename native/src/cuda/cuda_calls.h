/* Merges CUDA calls with the events of the threads that made them. */
#ifndef OP_CUDA_CALLS_H
#define OP_CUDA_CALLS_H

#include "cuda/cuda_window.h"

int op_cuda_place_calls(op_cuda_window *window, const op_raw *raw, uint32_t raw_count);
/* Frees everything except `records`, which the window does not own. */
void op_cuda_window_release(op_cuda_window *window);

#endif
