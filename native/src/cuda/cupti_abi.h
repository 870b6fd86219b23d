/* CUPTI's ABI, as far as either of our sides uses it: numbers and layouts of cupti_result.h,
 * cupti_activity.h and cupti_callbacks.h of CUPTI 12.9 (API 28), 13.0 (130001) and 13.5 (130500), which
 * agree in everything here. Real records are longer than declared, and longer in each release, so only
 * cuptiActivityGetNextRecord() walks them, which knows the library's stride. Declared fields have not
 * moved since the release named beside them. */
#ifndef OP_CUPTI_ABI_H
#define OP_CUPTI_ABI_H

#include <stddef.h>
#include <stdint.h>

/* cupti_version.h: API 19 is CUDA 12.0, the oldest whose kernel records hold all of op_cupti_kernel. */
enum { OP_CUPTI_OLDEST = 19, OP_CUPTI_MAY_REFUSE_BUFFERS = 27 };

typedef enum op_cupti_code { /* CUptiResult, cupti_result.h */
                             OP_CUPTI_SUCCESS = 0,
                             OP_CUPTI_INVALID_PARAMETER = 1,
                             OP_CUPTI_INVALID_OPERATION = 7,
                             OP_CUPTI_OUT_OF_MEMORY = 8,
                             OP_CUPTI_MAX_LIMIT_REACHED = 12, /* GetNextRecord: the end of the buffer */
                             OP_CUPTI_NOT_INITIALIZED = 15,
                             OP_CUPTI_INVALID_KIND = 21, /* GetNextRecord: an incomplete record */
                             OP_CUPTI_NOT_SUPPORTED = 27,
                             OP_CUPTI_INSUFFICIENT_PRIVILEGES = 35,
                             OP_CUPTI_OLD_PROFILER = 36,
                             OP_CUPTI_MULTIPLE_SUBSCRIBERS = 39,
                             OP_CUPTI_VIRTUALIZED_INSUFFICIENT_PRIVILEGES = 40,
                             OP_CUPTI_UNKNOWN = 999
} op_cupti_code;

typedef enum op_cupti_kind { /* CUpti_ActivityKind, cupti_activity.h */
                             OP_CUPTI_MEMCPY = 1,
                             OP_CUPTI_MEMSET = 2,
                             OP_CUPTI_DRIVER = 4,
                             OP_CUPTI_RUNTIME = 5,
                             OP_CUPTI_KERNEL = 10, /* CONCURRENT_KERNEL; KERNEL (3) would make kernels
                                                      wait for each other */
                             OP_CUPTI_OVERHEAD = 17,
                             OP_CUPTI_PEER_COPY = 22, /* MEMCPY2: between devices */
                             OP_CUPTI_EVENT = 36,     /* CUDA_EVENT: a stream records an event */
                             OP_CUPTI_SYNC = 38,      /* SYNCHRONIZATION */
                             OP_CUPTI_MEMORY = 49     /* MEMORY2 */
} op_cupti_kind;

enum { OP_CUPTI_ZEROED_BUFFERS = 5 }; /* CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, a uint8_t */
enum { OP_CUPTI_FLUSH_FORCED = 1 };   /* CUPTI_ACTIVITY_FLAG_FLUSH_FORCED */
/* CUpti_ActivityThreadIdType: the low half of pthread_self(), or gettid(). */
enum { OP_CUPTI_THREAD_ID_TYPE_DEFAULT = 0, OP_CUPTI_THREAD_ID_TYPE_SYSTEM = 1 };
enum { OP_CUPTI_OF_DRIVER = 1, OP_CUPTI_OF_RUNTIME = 2 }; /* CUpti_CallbackDomain */
#define OP_CUPTI_NO_STREAM UINT32_MAX                     /* CUPTI_SYNCHRONIZATION_INVALID_VALUE */

enum op_cupti_copy_kind { /* CUpti_ActivityMemcpyKind */
                          OP_CUPTI_COPY_HTOD = 1,
                          OP_CUPTI_COPY_DTOH = 2,
                          OP_CUPTI_COPY_DTOD = 8,
                          OP_CUPTI_COPY_HTOH = 9,
                          OP_CUPTI_COPY_PTOP = 10
};

enum op_cupti_memory_kind { /* CUpti_ActivityMemoryKind */
                            OP_CUPTI_PAGEABLE = 1,
                            OP_CUPTI_PINNED = 2,
                            OP_CUPTI_ON_DEVICE = 3,
                            OP_CUPTI_ARRAY = 4,
                            OP_CUPTI_MANAGED = 5,
                            OP_CUPTI_DEVICE_STATIC = 6,
                            OP_CUPTI_MANAGED_STATIC = 7
};

enum op_cupti_sync_type { /* CUpti_ActivitySynchronizationType */
                          OP_CUPTI_EVENT_SYNCHRONIZE = 1,
                          OP_CUPTI_STREAM_WAIT_EVENT = 2,
                          OP_CUPTI_STREAM_SYNCHRONIZE = 3,
                          OP_CUPTI_CONTEXT_SYNCHRONIZE = 4
};

