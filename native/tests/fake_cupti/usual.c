/* The usual call of the runtime and of the driver for a kind of activity. */
#include "fake.h"

static uint32_t usual_runtime(uint32_t kind) {
    switch (kind) {
    case FAKE_LAUNCH:
        return CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000;
    case FAKE_GRAPH_LAUNCH:
        return CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000;
    case FAKE_MEMCPY:
        return CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020;
    case FAKE_MEMCPY_PEER:
        return CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyPeerAsync_v4000;
    case FAKE_MEMSET:
        return CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020;
    case FAKE_SYNC_DEVICE:
        return CUPTI_RUNTIME_TRACE_CBID_cudaDeviceSynchronize_v3020;
    case FAKE_SYNC_STREAM:
        return CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020;
    case FAKE_SYNC_EVENT:
        return CUPTI_RUNTIME_TRACE_CBID_cudaEventSynchronize_v3020;
    case FAKE_WAIT_EVENT:
        return CUPTI_RUNTIME_TRACE_CBID_cudaStreamWaitEvent_v3020;
    case FAKE_QUERY:
        return CUPTI_RUNTIME_TRACE_CBID_cudaStreamQuery_v3020;
    case FAKE_MALLOC:
        return CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020;
    case FAKE_FREE:
        return CUPTI_RUNTIME_TRACE_CBID_cudaFree_v3020;
    case FAKE_RECORD:
        return CUPTI_RUNTIME_TRACE_CBID_cudaEventRecord_v3020;
    case FAKE_CAPTURE:
        return CUPTI_RUNTIME_TRACE_CBID_cudaStreamBeginCapture_v10000;
    case FAKE_END_CAPTURE:
        return CUPTI_RUNTIME_TRACE_CBID_cudaStreamEndCapture_v10000;
    default:
        return 0;
    }
}

static uint32_t usual_driver(uint32_t kind) {
    switch (kind) {
    case FAKE_LAUNCH:
        return CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel;
    case FAKE_GRAPH_LAUNCH:
        return CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch;
    case FAKE_MEMCPY:
        return CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync;
    case FAKE_MEMCPY_PEER:
        return CUPTI_DRIVER_TRACE_CBID_cuMemcpyPeerAsync;
    case FAKE_MEMSET:
        return CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async;
    case FAKE_SYNC_DEVICE:
        return CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize;
    case FAKE_SYNC_STREAM:
        return CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize;
    case FAKE_SYNC_EVENT:
        return CUPTI_DRIVER_TRACE_CBID_cuEventSynchronize;
    case FAKE_WAIT_EVENT:
        return CUPTI_DRIVER_TRACE_CBID_cuStreamWaitEvent;
    case FAKE_QUERY:
        return CUPTI_DRIVER_TRACE_CBID_cuStreamQuery;
    case FAKE_MALLOC:
        return CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2;
    case FAKE_FREE:
        return CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2;
    case FAKE_RECORD:
        return CUPTI_DRIVER_TRACE_CBID_cuEventRecord;
    case FAKE_CAPTURE:
        return CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2;
    case FAKE_END_CAPTURE:
        return CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture;
    default:
        return 0;
    }
}

uint32_t fake_usual_call(bool driver, uint32_t kind) {
    return driver ? usual_driver(kind) : usual_runtime(kind);
}
