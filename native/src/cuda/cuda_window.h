/* What CUDA did in a window, on its way into the columns: calls among the events of the threads that
 * made them, and what ran on devices after all of these. */
#ifndef OP_CUDA_WINDOW_H
#define OP_CUDA_WINDOW_H

#include "core/tick_map.h"
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

/* From a correlation id to the call that has it: 1 + its place; 0: none is on record. */
typedef struct op_cuda_index {
    uint32_t *ids, *calls;
    uint64_t mask;
} op_cuda_index;

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

int op_cuda_place_calls(op_cuda_window *window, const op_raw *raw, uint32_t raw_count);
/* All but `records`, which are not the window's. */
void op_cuda_window_release(op_cuda_window *window);

uint32_t op_cuda_call_of(const op_cuda_window *window, uint32_t correlation); /* as the index has it */

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

/* Argument blocks of calls, of memory and of work, in this order: op_device_call, op_memory and
 * op_device_work behind a header. */
#define OP_CUDA_CALL_WORDS (1 + (uint32_t)(sizeof(op_device_call) / 4))
#define OP_CUDA_MEMORY_WORDS (1 + OP_ARGS_MEMORY_WORDS)
#define OP_CUDA_WORK_WORDS (1 + (uint32_t)(sizeof(op_device_work) / 4))
uint64_t op_cuda_arg_words(const op_cuda_window *window);
/* How many words stand before those of memory, and before those of work. */
uint64_t op_cuda_words_before_memory(const op_cuda_window *window);
uint64_t op_cuda_words_before_work(const op_cuda_window *window);
void op_cuda_put_call_args(const op_cuda_window *window, uint32_t *words);   /* of all calls */
void op_cuda_put_memory_args(const op_cuda_window *window, uint32_t *words); /* of all of it */
void op_cuda_put_work_args(const op_device_work *work, uint32_t *words);

#endif