enum op_cupti_memory_operation { /* CUpti_ActivityMemoryOperationType */
                                 OP_CUPTI_ALLOCATED = 1,
                                 OP_CUPTI_RELEASED = 2
};

/* ---- records ---------------------------------------------------------------------------- */

typedef struct op_cupti_record { /* CUpti_Activity */
    uint32_t kind;
} op_cupti_record;

typedef struct op_cupti_kernel { /* Kernel6 (CUDA 11.1) to Kernel13 (13.5) */
    uint32_t kind;
    uint8_t cache_config, shared_config;
    uint16_t registers; /* of a thread */
    uint32_t partitioned_requested, partitioned_executed;
    uint64_t start, end, completed;
    uint32_t device, context, stream;
    int32_t grid[3], block[3];
    int32_t static_shared, dynamic_shared;
    uint32_t local_per_thread, local_total;
    uint32_t correlation;
    int64_t grid_id;
    const char *name; /* mangled; lives as long as CUPTI */
    void *reserved;
    uint64_t queued, submitted;
    uint8_t launch_type, carveout_requested, carveout, pad;
    uint32_t shared_executed;
    uint64_t graph_node; /* 0: not of a graph */
    uint32_t shared_limit;
    uint32_t graph;
} op_cupti_kernel;

typedef struct op_cupti_copy { /* Memcpy4 (CUDA 11.1) to Memcpy6 (13.5) */
    uint32_t kind;
    uint8_t copy_kind, source_kind, target_kind, flags;
    uint64_t bytes, start, end;
    uint32_t device, context, stream, correlation, runtime_correlation, pad;
    void *reserved;
    uint64_t graph_node;
    uint32_t graph;
} op_cupti_copy;

typedef struct op_cupti_set { /* Memset3 (CUDA 11.1), Memset4 (12.0 to 13.5) */
    uint32_t kind, value;
    uint64_t bytes, start, end;
    uint32_t device, context, stream, correlation;
    uint16_t flags, memory_kind;
    uint32_t pad;
    void *reserved;
    uint64_t graph_node;
    uint32_t graph;
} op_cupti_set;

typedef struct op_cupti_peer_copy { /* MemcpyPtoP4 (CUDA 11.1 to 13.5) */
    uint32_t kind;
    uint8_t copy_kind, source_kind, target_kind, flags;
    uint64_t bytes, start, end;
    uint32_t device, context, stream;
    uint32_t source_device, source_context, target_device, target_context;
    uint32_t correlation;
    void *reserved;
    uint64_t graph_node;
    uint32_t graph;
} op_cupti_peer_copy;

typedef struct op_cupti_call { /* ActivityAPI, of CUDA's runtime and of its driver */
    uint32_t kind, callback;
    uint64_t start, end;
    uint32_t process;
    uint32_t thread; /* in the form that cuptiSetThreadIdType() chose */
    uint32_t correlation;
    uint32_t result; /* cudaError_t or CUresult */
} op_cupti_call;

typedef struct op_cupti_sync { /* Synchronization (CUDA 8) and Synchronization2 (12.8 to 13.5) */
    uint32_t kind, type;
    uint64_t start, end;
    uint32_t correlation, context;
    uint32_t stream, event; /* OP_CUPTI_NO_STREAM: none */
} op_cupti_sync;

typedef struct op_cupti_event { /* CudaEvent (CUDA 8), CudaEvent2 (12.8 to 13.5) */
    uint32_t kind, correlation, context, stream, event;
} op_cupti_event;

typedef struct op_cupti_memory { /* Memory3 (CUDA 11.2), Memory4 (12.0 to 13.5) */
    uint32_t kind, operation, memory_kind, correlation;
    uint64_t address, bytes, timestamp, pc;
    uint32_t process, device, context, stream;
} op_cupti_memory;

typedef struct op_cupti_overhead { /* Overhead to Overhead3 */
    uint32_t kind, what, object_kind, object[3];
    uint64_t start, end;
} op_cupti_overhead;

