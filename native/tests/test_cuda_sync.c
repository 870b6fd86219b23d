/* Waiting for devices, over the fake libcuda. */
#include "check.h"
#include "fake_cuda.h"

/* Functions of the fake libcuda, as in cuda.h. */
int cuInit(unsigned flags);
int cuCtxCreate_v2(void **context, unsigned flags, int device);
int cuCtxGetCurrent(void **context);
int cuCtxSetCurrent(void *context);
int cuCtxGetDevice(int *device);
int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active);
int cuDevicePrimaryCtxRelease_v2(int device);

static int is_active(int device) {
    unsigned flags = 0;
    int active = 0;
    CHECK_EQ(cuDevicePrimaryCtxGetState(device, &flags, &active), 0);
    return active;
}

static uint64_t waits(void) { return fake_cuda_calls("cuCtxSynchronize"); }

static void cuda_that_nobody_started_stays_so(void) {
    fake_cuda_reset();
    CHECK_EQ(op_cuda_synchronize(), 0);
    CHECK_EQ(fake_cuda_calls("cuInit"), 0);
    CHECK_EQ(waits(), 0);
}

static void devices_that_nobody_uses_stay_so(void) {
    fake_cuda_reset();
    CHECK_EQ(cuInit(0), 0);
    CHECK_EQ(op_cuda_synchronize(), 0);
    CHECK_EQ(is_active(0) + is_active(1), 0);
    CHECK_EQ(fake_cuda_calls("cuDevicePrimaryCtxRetain"), 0);
}

static void each_device_in_use_is_waited_for(void) {
    fake_cuda_reset();
    fake_cuda_devices(4);
    fake_cuda_use(3);
    fake_cuda_use(1);
    CHECK_EQ(op_cuda_synchronize(), 2);
    CHECK_EQ(waits(), 2);
    CHECK_EQ(is_active(0) + is_active(2), 0);
    int device = -1;
    CHECK_EQ(cuCtxGetDevice(&device), 0);
    CHECK_EQ(device, 1); /* the thread's context is unchanged */
}

static void contexts_are_given_back(void) {
    fake_cuda_reset();
    fake_cuda_use(0);
    CHECK_EQ(op_cuda_synchronize(), 1);
    CHECK_EQ(is_active(0), 1);
    CHECK_EQ(cuDevicePrimaryCtxRelease_v2(0), 0);
    CHECK_EQ(is_active(0), 0);
}

static void threads_without_a_context_wait_too(void) {
    fake_cuda_reset();
    fake_cuda_use(0);
    cuCtxSetCurrent(NULL);
    CHECK_EQ(op_cuda_synchronize(), 1);
    void *context = &context;
    CHECK_EQ(cuCtxGetCurrent(&context), 0);
    CHECK(context == NULL);
}

static void own_context_of_a_program_is_waited_for(void) {
    fake_cuda_reset();
    void *context = NULL;
    CHECK_EQ(cuInit(0), 0);
    CHECK_EQ(cuCtxCreate_v2(&context, 0, 1), 0);
    CHECK_EQ(op_cuda_synchronize(), 1);
    CHECK_EQ(waits(), 1);
    fake_cuda_use(0);
    cuCtxSetCurrent(context);
    CHECK_EQ(op_cuda_synchronize(), 2);
}

static void no_device_is_nothing_to_wait_for(void) {
    const int none[] = {3, 4, 100};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        fake_cuda_reset();
        fake_cuda_fail("cuDeviceGetCount", none[i]);
        CHECK_EQ(op_cuda_synchronize(), 0);
    }
}

static void each_failure_is_told(void) {
    static const char *const calls[] = {"cuCtxGetCurrent",
                                        "cuCtxPushCurrent_v2",
                                        "cuCtxSynchronize",
                                        "cuDevicePrimaryCtxGetState",
                                        "cuDevicePrimaryCtxRetain",
                                        "cuDeviceGetCount",
                                        "cuDeviceGet"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        fake_cuda_reset();
        fake_cuda_use(0);
        fake_cuda_use(1);
        fake_cuda_fail(calls[i], 700);
        CHECK_FAILS(op_cuda_synchronize(), OP_EIO, "cannot wait for CUDA: ");
        CHECK_FAILS(op_cuda_synchronize(), OP_EIO, " returned 700 (unknown to the driver)");
    }
    fake_cuda_reset();
    fake_cuda_use(0);
    fake_cuda_fail("cuCtxSynchronize", 1);
    CHECK_FAILS(op_cuda_synchronize(), OP_EIO,
                "cuCtxSynchronize returned 1 (CUDA_ERROR_INVALID_VALUE)");
}

static void failure_leaves_contexts_as_they_were(void) {
    fake_cuda_reset();
    fake_cuda_use(0);
    fake_cuda_use(1);
    fake_cuda_fail("cuCtxSynchronize", 700);
    CHECK_FAILS(op_cuda_synchronize(), OP_EIO, "cuCtxSynchronize");
    CHECK_EQ(waits(), 2); /* the other device was waited for */
    fake_cuda_fail("cuCtxSynchronize", 0);
    int device = -1;
    CHECK_EQ(cuCtxGetDevice(&device), 0);
    CHECK_EQ(device, 1);
    CHECK_EQ(cuDevicePrimaryCtxRelease_v2(0), 0);
    CHECK_EQ(is_active(0), 0);
}

int main(void) {
    RUN(cuda_that_nobody_started_stays_so);
    RUN(devices_that_nobody_uses_stay_so);
    RUN(each_device_in_use_is_waited_for);
    RUN(contexts_are_given_back);
    RUN(threads_without_a_context_wait_too);
    RUN(own_context_of_a_program_is_waited_for);
    RUN(no_device_is_nothing_to_wait_for);
    RUN(each_failure_is_told);
    RUN(failure_leaves_contexts_as_they_were);
    return 0;
}
