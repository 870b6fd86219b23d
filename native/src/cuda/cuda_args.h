/* The argument blocks of CUDA events. */
#ifndef OP_CUDA_ARGS_H
#define OP_CUDA_ARGS_H

#include "cuda/cuda_window.h"

/* Blocks of calls, memory and work, in order: op_device_call, op_memory, op_device_work after a
 * header. */
#define OP_CUDA_CALL_WORDS (1 + (uint32_t)(sizeof(op_device_call) / 4))
#define OP_CUDA_MEMORY_WORDS (1 + OP_ARGS_MEMORY_WORDS)
#define OP_CUDA_WORK_WORDS (1 + (uint32_t)(sizeof(op_device_work) / 4))
uint64_t op_cuda_arg_words(const op_cuda_window *window);
/* Words before those of memory, and before those of work. */
uint64_t op_cuda_words_before_memory(const op_cuda_window *window);
uint64_t op_cuda_words_before_work(const op_cuda_window *window);
void op_cuda_put_call_args(const op_cuda_window *window, uint32_t *words);   /* of all calls */
void op_cuda_put_memory_args(const op_cuda_window *window, uint32_t *words); /* of all memory */
void op_cuda_put_work_args(const op_device_work *work, uint32_t *words);

#endif
