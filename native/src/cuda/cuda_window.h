/* What CUDA did in a window, on its way into the columns: calls among the events of the threads that
 * made them, and what ran on devices after all of these. */
#ifndef OP_CUDA_WINDOW_H
#define OP_CUDA_WINDOW_H

#include "core/tick_map.h"
#include "cuda/cuda_index.h"
#include "cuda/cupti_records.h"
#include "result/result.h"

/* A thread as CUPTI knows it. A handle is given again once its thread has ended. */
typedef struct op_cuda_thread {
    uint32_t handle; /* the low half of its pthread_self() */
    uint32_t index, os_tid;
    uint64_t born, gone; /* ticks: when it was first seen, and when it ended */
    /* ---- made by op_cuda_place_calls ---- */
    uint64_t calls, last_start; /* its calls so far; ticks: when the last of them began */
    bool is_unsorted;           /* one began no later than that before it */
} op_cuda_thread;

typedef struct op_cuda_pause {
    uint64_t from, to; /* ticks */
} op_cuda_pause;

enum { OP_CUDA_DEVICE_TYPE = 1 }; /* torch's number of the kind of device */

#define OP_CUDA_OUTSIDE                                                                                \
    UINT32_MAX /* a call that does not belong to the window, and its work neither                      \
                */

/* Which changes a call made. Lists by 1 + the place of a record; 0: no more. */
typedef struct op_cuda_memory_lists {
    uint32_t *first;  /* by call */
    uint32_t *next;   /* by record */
    uint32_t *caller; /* by record: the call */
    uint32_t name;    /* of the events they become */
    uint64_t listed;  /* records that have a call in the window */
    uint64_t adrift;  /* records whose call is not on record */
} op_cuda_memory_lists;

typedef struct op_cuda_window {
    const op_cuda_records *records;
    op_cuda_thread *threads; /* that are known; in any order */
    uint32_t thread_count;
    const op_cuda_pause *pauses;
    uint32_t pause_count;
    uint64_t from; /* ticks */
    /* ---- made by op_cuda_place_calls ---- */
    op_raw *raw; /* the threads' events, with the calls among them; `aux` is a call's place */
    uint32_t raw_count;
    op_event *events;
    op_cuda_index index;
    uint32_t *row_of; /* by call: filled in as the rows are made; OP_CUDA_OUTSIDE: none */
    uint64_t placed;  /* calls among the events */
    op_cuda_memory_lists memory;
} op_cuda_window;

#endif
