/* The fake against what is known of the real library: the other tests rely on it. */
#include "check.h"
#include "fake_cuda.h"
#include "fake_cupti.h"

#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_driver_cbid.h>
#include <cupti_runtime_cbid.h>
#include <cupti_version.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#if CUPTI_API_VERSION == 28
typedef CUpti_ActivityKernel9 kernel;
#else
typedef CUpti_ActivityKernel10 kernel;
#endif

/* ---- a client ------------------------------------------------------------------------------------ */

#define ROOM 4096
static struct {
    uint8_t bytes[256];
} received[ROOM];
static int received_count, requests, completions;
static size_t buffer_size;
static bool refuse;

static void CUPTIAPI give(uint8_t **data, size_t *size, size_t *most) {
    requests++;
    *most = 0;
    *size = buffer_size;
    *data = refuse ? NULL : aligned_alloc(8, buffer_size);
}

static void CUPTIAPI take(CUcontext context, uint32_t stream, uint8_t *data, size_t size,
                          size_t valid) {
    (void)context;
    (void)stream;
    (void)size;
    completions++;
    CUpti_Activity *record = NULL;
    while (cuptiActivityGetNextRecord(data, valid, &record) == CUPTI_SUCCESS) {
        CHECK(received_count < ROOM);
        size_t rest = (size_t)(data + valid - (uint8_t *)record);
        memcpy(&received[received_count++], record, rest < 256 ? rest : 256);
    }
    free(data);
}

static const uint32_t all_kinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                     CUPTI_ACTIVITY_KIND_MEMCPY,
                                     CUPTI_ACTIVITY_KIND_MEMSET,
                                     CUPTI_ACTIVITY_KIND_MEMCPY2,
                                     CUPTI_ACTIVITY_KIND_RUNTIME,
                                     CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
                                     CUPTI_ACTIVITY_KIND_MEMORY2,
                                     CUPTI_ACTIVITY_KIND_OVERHEAD};

static void start_with(size_t bytes) {
    fake_reset();
    received_count = requests = completions = 0;
    refuse = false;
    buffer_size = bytes;
    CHECK_EQ(cuptiActivityRegisterCallbacks(give, take), CUPTI_SUCCESS);
    for (size_t i = 0; i < sizeof all_kinds / sizeof *all_kinds; i++)
        CHECK_EQ(cuptiActivityEnable((CUpti_ActivityKind)all_kinds[i]), CUPTI_SUCCESS);
}

static void start(void) { start_with(64 << 10); }
static void flush(void) { CHECK_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS); }
static void force(void) {
    CHECK_EQ(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), CUPTI_SUCCESS);
}

static int count_of(uint32_t kind) {
    int count = 0;
    for (int i = 0; i < received_count; i++)
        count += ((CUpti_Activity *)&received[i])->kind == kind;
    return count;
}

static void *nth(uint32_t kind, int n) {
    for (int i = 0; i < received_count; i++)
        if (((CUpti_Activity *)&received[i])->kind == kind && n-- == 0)
            return &received[i];
    fprintf(stderr, "no record %d of kind %u\n", n, kind);
    exit(1);
}

static kernel *nth_kernel(int n) { return nth(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, n); }
static CUpti_ActivityAPI *nth_call(int n) { return nth(CUPTI_ACTIVITY_KIND_RUNTIME, n); }

/* ---- records ---------------------------------------------------------------------------------------
 */

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

/* ---- delivery ---------------------------------------------------------------------------------------
 */

static void incomplete_records_stay_until_forced(void) {
    start();
    fake_activity endless = {.kind = FAKE_LAUNCH, .flags = FAKE_ENDLESS};
    uint32_t id = fake_run(&endless);
    fake_synchronize();
    flush();
    CHECK_EQ(count_of(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), 0);
    CHECK_EQ(nth_call(0)->correlationId, id);
    force();
    kernel *k = nth_kernel(0);
    CHECK_EQ(k->correlationId, id);
    CHECK_EQ(k->start, 0);
    CHECK_EQ(k->end, 0);
    fake_totals totals;
    fake_count(&totals);
    CHECK_EQ(totals.untimed, 1);
    CHECK_EQ(totals.pending, 0);
    force();
    CHECK_EQ(count_of(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), 1);
}

static void full_buffers_come_without_a_flush(void) {
    start_with(4096);
    fake_worker(0);
    for (int i = 0; i < 1000; i++)
        fake_launch("small", 7, 100);
    fake_waiting(0);
    fake_synchronize();
    flush();
    CHECK(completions > 40);
    CHECK_EQ(count_of(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), 1000);
    CHECK_EQ(count_of(CUPTI_ACTIVITY_KIND_RUNTIME), 1001);
    fake_totals totals;
    fake_count(&totals);
    CHECK_EQ(totals.held, 0);
    CHECK_EQ(totals.appended[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL], 1000);
}

int main(void) {
    RUN(a_launch_has_its_call_and_its_kernel);
    RUN(incomplete_records_stay_until_forced);
    RUN(full_buffers_come_without_a_flush);
    fake_reset();
    return 0;
}
