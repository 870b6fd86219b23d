/* CUPTI's records, reduced to what a recording needs: CUDA calls and device work. */
#ifndef OP_CUPTI_RECORDS_H
#define OP_CUPTI_RECORDS_H

#include "core/key_map.h"
#include "cuda/cupti_api.h"
#include "cuda/cupti_clock.h"
#include "opprof.h"
#include "result/device_calls.h"

typedef struct op_cuda_call {
    uint64_t start, end; /* ticks */
    uint32_t thread;     /* the system's number */
    uint32_t name;
    op_device_call call;
    uint8_t kind; /* OP_RUNTIME, OP_DRIVER */
    uint8_t role; /* op_call_role */
} op_cuda_call;

typedef struct op_cuda_work {
    uint64_t start, end; /* ticks; 0: unknown */
    uint32_t name;
    uint32_t device; /* unknown for a synchronization */
    uint32_t stream;
    uint8_t kind; /* OP_KERNEL, OP_MEMCPY, OP_MEMSET, OP_SYNC */
    op_device_work work;
} op_cuda_work;

/* Device memory that a call allocated or freed. */
typedef struct op_cuda_memory {
    uint64_t at; /* ticks */
    uint64_t address;
    int64_t bytes; /* negative: freed; OP_BYTES_UNKNOWN: freed, but the size is unknown */
    uint32_t correlation, device;
} op_cuda_memory;

/* A stream recorded an event. */
typedef struct op_cuda_event {
    uint32_t context, event, stream, correlation;
} op_cuda_event;

/* Ids of names that CUPTI gives as an address or a number. */
typedef struct op_cupti_names {
    op_key_map kernels;                  /* a name's id, by address of CUPTI's own copy, which stays */
    struct op_cupti_call_name *calls[2]; /* of the runtime, of the driver; by callback */
    uint32_t call_capacity[2];
} op_cupti_names;

typedef struct op_cuda_records {
    op_cuda_call *calls;
    op_cuda_work *work;
    op_cuda_memory *memory;
    op_cuda_event *events;
    uint64_t call_count, call_capacity, work_count, work_capacity, memory_count, memory_capacity;
    uint64_t event_count, event_capacity;
    uint64_t dropped;     /* records for which CUPTI or this table had no room */
    uint64_t untimed;     /* work without times from CUPTI */
    uint64_t overhead_ns; /* CUPTI's own overhead, as it reports it */
} op_cuda_records;

typedef struct op_cupti_decoder {
    const op_cupti_library *library;
    op_cupti_clock clock;
    op_cupti_names names;
    uint64_t most_bytes; /* limit for the kept records, past which they are dropped */
    uint64_t until;      /* CUPTI's time from which calls are our own */
} op_cupti_decoder;

#endif
