/* A window's CUDA data on its way into the columns: calls go among the events of their threads, device
 * work after all of those. */
#ifndef OP_CUDA_WINDOW_H
#define OP_CUDA_WINDOW_H

#include "core/tick_map.h"
#include "cuda/cuda_index.h"
#include "cuda/cupti_records.h"
#include "result/result.h"

/* A thread as CUPTI sees it. Its number may be reused after it has ended. */
typedef struct op_cuda_thread {
    uint32_t index, os_tid;
    uint64_t born, gone; /* ticks: when it was first seen, and when it ended */
    /* ---- set by op_cuda_place_calls() ---- */
    uint64_t calls, last_start; /* its calls so far; ticks: begin of the last one */
    bool is_unsorted;           /* a call did not begin after its predecessor */
} op_cuda_thread;

typedef struct op_cuda_pause {
    uint64_t from, to; /* ticks */
} op_cuda_pause;

enum { OP_CUDA_DEVICE_TYPE = 1 }; /* torch's number of this device type */

#define OP_CUDA_OUTSIDE UINT32_MAX /* not in the window: a call, and its work */

/* The changes that each call made. Lists of 1 + the index of a record; 0: end. */
typedef struct op_cuda_memory_lists {
    uint32_t *first;  /* by call */
    uint32_t *next;   /* by record */
    uint32_t *caller; /* by record: the call */
    uint32_t name;    /* of the resulting events */
    uint64_t listed;  /* records that have a call in the window */
    uint64_t adrift;  /* records whose call was not recorded */
} op_cuda_memory_lists;

typedef struct op_cuda_window {
    const op_cuda_records *records;
    op_cuda_thread *threads; /* the known ones, in any order */
    uint32_t thread_count;
    const op_cuda_pause *pauses;
    uint32_t pause_count;
    uint64_t from; /* ticks */
    /* ---- set by op_cuda_place_calls() ---- */
    op_raw *raw; /* the threads' events merged with calls; `aux` is a call's index */
    uint32_t raw_count;
    op_event *events;
    op_cuda_index index;
    uint32_t *row_of; /* by call: set when rows are made; OP_CUDA_OUTSIDE: none */
    uint64_t placed;  /* calls among the events */
    op_cuda_memory_lists memory;
} op_cuda_window;

#endif
