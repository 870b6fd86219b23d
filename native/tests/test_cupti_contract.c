/* Compares the fake with the real library of the same version: both read the same buffers alike, have
 * the same names, and answer alike without a GPU. Neither is linked; each is opened separately, so that
 * it does not find the other's functions. */
#include "check.h"
#include "fake_cupti.h"

#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_version.h>
#include <dlfcn.h>

#define SKIPPED 77 /* ctest's SKIP_RETURN_CODE */

static void *fake, *real;

static void *symbol(void *library, const char *name) {
    void *found = dlsym(library, name);
    if (!found)
        fprintf(stderr, "%s: no %s\n", library == fake ? "the fake" : "the real library", name);
    CHECK(found != NULL);
    return found;
}

#define FROM(library, name) ((__typeof__(&name))symbol(library, #name))

/* ---- buffers that the fake wrote
 * ------------------------------------------------------------------------ */

#define BUFFERS 64
static struct {
    uint8_t *data;
    size_t size, valid;
} buffers[BUFFERS];
static int buffer_count;

static void CUPTIAPI give(uint8_t **data, size_t *size, size_t *most) {
    *size = 32 << 10;
    *most = 0;
    *data = aligned_alloc(8, *size);
}

static void CUPTIAPI keep(CUcontext context, uint32_t stream, uint8_t *data, size_t size,
                          size_t valid) {
    (void)context;
    (void)stream;
    CHECK(buffer_count < BUFFERS);
    buffers[buffer_count].data = data;
    buffers[buffer_count].size = size;
    buffers[buffer_count++].valid = valid;
}

static void forget_buffers(void) {
    for (int i = 0; i < buffer_count; i++)
        free(buffers[i].data);
    buffer_count = 0;
}

/* An activity of each kind through each API, repeatedly. */
static const char *const script = "launch name=gemm grid=8,4,2 stream=13\n"
                                  "memcpy bytes=4096 api=driver\n"
                                  "peer bytes=100 peer=1 api=nested\n"
                                  "memset bytes=64 api=nested_own\n"
                                  "graph nodes=3\n"
                                  "record event=5\n"
                                  "wait_event event=5\n"
                                  "query\n"
                                  "malloc bytes=1000\n"
                                  "free bytes=1000\n"
                                  "overhead ns=10\n"
                                  "launch flags=endless device=1\n"
                                  "sync_device\n";

static void write_buffers(uint32_t kernel_kind, uint64_t seed) {
    static const uint32_t kinds[] = {CUPTI_ACTIVITY_KIND_MEMCPY,    CUPTI_ACTIVITY_KIND_MEMCPY2,
                                     CUPTI_ACTIVITY_KIND_MEMSET,    CUPTI_ACTIVITY_KIND_RUNTIME,
                                     CUPTI_ACTIVITY_KIND_DRIVER,    CUPTI_ACTIVITY_KIND_MEMORY2,
                                     CUPTI_ACTIVITY_KIND_OVERHEAD,  CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
                                     CUPTI_ACTIVITY_KIND_CUDA_EVENT};
    FROM(fake, fake_reset)();
    CHECK_EQ(FROM(fake, cuptiActivityRegisterCallbacks)(give, keep), CUPTI_SUCCESS);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        CHECK_EQ(FROM(fake, cuptiActivityEnable)((CUpti_ActivityKind)kinds[i]), CUPTI_SUCCESS);
    CHECK_EQ(FROM(fake, cuptiActivityEnable)((CUpti_ActivityKind)kernel_kind), CUPTI_SUCCESS);
    FROM(fake, fake_shuffle)(seed);
    for (int i = 0; i < 60; i++)
        CHECK_EQ(FROM(fake, fake_script)(script, NULL), 0);
    CHECK_EQ(FROM(fake, cuptiActivityFlushAll)(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), CUPTI_SUCCESS);
}

/* Both find the same records at the same places, and end with the same code. */
static uint64_t walk_both(uint8_t *data, size_t valid) {
    CUpti_Activity *by_fake = NULL, *by_real = NULL;
    for (uint64_t count = 0;; count++) {
        CUptiResult one = FROM(fake, cuptiActivityGetNextRecord)(data, valid, &by_fake);
        CUptiResult other = FROM(real, cuptiActivityGetNextRecord)(data, valid, &by_real);
        CHECK_EQ(one, other);
        if (one != CUPTI_SUCCESS)
            return count;
        CHECK_EQ((uint8_t *)by_fake - data, (uint8_t *)by_real - data);
    }
}

static uint64_t written(void) {
    fake_totals totals;
    uint64_t sum = 0;
    FROM(fake, fake_count)(&totals);
    for (int kind = 0; kind < FAKE_KINDS; kind++)
        sum += totals.appended[kind];
    return sum;
}

static void the_real_library_walks_every_kind(void) {
    static const uint32_t kernels[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                       CUPTI_ACTIVITY_KIND_KERNEL, CUPTI_ACTIVITY_KIND_GRAPH_TRACE};
    for (uint64_t i = 0; i < 3; i++) {
        uint64_t walked = 0;
        write_buffers(kernels[i], i);
        for (int b = 0; b < buffer_count; b++)
            walked += walk_both(buffers[b].data, buffers[b].valid);
        CHECK(buffer_count > 2);
        CHECK_EQ(walked, written());
        forget_buffers();
    }
}

