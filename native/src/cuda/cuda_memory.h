/* Merges device memory with the events of threads: each change after the begin of its call, at its own
 * time, which shows what was freed before another thread got it. */
#ifndef OP_CUDA_MEMORY_H
#define OP_CUDA_MEMORY_H

#include "cuda/cuda_window.h"

/* Requires the index of calls. OP_OK or OP_ENOMEM. */
int op_cuda_memory_list(const op_cuda_window *window, op_cuda_memory_lists *out);
void op_cuda_memory_free(op_cuda_memory_lists *lists);

/* Pending changes of a thread, earliest first: 1 + the index of the first; 0: none. */
typedef uint32_t op_cuda_memory_queue;

/* Adds all changes of a call. */
void op_cuda_memory_enqueue(const op_cuda_window *window, op_cuda_memory_queue *queue, uint32_t call);
/* Takes a change from before `ticks`, as an event without its depth; false: there is none. */
bool op_cuda_memory_take(const op_cuda_window *window, op_cuda_memory_queue *queue, uint64_t ticks,
                         op_event *out);

#endif
