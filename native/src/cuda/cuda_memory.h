/* Memory of devices among the events of its threads: each change behind the begin of the call that made
 * it, at its own time, which tells what was given back before another thread got it. */
#ifndef OP_CUDA_MEMORY_H
#define OP_CUDA_MEMORY_H

#include "cuda/cuda_window.h"

/* Once calls have their index. OP_OK or OP_ENOMEM. */
int op_cuda_memory_list(const op_cuda_window *window, op_cuda_memory_lists *out);
void op_cuda_memory_free(op_cuda_memory_lists *lists);

/* Those that have begun to be told on a thread, earliest first; 1 + the first's place; 0: none. */
typedef uint32_t op_cuda_memory_queue;

/* All that a call changed, which is told from now on. */
void op_cuda_memory_enqueue(const op_cuda_window *window, op_cuda_memory_queue *queue, uint32_t call);
/* One that happened before `ticks`, as an event without its depth; false: there is none. */
bool op_cuda_memory_take(const op_cuda_window *window, op_cuda_memory_queue *queue, uint64_t ticks,
                         op_event *out);

#endif