static void both_stop_where_a_record_is_torn(void) {
    write_buffers(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 1);
    for (size_t valid = 0; valid < 2048; valid++)
        walk_both(buffers[0].data, valid);
    memset(buffers[0].data + buffers[0].valid - 24, 0, 24); /* an invalid kind */
    for (uint32_t kind = 200; kind < 100000; kind *= 3) {
        memcpy(buffers[0].data, &kind, sizeof kind);
        CHECK_EQ(walk_both(buffers[0].data, buffers[0].valid), 0);
    }
    forget_buffers();
}

/* ---- names
 * ------------------------------------------------------------------------------------------------ */

static void names_are_the_real_ones(void) {
    for (int code = 0; code < 1000; code++) {
        const char *one = NULL, *other = NULL;
        CHECK_EQ(FROM(fake, cuptiGetResultString)((CUptiResult)code, &one),
                 FROM(real, cuptiGetResultString)((CUptiResult)code, &other));
        CHECK_TEXT(one, other);
    }
    int named = 0;
    for (int domain = CUPTI_CB_DOMAIN_DRIVER_API; domain <= CUPTI_CB_DOMAIN_RUNTIME_API; domain++)
        for (uint32_t call = 0; call < 1200; call++) {
            const char *one = NULL, *other = NULL;
            CUptiResult code =
                FROM(fake, cuptiGetCallbackName)((CUpti_CallbackDomain)domain, call, &one);
            CUptiResult real_code =
                FROM(real, cuptiGetCallbackName)((CUpti_CallbackDomain)domain, call, &other);
            if (code != CUPTI_SUCCESS && call < 600)
                continue; /* the real library has a few more than its headers */
            CHECK_EQ(code, real_code);
            CHECK_EQ(one == NULL, other == NULL);
            CHECK_TEXT(one ? one : "", other ? other : "");
            named += one != NULL;
        }
    CHECK(named > 900);
}

/* ---- without a GPU
 * ------------------------------------------------------------------------------------------ */

static uint64_t CUPTIAPI some_time(void) { return 42; }
static void CUPTIAPI listen(void *data, CUpti_CallbackDomain domain, CUpti_CallbackId call,
                            const void *more) {
    (void)data, (void)domain, (void)call, (void)more;
}

#define ALIKE(name, ...) CHECK_EQ(FROM(fake, name)(__VA_ARGS__), FROM(real, name)(__VA_ARGS__))

static void both_answer_alike_without_a_gpu(void) {
    FROM(fake, fake_reset)();
    FROM(fake, fake_mode)(CUPTI_API_VERSION == 28 ? FAKE_NO_GPU_12 : FAKE_NO_GPU_13);
    uint32_t version = 0, theirs = 0;
    size_t one = 1, dropped = 7;
    uint8_t on = 1;
    uint64_t time;
    CUpti_SubscriberHandle handle;
    CUpti_ActivityThreadIdType type;
    CHECK_EQ(FROM(fake, cuptiGetVersion)(&version), FROM(real, cuptiGetVersion)(&theirs));
    CHECK_EQ(version, theirs);
    ALIKE(cuptiGetTimestamp, &time);
    ALIKE(cuptiActivityRegisterCallbacks, give, keep);
    ALIKE(cuptiSubscribe, &handle, listen, NULL);
    ALIKE(cuptiActivityRegisterTimestampCallback, some_time);
    ALIKE(cuptiSetThreadIdType, CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
    ALIKE(cuptiGetThreadIdType, &type);
    ALIKE(cuptiActivityEnable, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    ALIKE(cuptiActivityDisable, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    ALIKE(cuptiActivityEnableRuntimeApi, 10, 0);
    ALIKE(cuptiActivityEnableDriverApi, 10, 0);
    ALIKE(cuptiActivityEnableAllSyncRecords, 0);
    ALIKE(cuptiActivitySetAttribute, CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &one, &on);
    ALIKE(cuptiActivityFlushAll, 0);
    ALIKE(cuptiActivityFlushAll, 1);
    ALIKE(cuptiActivityGetNumDroppedRecords, NULL, 0, &dropped);
    CHECK_EQ(dropped, 0);
#if CUPTI_API_VERSION >= 130001
    ALIKE(cuptiSubscribe_v2, &handle, listen, NULL, NULL);
#endif
    FROM(fake, fake_reset)();
}

/* NVIDIA's cuptiSubscribe() of 12.9 leaks a byte without a driver; LeakSanitizer calls this. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:nvidia/cu"; }

int main(int count, char **arguments) {
    CHECK_EQ(count, 3);
    real = dlopen(arguments[2], RTLD_NOW | RTLD_LOCAL);
    if (!real) {
        printf("skipped: no real library to compare with: %s\n", dlerror());
        return SKIPPED;
    }
    fake = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    CHECK(fake != NULL);
    CHECK(fake != real);
    RUN(the_real_library_walks_every_kind);
    RUN(both_stop_where_a_record_is_torn);
    RUN(names_are_the_real_ones);
    if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL))
        printf("skipped both_answer_alike_without_a_gpu: this machine has a driver\n");
    else
        RUN(both_answer_alike_without_a_gpu);
    return 0;
}
