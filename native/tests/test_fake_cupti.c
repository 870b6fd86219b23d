/* Checks the fake's records against what is known of the real library; other tests rely on it. */
#include "cupti_client.h"
#include "others.h"

/* Keeps a kernel running until the next call, however busy the machine is. */
#define LONG_NS 200000000

/* ---- calls and kernels ------------------------------------------------------------------- */

static void a_launch_has_its_call_and_its_kernel(void) {
    start();
    fake_activity gemm = {.kind = FAKE_LAUNCH,
                          .name = "gemm",
                          .device = 1,
                          .stream = 13,
                          .ns = 2500,
                          .grid = {8, 4, 2},
                          .block = {128, 2, 1},
                          .registers = 40,
                          .static_shared = 1024,
                          .dynamic_shared = 2048};
    uint32_t id = fake_run(&gemm);
    fake_synchronize();
    flush();
    CHECK_EQ(count_of(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), 1);
    CHECK_EQ(count_of(CUPTI_ACTIVITY_KIND_RUNTIME), 2);
    kernel *k = nth_kernel(0);
    CUpti_ActivityAPI *call = nth_call(0);
    CHECK_TEXT(k->name, "gemm");
    CHECK_EQ(k->correlationId, id);
    CHECK_EQ(k->end - k->start, 2500);
    CHECK_EQ(k->deviceId, 1);
    CHECK_EQ(k->contextId, 2);
    CHECK_EQ(k->streamId, 13);
    CHECK_EQ(k->gridX * 100 + k->gridY * 10 + k->gridZ, 842);
    CHECK_EQ(k->blockX * 100 + k->blockY * 10 + k->blockZ, 12821);
    CHECK_EQ(k->registersPerThread, 40);
    CHECK_EQ(k->staticSharedMemory, 1024);
    CHECK_EQ(k->dynamicSharedMemory, 2048);
    CHECK_EQ(call->correlationId, id);
    CHECK_EQ(call->cbid, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000);
    CHECK_EQ(call->threadId, (uint32_t)pthread_self());
    CHECK_EQ(call->processId, getpid());
    CHECK(call->start <= call->end && call->end <= k->start);
}

static void a_graph_has_one_call_and_many_kernels(void) {
    start();
    uint32_t id = fake_graph_launch("node", 7, 4, 300), again = fake_graph_launch("node", 7, 4, 300);
    fake_synchronize();
    flush();
    CHECK_EQ(count_of(CUPTI_ACTIVITY_KIND_RUNTIME), 3);
    CHECK_EQ(nth_call(0)->cbid, CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(nth_kernel(i)->correlationId, id);
        CHECK_EQ(nth_kernel(4 + i)->correlationId, again);
        CHECK_EQ(nth_kernel(i)->graphId, 1);
        CHECK_EQ(nth_kernel(i)->graphNodeId, nth_kernel(4 + i)->graphNodeId);
        CHECK(i == 0 || nth_kernel(i)->graphNodeId != nth_kernel(i - 1)->graphNodeId);
        CHECK(i == 0 || nth_kernel(i)->start >= nth_kernel(i - 1)->end);
    }
}

static void a_graph_trace_takes_the_kernels_place(void) {
    start();
    enable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
    fake_graph_launch("node", 7, 4, 300);
    fake_synchronize();
    flush();
    CHECK_EQ(count_of(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), 0);
    CUpti_ActivityGraphTrace2 *graph = nth(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, 0);
    CHECK_EQ(graph->end - graph->start, 1200);
}

