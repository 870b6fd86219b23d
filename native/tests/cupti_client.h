/* A client of CUPTI that keeps every record, for tests of the fake itself. */
#ifndef CUPTI_CLIENT_H
#define CUPTI_CLIENT_H

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

#if CUPTI_API_VERSION == 28
typedef CUpti_ActivityKernel9 kernel;
#else
typedef CUpti_ActivityKernel10 kernel;
#endif

#define RECEIVED 32768
static union {
    CUpti_Activity any;
    kernel a_kernel;
    CUpti_ActivityMemory4 memory;
    uint64_t room[32]; /* no record is longer */
} received[RECEIVED];
static int received_count, requests, completions;
static size_t buffer_size, most_records;
static bool refuse;
static pthread_t completed_on;

static void CUPTIAPI give(uint8_t **data, size_t *size, size_t *most) {
    requests++;
    *most = most_records;
    *size = buffer_size;
    *data = refuse ? NULL : aligned_alloc(8, buffer_size);
}

static void CUPTIAPI take(CUcontext context, uint32_t stream, uint8_t *data, size_t size,
                          size_t valid) {
    (void)context;
    (void)stream;
    CHECK_EQ(size, buffer_size);
    completions++;
    completed_on = pthread_self();
    CUpti_Activity *record = NULL;
    while (cuptiActivityGetNextRecord(data, valid, &record) == CUPTI_SUCCESS) {
        CHECK(received_count < RECEIVED);
        size_t rest = (size_t)(data + valid - (uint8_t *)record);
        memcpy(&received[received_count++], record, rest < 256 ? rest : 256);
    }
    free(data);
}

static inline void enable(uint32_t kind) {
    CHECK_EQ(cuptiActivityEnable((CUpti_ActivityKind)kind), CUPTI_SUCCESS);
}
static inline void disable(uint32_t kind) {
    CHECK_EQ(cuptiActivityDisable((CUpti_ActivityKind)kind), CUPTI_SUCCESS);
}

static inline void start_without_kinds(void) {
    fake_reset();
    received_count = requests = completions = 0;
    refuse = false;
    buffer_size = 64 << 10;
    most_records = 0;
    CHECK_EQ(cuptiActivityRegisterCallbacks(give, take), CUPTI_SUCCESS);
}

/* All kinds except the driver's calls. */
static inline void start(void) {
    start_without_kinds();
    enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    enable(CUPTI_ACTIVITY_KIND_MEMCPY);
    enable(CUPTI_ACTIVITY_KIND_MEMCPY2);
    enable(CUPTI_ACTIVITY_KIND_MEMSET);
    enable(CUPTI_ACTIVITY_KIND_RUNTIME);
    enable(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
    enable(CUPTI_ACTIVITY_KIND_MEMORY2);
    enable(CUPTI_ACTIVITY_KIND_OVERHEAD);
}

static inline void flush(void) { CHECK_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS); }
static inline void force(void) {
    CHECK_EQ(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), CUPTI_SUCCESS);
}

static inline int count_of(uint32_t kind) {
    int count = 0;
    for (int i = 0; i < received_count; i++)
        count += received[i].any.kind == kind;
    return count;
}

static inline void *nth(uint32_t kind, int n) {
    for (int i = 0; i < received_count; i++)
        if (received[i].any.kind == kind && n-- == 0)
            return &received[i];
    fprintf(stderr, "no such record of kind %u: %d\n", kind, n);
    exit(1);
}

static inline kernel *nth_kernel(int n) { return nth(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, n); }
static inline CUpti_ActivityAPI *nth_call(int n) { return nth(CUPTI_ACTIVITY_KIND_RUNTIME, n); }
static inline CUpti_ActivityAPI *nth_driver_call(int n) { return nth(CUPTI_ACTIVITY_KIND_DRIVER, n); }

static inline fake_totals totals(void) {
    fake_totals t;
    fake_count(&t);
    return t;
}

#endif
