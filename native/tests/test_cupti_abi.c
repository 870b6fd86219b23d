/* Compares cupti_abi.h with NVIDIA's headers of each installed version, mostly at compile time. */
#include "check.h"
#include "cuda/cupti_abi.h"

#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_version.h>

#if CUPTI_API_VERSION == 28
typedef CUpti_ActivityKernel9 their_kernel;
#else
typedef CUpti_ActivityKernel10 their_kernel;
#endif
typedef CUpti_ActivityMemcpy6 their_copy;
typedef CUpti_ActivityMemset4 their_set;
typedef CUpti_ActivityMemcpyPtoP4 their_peer_copy;
typedef CUpti_ActivityAPI their_call;
typedef CUpti_ActivitySynchronization2 their_sync;
typedef CUpti_ActivityCudaEvent2 their_event;
typedef CUpti_ActivityMemory4 their_memory;
typedef CUpti_ActivityOverhead3 their_overhead;

/* ---- offset and size of each field ------------------------------------------------------ */

#define SAME(type, ours, theirs)                                                                       \
    _Static_assert(offsetof(op_cupti_##type, ours) == offsetof(their_##type, theirs) &&                \
                       sizeof(((op_cupti_##type *)0)->ours) == sizeof(((their_##type *)0)->theirs),    \
                   #type "." #ours)
/* Three of their fields are one array of ours. */
#define SAME_3(type, ours, theirs)                                                                     \
    _Static_assert(offsetof(op_cupti_##type, ours) == offsetof(their_##type, theirs##X) &&             \
                       offsetof(their_##type, theirs##Y) == offsetof(their_##type, theirs##X) + 4 &&   \
                       offsetof(their_##type, theirs##Z) == offsetof(their_##type, theirs##X) + 8 &&   \
                       sizeof(((op_cupti_##type *)0)->ours) == 12,                                     \
                   #type "." #ours)
/* Ours is the beginning of theirs, whatever follows it. */
#define PREFIX(type)                                                                                   \
    SAME(type, kind, kind);                                                                            \
    _Static_assert(sizeof(op_cupti_##type) <= sizeof(their_##type) + 4, #type)

PREFIX(kernel);
SAME(kernel, registers, registersPerThread);
SAME(kernel, partitioned_requested, partitionedGlobalCacheRequested);
SAME(kernel, start, start);
SAME(kernel, end, end);
SAME(kernel, completed, completed);
SAME(kernel, device, deviceId);
SAME(kernel, context, contextId);
SAME(kernel, stream, streamId);
SAME_3(kernel, grid, grid);
SAME_3(kernel, block, block);
SAME(kernel, static_shared, staticSharedMemory);
SAME(kernel, dynamic_shared, dynamicSharedMemory);
SAME(kernel, local_per_thread, localMemoryPerThread);
SAME(kernel, correlation, correlationId);
SAME(kernel, grid_id, gridId);
SAME(kernel, name, name);
SAME(kernel, queued, queued);
SAME(kernel, submitted, submitted);
SAME(kernel, launch_type, launchType);
SAME(kernel, shared_executed, sharedMemoryExecuted);
SAME(kernel, graph_node, graphNodeId);
SAME(kernel, graph, graphId);

PREFIX(copy);
SAME(copy, copy_kind, copyKind);
SAME(copy, source_kind, srcKind);
SAME(copy, target_kind, dstKind);
SAME(copy, flags, flags);
SAME(copy, bytes, bytes);
SAME(copy, start, start);
SAME(copy, end, end);
SAME(copy, device, deviceId);
SAME(copy, context, contextId);
SAME(copy, stream, streamId);
SAME(copy, correlation, correlationId);
SAME(copy, runtime_correlation, runtimeCorrelationId);
SAME(copy, graph_node, graphNodeId);
SAME(copy, graph, graphId);

PREFIX(set);
SAME(set, value, value);
SAME(set, bytes, bytes);
SAME(set, start, start);
SAME(set, end, end);
SAME(set, device, deviceId);
SAME(set, context, contextId);
SAME(set, stream, streamId);
SAME(set, correlation, correlationId);
SAME(set, flags, flags);
SAME(set, memory_kind, memoryKind);
SAME(set, graph_node, graphNodeId);
SAME(set, graph, graphId);

PREFIX(peer_copy);
SAME(peer_copy, copy_kind, copyKind);
SAME(peer_copy, bytes, bytes);
SAME(peer_copy, start, start);
SAME(peer_copy, end, end);
SAME(peer_copy, device, deviceId);
SAME(peer_copy, context, contextId);
SAME(peer_copy, stream, streamId);
SAME(peer_copy, source_device, srcDeviceId);
SAME(peer_copy, source_context, srcContextId);
SAME(peer_copy, target_device, dstDeviceId);
SAME(peer_copy, target_context, dstContextId);
SAME(peer_copy, correlation, correlationId);
SAME(peer_copy, graph_node, graphNodeId);
SAME(peer_copy, graph, graphId);

PREFIX(call);
SAME(call, callback, cbid);
SAME(call, start, start);
SAME(call, end, end);
SAME(call, process, processId);
SAME(call, thread, threadId);
SAME(call, correlation, correlationId);
SAME(call, result, returnValue);

PREFIX(sync);
SAME(sync, type, type);
SAME(sync, start, start);
SAME(sync, end, end);
SAME(sync, correlation, correlationId);
SAME(sync, context, contextId);
SAME(sync, stream, streamId);
SAME(sync, event, cudaEventId);

PREFIX(event);
SAME(event, correlation, correlationId);
SAME(event, context, contextId);
SAME(event, stream, streamId);
SAME(event, event, eventId);

PREFIX(memory);
SAME(memory, operation, memoryOperationType);
SAME(memory, memory_kind, memoryKind);
SAME(memory, correlation, correlationId);
SAME(memory, address, address);
SAME(memory, bytes, bytes);
SAME(memory, timestamp, timestamp);
SAME(memory, pc, PC);
SAME(memory, process, processId);
SAME(memory, device, deviceId);
SAME(memory, context, contextId);
SAME(memory, stream, streamId);

PREFIX(overhead);
SAME(overhead, what, overheadKind);
SAME(overhead, object_kind, objectKind);
SAME(overhead, object, objectId);
SAME(overhead, start, start);
SAME(overhead, end, end);

/* ---- numbers
 * ------------------------------------------------------------------------------------------ */

#define EQUAL(ours, theirs)                                                                            \
    _Static_assert((long long)(OP_CUPTI_##ours) == (long long)(CUPTI_##theirs), #ours)

EQUAL(SUCCESS, SUCCESS);
EQUAL(INVALID_PARAMETER, ERROR_INVALID_PARAMETER);
EQUAL(INVALID_OPERATION, ERROR_INVALID_OPERATION);
EQUAL(OUT_OF_MEMORY, ERROR_OUT_OF_MEMORY);
EQUAL(MAX_LIMIT_REACHED, ERROR_MAX_LIMIT_REACHED);
EQUAL(NOT_INITIALIZED, ERROR_NOT_INITIALIZED);
EQUAL(INVALID_KIND, ERROR_INVALID_KIND);
EQUAL(NOT_SUPPORTED, ERROR_NOT_SUPPORTED);
EQUAL(INSUFFICIENT_PRIVILEGES, ERROR_INSUFFICIENT_PRIVILEGES);
EQUAL(OLD_PROFILER, ERROR_OLD_PROFILER_API_INITIALIZED);
EQUAL(MULTIPLE_SUBSCRIBERS, ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
EQUAL(VIRTUALIZED_INSUFFICIENT_PRIVILEGES, ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES);
EQUAL(UNKNOWN, ERROR_UNKNOWN);
EQUAL(MEMCPY, ACTIVITY_KIND_MEMCPY);
EQUAL(MEMSET, ACTIVITY_KIND_MEMSET);
EQUAL(DRIVER, ACTIVITY_KIND_DRIVER);
EQUAL(RUNTIME, ACTIVITY_KIND_RUNTIME);
EQUAL(KERNEL, ACTIVITY_KIND_CONCURRENT_KERNEL);
EQUAL(OVERHEAD, ACTIVITY_KIND_OVERHEAD);
EQUAL(PEER_COPY, ACTIVITY_KIND_MEMCPY2);
EQUAL(SYNC, ACTIVITY_KIND_SYNCHRONIZATION);
EQUAL(EVENT, ACTIVITY_KIND_CUDA_EVENT);
EQUAL(MEMORY, ACTIVITY_KIND_MEMORY2);
EQUAL(ZEROED_BUFFERS, ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER);
EQUAL(FLUSH_FORCED, ACTIVITY_FLAG_FLUSH_FORCED);
EQUAL(THREAD_ID_TYPE_DEFAULT, ACTIVITY_THREAD_ID_TYPE_DEFAULT);
EQUAL(THREAD_ID_TYPE_SYSTEM, ACTIVITY_THREAD_ID_TYPE_SYSTEM);
EQUAL(OF_DRIVER, CB_DOMAIN_DRIVER_API);
EQUAL(OF_RUNTIME, CB_DOMAIN_RUNTIME_API);
EQUAL(NO_STREAM, SYNCHRONIZATION_INVALID_VALUE);
EQUAL(COPY_HTOD, ACTIVITY_MEMCPY_KIND_HTOD);
EQUAL(COPY_DTOH, ACTIVITY_MEMCPY_KIND_DTOH);
EQUAL(COPY_DTOD, ACTIVITY_MEMCPY_KIND_DTOD);
EQUAL(COPY_HTOH, ACTIVITY_MEMCPY_KIND_HTOH);
EQUAL(COPY_PTOP, ACTIVITY_MEMCPY_KIND_PTOP);
EQUAL(PAGEABLE, ACTIVITY_MEMORY_KIND_PAGEABLE);
EQUAL(PINNED, ACTIVITY_MEMORY_KIND_PINNED);
EQUAL(ON_DEVICE, ACTIVITY_MEMORY_KIND_DEVICE);
EQUAL(ARRAY, ACTIVITY_MEMORY_KIND_ARRAY);
EQUAL(MANAGED, ACTIVITY_MEMORY_KIND_MANAGED);
EQUAL(DEVICE_STATIC, ACTIVITY_MEMORY_KIND_DEVICE_STATIC);
EQUAL(MANAGED_STATIC, ACTIVITY_MEMORY_KIND_MANAGED_STATIC);
EQUAL(EVENT_SYNCHRONIZE, ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE);
EQUAL(STREAM_WAIT_EVENT, ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT);
EQUAL(STREAM_SYNCHRONIZE, ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE);
EQUAL(CONTEXT_SYNCHRONIZE, ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE);
EQUAL(ALLOCATED, ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION);
EQUAL(RELEASED, ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE);

/* ---- functions: each argument is passed as theirs is
 * ---------------------------------------------------- */

/* Enumerations have four bytes on both sides, and a pointer is a pointer. */
_Static_assert(sizeof(CUpti_ActivityKind) == sizeof(int) && sizeof(CUptiResult) == sizeof(int) &&
                   sizeof(CUpti_CallbackDomain) == sizeof(int) && sizeof(CUpti_CallbackId) == 4,
               "enumerations");

static uint64_t now(void) { return 7; }

/* The compiler accepts a function pointer where the header wants one only if they agree. */
static void callbacks_are_of_their_types(void) {
    op_cupti_timestamp ours = now;
    CUpti_TimestampCallbackFunc theirs = ours;
    CHECK_EQ(theirs(), 7);
    op_cupti_request request = NULL;
    CUpti_BuffersCallbackRequestFunc their_request = request;
    CHECK(their_request == NULL);
}

int main(void) {
    RUN(callbacks_are_of_their_types);
    return 0;
}
