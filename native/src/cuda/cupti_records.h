/* What CUPTI reported, as far as a recording needs it: calls of CUDA, and work of its devices. */
#ifndef OP_CUPTI_RECORDS_H
#define OP_CUPTI_RECORDS_H

#include "cuda/cupti_api.h"
#include "cuda/cupti_clock.h"
#include "opprof.h"
#include "result/device_calls.h"

typedef struct op_cuda_call {
    uint64_t start, end; /* ticks */
    uint32_t thread;     /* the low half of its pthread_self() */
    uint32_t name;
    op_device_call call;
    uint8_t kind; /* OP_RUNTIME, OP_DRIVER */
    uint8_t role; /* op_call_role */
} op_cuda_call;

typedef struct op_cuda_work {
    uint64_t start, end; /* ticks; 0: not known */
    uint32_t name;
    uint32_t device; /* of a synchronization: not known */
    uint32_t stream;
    uint8_t kind; /* OP_KERNEL, OP_MEMCPY, OP_MEMSET, OP_SYNC */
    op_device_work work;
} op_cuda_work;

/* Memory of a device, taken or given back by a call. */
typedef struct op_cuda_memory {
    uint64_t at; /* ticks */
    uint64_t address;
    int64_t bytes; /* negative: given back; OP_BYTES_UNKNOWN: the same, and how much is not said */
    uint32_t correlation, device;
} op_cuda_memory;

/* A stream has recorded an event. */
typedef struct op_cuda_event {
    uint32_t context, event, stream, correlation;
} op_cuda_event;

/* Ids of names that are told by an address or by a number. */
typedef struct op_cupti_names {
    struct op_cupti_kernel_name *slots; /* by the address of CUPTI's own copy, which stays */
    uint64_t count, mask;
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
    uint64_t dropped;     /* records for which there was no room, CUPTI's or here */
    uint64_t untimed;     /* work whose times CUPTI does not know */
    uint64_t overhead_ns; /* what CUPTI says it took itself */
} op_cuda_records;

typedef struct op_cupti_decoder {
    const op_cupti_library *library;
    op_cupti_clock clock;
    op_cupti_names names;
    uint64_t most_bytes; /* of the records that are kept; what is more is dropped */
    uint64_t until;      /* CUPTI's time from which on calls are our own */
} op_cupti_decoder;

#endif