#define OP_CUPTI_AT(type, field, offset)                                                               \
    _Static_assert(offsetof(op_cupti_##type, field) == (offset), #type "." #field)
OP_CUPTI_AT(kernel, registers, 6);
OP_CUPTI_AT(kernel, start, 16);
OP_CUPTI_AT(kernel, end, 24);
OP_CUPTI_AT(kernel, device, 40);
OP_CUPTI_AT(kernel, context, 44);
OP_CUPTI_AT(kernel, stream, 48);
OP_CUPTI_AT(kernel, grid, 52);
OP_CUPTI_AT(kernel, block, 64);
OP_CUPTI_AT(kernel, static_shared, 76);
OP_CUPTI_AT(kernel, dynamic_shared, 80);
OP_CUPTI_AT(kernel, correlation, 92);
OP_CUPTI_AT(kernel, name, 104);
OP_CUPTI_AT(kernel, queued, 120);
OP_CUPTI_AT(kernel, graph_node, 144);
OP_CUPTI_AT(kernel, graph, 156);
OP_CUPTI_AT(copy, copy_kind, 4);
OP_CUPTI_AT(copy, bytes, 8);
OP_CUPTI_AT(copy, start, 16);
OP_CUPTI_AT(copy, end, 24);
OP_CUPTI_AT(copy, device, 32);
OP_CUPTI_AT(copy, context, 36);
OP_CUPTI_AT(copy, stream, 40);
OP_CUPTI_AT(copy, correlation, 44);
OP_CUPTI_AT(copy, graph_node, 64);
OP_CUPTI_AT(copy, graph, 72);
OP_CUPTI_AT(set, value, 4);
OP_CUPTI_AT(set, bytes, 8);
OP_CUPTI_AT(set, start, 16);
OP_CUPTI_AT(set, device, 32);
OP_CUPTI_AT(set, correlation, 44);
OP_CUPTI_AT(set, memory_kind, 50);
OP_CUPTI_AT(set, graph_node, 64);
OP_CUPTI_AT(set, graph, 72);
OP_CUPTI_AT(peer_copy, bytes, 8);
OP_CUPTI_AT(peer_copy, start, 16);
OP_CUPTI_AT(peer_copy, device, 32);
OP_CUPTI_AT(peer_copy, source_device, 44);
OP_CUPTI_AT(peer_copy, target_device, 52);
OP_CUPTI_AT(peer_copy, correlation, 60);
OP_CUPTI_AT(peer_copy, graph_node, 72);
OP_CUPTI_AT(peer_copy, graph, 80);
OP_CUPTI_AT(call, callback, 4);
OP_CUPTI_AT(call, start, 8);
OP_CUPTI_AT(call, thread, 28);
OP_CUPTI_AT(call, correlation, 32);
OP_CUPTI_AT(call, result, 36);
OP_CUPTI_AT(sync, type, 4);
OP_CUPTI_AT(sync, start, 8);
OP_CUPTI_AT(sync, correlation, 24);
OP_CUPTI_AT(sync, context, 28);
OP_CUPTI_AT(sync, stream, 32);
OP_CUPTI_AT(sync, event, 36);
OP_CUPTI_AT(event, correlation, 4);
OP_CUPTI_AT(event, context, 8);
OP_CUPTI_AT(event, stream, 12);
OP_CUPTI_AT(event, event, 16);
OP_CUPTI_AT(memory, operation, 4);
OP_CUPTI_AT(memory, memory_kind, 8);
OP_CUPTI_AT(memory, correlation, 12);
OP_CUPTI_AT(memory, address, 16);
OP_CUPTI_AT(memory, bytes, 24);
OP_CUPTI_AT(memory, timestamp, 32);
OP_CUPTI_AT(memory, device, 52);
OP_CUPTI_AT(overhead, what, 4);
OP_CUPTI_AT(overhead, start, 24);
OP_CUPTI_AT(overhead, end, 32);
#undef OP_CUPTI_AT

/* ---- functions -------------------------------------------------------------------------- */

typedef void (*op_cupti_request)(uint8_t **buffer, size_t *size, size_t *most_records);
typedef void (*op_cupti_complete)(void *context, uint32_t stream, uint8_t *buffer, size_t size,
                                  size_t valid);
typedef uint64_t (*op_cupti_timestamp)(void); /* nanoseconds, says 13.5 */
typedef void (*op_cupti_callback)(void *data, int domain, uint32_t callback, const void *more);

/* By their names in the library without "cupti"; NULL: missing in this release. */
typedef struct op_cupti_functions {
    int (*GetVersion)(uint32_t *version);
    int (*GetResultString)(int code, const char **text); /* may leave `text` unchanged */
    int (*GetCallbackName)(int domain, uint32_t callback, const char **name);
    int (*ActivityRegisterCallbacks)(op_cupti_request request, op_cupti_complete complete);
    int (*ActivityRegisterTimestampCallback)(op_cupti_timestamp now); /* 11.6 */
    int (*ActivityEnable)(int kind); /* resets settings of single functions */
    int (*ActivityDisable)(int kind);
    int (*ActivityFlushAll)(uint32_t flag);
    int (*ActivityGetNextRecord)(uint8_t *buffer, size_t valid, op_cupti_record **record);
    int (*ActivityGetNumDroppedRecords)(void *context, uint32_t stream, size_t *dropped);
    int (*SetThreadIdType)(int type);
    /* ---- may be missing ---- */
    int (*ActivityEnableRuntimeApi)(uint32_t callback, uint8_t enable); /* 12.4 */
    int (*ActivityEnableDriverApi)(uint32_t callback, uint8_t enable);  /* 12.4 */
    int (*ActivityEnableAllSyncRecords)(uint8_t enable);                /* 12.9 */
    int (*ActivitySetAttribute)(int attribute, size_t *size, void *value);
    int (*Subscribe)(void **subscriber, op_cupti_callback callback, void *data);
    int (*Unsubscribe)(void *subscriber);
    int (*ActivityGetEnabledKinds)(void *subscriber, int *kinds, uint32_t *size,
                                   uint32_t *count); /* 13.1 to 13.5 */
} op_cupti_functions;

#endif