static void nested_calls_share_their_id_or_not(void) {
    start();
    enable(CUPTI_ACTIVITY_KIND_DRIVER);
    fake_activity same = {.kind = FAKE_LAUNCH, .api = FAKE_NESTED};
    fake_activity own = {.kind = FAKE_LAUNCH, .api = FAKE_NESTED_OWN};
    uint32_t one = fake_run(&same), other = fake_run(&own);
    fake_synchronize();
    flush();
    CHECK_EQ(nth_call(0)->correlationId, one);
    CHECK_EQ(nth_driver_call(0)->correlationId, one);
    CHECK_EQ(nth_call(1)->correlationId, other);
    CHECK(nth_driver_call(1)->correlationId != other);
    CHECK_EQ(nth_kernel(0)->correlationId, one);
    CHECK_EQ(nth_kernel(1)->correlationId, other);
    CHECK_EQ(nth_driver_call(0)->cbid, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
    CHECK(nth_call(0)->start <= nth_driver_call(0)->start);
    CHECK(nth_call(0)->end >= nth_driver_call(0)->end);
}

static void a_call_that_failed_starts_nothing(void) {
    start();
    fake_activity refused = {.kind = FAKE_LAUNCH, .result = 2};
    fake_run(&refused);
    fake_synchronize();
    force();
    CHECK_EQ(nth_call(0)->returnValue, 2);
    CHECK_EQ(count_of(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), 0);
}

static void the_kind_overrides_what_was_said_of_calls(void) {
    start_without_kinds();
    uint32_t launch = CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000;
    CHECK_EQ(cuptiActivityEnableRuntimeApi(launch, 1), CUPTI_SUCCESS);
    fake_launch("alone", 7, 10);
    fake_memset(1, 7, 10); /* another call */
    disable(CUPTI_ACTIVITY_KIND_RUNTIME);
    fake_launch("none", 7, 10);
    CHECK_EQ(cuptiActivityEnableRuntimeApi(launch, 0), CUPTI_SUCCESS);
    enable(CUPTI_ACTIVITY_KIND_RUNTIME);
    fake_launch("all", 7, 10);
    CHECK_EQ(cuptiActivityEnableRuntimeApi(launch, 0), CUPTI_SUCCESS);
    fake_launch("filtered", 7, 10);
    fake_memset(1, 7, 10);
    flush();
    CHECK_EQ(count_of(CUPTI_ACTIVITY_KIND_RUNTIME), 3);
    CHECK_EQ(nth_call(0)->cbid, launch);
    CHECK_EQ(nth_call(1)->cbid, launch);
    CHECK_EQ(nth_call(2)->cbid, CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020);
}

/* What CUPTI of CUDA 13.0 did on a GPU, despite its header. */
static void a_call_of_the_driver_needs_its_kind(void) {
    start_without_kinds();
    uint32_t launch = CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel;
    fake_activity by_driver = {
        .kind = FAKE_LAUNCH, .api = FAKE_DRIVER, .name = "k", .stream = 7, .ns = 10};
    CHECK_EQ(cuptiActivityEnableDriverApi(launch, 1), CUPTI_SUCCESS);
    fake_run(&by_driver);
    enable(CUPTI_ACTIVITY_KIND_DRIVER);
    fake_run(&by_driver);
    CHECK_EQ(cuptiActivityEnableDriverApi(launch, 0), CUPTI_SUCCESS);
    fake_run(&by_driver);
    flush();
    CHECK_EQ(count_of(CUPTI_ACTIVITY_KIND_DRIVER), 1);
}

/* ---- the device -------------------------------------------------------------------------- */

static void streams_overlap_and_one_does_not(void) {
    start();
    fake_launch("a", 7, LONG_NS);
    fake_launch("b", 7, 1000);
    fake_launch("c", 13, 1000);
    fake_synchronize();
    flush();
    kernel *k[3];
    for (int i = 0; i < 3; i++)
        k[nth_kernel(i)->name[0] - 'a'] = nth_kernel(i);
    CHECK_EQ(k[1]->start, k[0]->end);
    CHECK(k[2]->start < k[0]->end);
    start();
    disable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    enable(CUPTI_ACTIVITY_KIND_KERNEL);
    fake_launch("a", 7, LONG_NS);
    fake_launch("c", 13, 1000);
    fake_waiting(0);
    fake_synchronize();
    force();
    k[0] = nth(CUPTI_ACTIVITY_KIND_KERNEL, 0);
    k[1] = nth(CUPTI_ACTIVITY_KIND_KERNEL, 1);
    CHECK(k[0]->start == k[1]->start + 1000 || k[1]->start == k[0]->start + LONG_NS);
}

static void the_host_waits_for_the_device(void) {
    start();
    fake_launch("slow", 7, LONG_NS);
    CHECK_EQ(totals().pending, 1);
    fake_synchronize();
    flush();
    CUpti_ActivitySynchronization2 *sync = nth(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, 0);
    CHECK(sync->end >= nth_kernel(0)->end);
    CHECK(sync->start < nth_kernel(0)->end);
    CHECK_EQ(sync->type, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE);
    CHECK_EQ(sync->correlationId, nth_call(1)->correlationId);
    CHECK_EQ(sync->streamId, CUPTI_SYNCHRONIZATION_INVALID_VALUE);
}

static void each_wait_has_its_type(void) {
    start();
    static const uint32_t kinds[] = {FAKE_SYNC_STREAM, FAKE_SYNC_EVENT, FAKE_WAIT_EVENT};
    static const uint32_t types[] = {CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE,
                                     CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE,
                                     CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT};
    for (int i = 0; i < 3; i++) {
        fake_activity wait = {.kind = kinds[i], .stream = 9, .event = 4};
        fake_run(&wait);
    }
    flush();
    for (int i = 0; i < 3; i++) {
        CUpti_ActivitySynchronization2 *sync = nth(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, i);
        CHECK_EQ(sync->type, types[i]);
        CHECK_EQ(sync->streamId == 9, kinds[i] != FAKE_SYNC_EVENT);
        CHECK_EQ(sync->cudaEventId == 4, kinds[i] != FAKE_SYNC_STREAM);
    }
}

static void queries_of_a_busy_stream_may_be_left_out(void) {
    start();
    fake_activity query = {.kind = FAKE_QUERY};
    fake_launch("slow", 7, 5000000);
    fake_run(&query);
    CHECK_EQ(cuptiActivityEnableAllSyncRecords(0), CUPTI_SUCCESS);
    fake_run(&query);
    fake_synchronize();
    fake_run(&query);
    flush();
    CHECK_EQ(nth_call(1)->returnValue, 600);
    CHECK_EQ(nth_call(2)->returnValue, 600);
    CHECK_EQ(nth_call(4)->returnValue, 0);
    CHECK_EQ(count_of(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION), 3); /* not the second query */
}

static void copies_and_sets_have_their_bytes(void) {
    start();
    fake_memcpy(CUPTI_ACTIVITY_MEMCPY_KIND_DTOH, 4096, 9, 700);
    fake_memset(64, 9, 50);
    fake_activity peer = {.kind = FAKE_MEMCPY_PEER, .bytes = 99, .device = 0, .peer = 1};
    fake_run(&peer);
    fake_waiting(0);
    fake_synchronize();
    flush();
    CUpti_ActivityMemcpy6 *copy = nth(CUPTI_ACTIVITY_KIND_MEMCPY, 0);
    CUpti_ActivityMemset4 *set = nth(CUPTI_ACTIVITY_KIND_MEMSET, 0);
    CUpti_ActivityMemcpyPtoP4 *both = nth(CUPTI_ACTIVITY_KIND_MEMCPY2, 0);
    CHECK_EQ(copy->copyKind, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH);
    CHECK_EQ(copy->bytes, 4096);
    CHECK_EQ(copy->end - copy->start, 700);
    CHECK_EQ(set->bytes, 64);
    CHECK_EQ(set->end - set->start, 50);
    CHECK_EQ(both->bytes, 99);
    CHECK_EQ(both->dstDeviceId, 1);
}

static void memory_and_overhead_have_their_records(void) {
    start();
    fake_activity taken = {.kind = FAKE_MALLOC, .bytes = 1000},
                  given = {.kind = FAKE_FREE, .bytes = 1000};
    fake_activity overhead = {.kind = FAKE_OVERHEAD, .ns = 77};
    fake_run(&taken);
    fake_run(&given);
    fake_run(&taken);
    fake_run(&overhead);
    flush();
    CUpti_ActivityMemory4 *one = nth(CUPTI_ACTIVITY_KIND_MEMORY2, 0);
    CUpti_ActivityMemory4 *two = nth(CUPTI_ACTIVITY_KIND_MEMORY2, 1);
    CUpti_ActivityMemory4 *three = nth(CUPTI_ACTIVITY_KIND_MEMORY2, 2);
    CUpti_ActivityOverhead3 *stall = nth(CUPTI_ACTIVITY_KIND_OVERHEAD, 0);
    CHECK_EQ(one->memoryOperationType, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION);
    CHECK_EQ(two->memoryOperationType, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE);
    CHECK_EQ(one->bytes, 1000);
    CHECK_EQ(one->address, two->address);
    CHECK(three->address != one->address);
    CHECK_EQ(one->correlationId, nth_call(0)->correlationId);
    CHECK(one->timestamp >= nth_call(0)->start && one->timestamp <= nth_call(0)->end);
    CHECK_EQ(stall->end - stall->start, 77);
}

/* ---- clock and threads ------------------------------------------------------------------- */

static uint64_t ticks;
static uint64_t CUPTIAPI tick(void) { return __atomic_add_fetch(&ticks, 1, __ATOMIC_RELAXED); }

static void times_are_by_the_clients_clock(void) {
    start();
    CHECK_EQ(cuptiActivityRegisterTimestampCallback(tick), CUPTI_SUCCESS);
    CHECK_EQ(cuptiActivityRegisterTimestampCallback(NULL), CUPTI_ERROR_INVALID_PARAMETER);
    fake_launch("a", 7, 1000);
    fake_activity fixed = {.kind = FAKE_LAUNCH, .api_start = 50, .api_end = 60, .start = 70, .end = 75};
    fake_run(&fixed);
    fake_synchronize();
    flush();
    CHECK(nth_call(0)->end <= ticks);
    CHECK(nth_kernel(0)->start <= ticks + 1000);
    CHECK_EQ(nth_call(1)->start, 50);
    CHECK_EQ(nth_call(1)->end, 60);
    CHECK_EQ(nth_kernel(1)->start, 70);
    CHECK_EQ(nth_kernel(1)->end, 75);
}

static void *launch_there(void *thread) {
    *(uint32_t *)thread = (uint32_t)pthread_self();
    fake_launch("there", 7, 10);
    return NULL;
}

static void calls_have_their_threads_id(void) {
    uint32_t there = 0;
    start();
    on_another_thread(launch_there, &there);
    CHECK_EQ(cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM), CUPTI_SUCCESS);
    fake_launch("here", 7, 10);
    flush();
    CUpti_ActivityAPI *calls[2] = {nth_call(0), nth_call(1)};
    bool first = calls[0]->threadId == there;
    CHECK(first || calls[1]->threadId == there);
    CHECK_EQ(calls[first]->threadId, gettid());
}

int main(void) {
    RUN(a_launch_has_its_call_and_its_kernel);
    RUN(a_graph_has_one_call_and_many_kernels);
    RUN(a_graph_trace_takes_the_kernels_place);
    RUN(nested_calls_share_their_id_or_not);
    RUN(a_call_that_failed_starts_nothing);
    RUN(the_kind_overrides_what_was_said_of_calls);
    RUN(a_call_of_the_driver_needs_its_kind);
    RUN(streams_overlap_and_one_does_not);
    RUN(the_host_waits_for_the_device);
    RUN(each_wait_has_its_type);
    RUN(queries_of_a_busy_stream_may_be_left_out);
    RUN(copies_and_sets_have_their_bytes);
    RUN(memory_and_overhead_have_their_records);
    RUN(times_are_by_the_clients_clock);
    RUN(calls_have_their_threads_id);
    fake_reset();
    return 0;
}
