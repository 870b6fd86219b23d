/* Device work in the columns: its launches. */
#include "cuda/cupti.h"
#include "device.h"

static void work_belongs_to_the_op_that_launched_it(void) {
    folder f = start_device();
    start_window();
    op_slot outer = begin("outer");
    fake_launch("first", 7, 1000);
    op_slot inner = begin("inner");
    fake_launch("second", 7, 2000);
    op_end(&inner);
    fake_memcpy(2, 4096, 7, 500);
    op_end(&outer);
    op_result *r = stop_window();
    op_columns c = columns_of(r);
    check_sound(r);
    CHECK_EQ(op_that_launched(r, the(r, "first")), the(r, "outer"));
    CHECK_EQ(op_that_launched(r, the(r, "second")), the(r, "inner"));
    CHECK_EQ(op_that_launched(r, the(r, "Memcpy DtoH (Device -> Pageable)")), the(r, "outer"));
    int64_t launch = c.launcher[the(r, "second")];
    CHECK_TEXT(name_of(r, launch), "cudaLaunchKernel");
    CHECK_EQ(c.kind[launch], OP_RUNTIME);
    CHECK(llabs(c.duration_ns[the(r, "second")] - 2000) <= 2); /* converted through ticks */
    CHECK(c.self_ns[the(r, "inner")] <= c.duration_ns[the(r, "inner")] - c.duration_ns[launch]);
    CHECK_EQ(stats_of(r).device_events, 3);
    CHECK_EQ(stats_of(r).cuda, OP_CUDA_RECORDED);
    op_result_free(r);
    close_session(&f);
}

static void a_kernel_says_what_it_was_given(void) {
    folder f = start_device();
    start_window();
    fake_activity gemm = {.kind = FAKE_LAUNCH,
                          .name = "_Z4gemmPfi",
                          .device = 1,
                          .stream = 13,
                          .grid = {70000, 4, 2},
                          .block = {128, 2, 1},
                          .registers = 40,
                          .static_shared = 1024,
                          .dynamic_shared = 2048};
    fake_run(&gemm);
    op_result *r = stop_window();
    op_columns c = columns_of(r);
    int64_t row = the(r, "gemm(float*, int)");
    op_device_work work = work_of(r, row);
    uint32_t count;
    const op_thread_info *lane = &op_result_threads(r, &count)[c.thread[row]];
    CHECK_EQ(lane->device_type, 1);
    CHECK_EQ(lane->device_index, 1);
    CHECK_EQ(lane->resource, 13);
    CHECK_EQ(work.grid[0] + work.grid[1] * 10 + work.grid[2], 70042);
    CHECK_EQ(work.block[0] * 100 + work.block[1] * 10 + work.block[2], 12821);
    CHECK_EQ(work.registers, 40);
    CHECK_EQ(work.static_shared, 1024);
    CHECK_EQ(work.dynamic_shared, 2048);
    CHECK_EQ(work.context, 2);
    op_device_call call;
    CHECK_EQ(op_result_device_call(r, (uint64_t)c.launcher[row], &call), 1);
    CHECK_EQ(call.correlation, work.correlation);
    CHECK_EQ(call.callback, 211);
    op_result_free(r);
    close_session(&f);
}

static void all_kernels_of_a_graph_belong_to_its_launch(void) {
    folder f = start_device();
    start_window();
    op_slot replay = begin("replay");
    fake_graph_launch("node", 7, 5, 100);
    op_end(&replay);
    op_result *r = stop_window();
    CHECK_EQ(count_kind(r, OP_KERNEL), 5);
    CHECK_EQ(count_kind(r, OP_RUNTIME), 1);
    for (uint64_t i = 0; i < 5; i++) {
        CHECK_EQ(op_that_launched(r, nth_of(r, OP_KERNEL, i)), the(r, "replay"));
        CHECK(work_of(r, nth_of(r, OP_KERNEL, i)).graph_node != 0);
    }
    CHECK_EQ(launches_unseen(r), 0);
    op_result_free(r);
    close_session(&f);
}

/* It is unknown whether CUPTI reports the driver call inside a runtime call, and under which id. */
static void a_launch_counts_once_however_it_is_told(void) {
    for (uint32_t api = FAKE_RUNTIME; api <= FAKE_NESTED_OWN; api++) {
        folder f = start_device();
        start_window();
        op_slot op = begin("op");
        fake_activity launch = {.kind = FAKE_LAUNCH, .name = "kernel", .api = api};
        fake_run(&launch);
        op_end(&op);
        op_result *r = stop_window();
        CHECK_EQ(count_kind(r, OP_RUNTIME) + count_kind(r, OP_DRIVER), 1);
        CHECK_EQ(count_kind(r, OP_DRIVER), api == FAKE_DRIVER);
        CHECK_EQ(op_that_launched(r, the(r, "kernel")), the(r, "op"));
        CHECK_EQ(launches_unseen(r), 0);
        CHECK_EQ(stats_of(r).device_unlaunched, 0);
        op_result_free(r);
        close_session(&f);
    }
}

static void every_way_to_copy_or_fill_is_a_launch(void) {
    static const struct {
        uint32_t kind, call;
    } ways[] = {{FAKE_MEMCPY, 776},      /* cuMemcpyBatchAsync */
                {FAKE_MEMCPY, 284},      /* cuMemcpyAtoD_v2 */
                {FAKE_MEMCPY_PEER, 321}, /* cuMemcpy3DPeerAsync */
                {FAKE_MEMSET, 252},      /* cuMemsetD2D8_v2 */
                {FAKE_MEMSET, 431}};     /* cuMemsetD2D8Async_ptsz */
    folder f = start_device();
    start_window();
    op_slot op = begin("op");
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        fake_activity work = {.kind = ways[i].kind, .api = FAKE_DRIVER, .cbid = ways[i].call};
        fake_run(&work);
    }
    op_end(&op);
    fake_call(FAKE_DRIVER, 294); /* cuMemAllocHost: not of a device */
    op_result *r = stop_window();
    CHECK_EQ(count_kind(r, OP_DRIVER), 5);
    CHECK_EQ(count_kind(r, OP_MEMCPY) + count_kind(r, OP_MEMSET), 5);
    CHECK_EQ(stats_of(r).device_unlaunched, 0);
    op_result_free(r);
    close_session(&f);
}

static void a_late_kernel_is_of_the_step_of_its_launch(void) {
    folder f = start_device();
    start_window();
    fake_waiting(0); /* a minute of work is over at once */
    CHECK_OK(op_step_begin(0));
    fake_launch("slow", 7, 60000000000);
    CHECK_OK(op_step_end());
    CHECK_OK(op_step_begin(1));
    fake_launch("behind it", 7, 1000);
    CHECK_OK(op_step_end());
    op_result *r = stop_window();
    op_columns c = columns_of(r);
    uint32_t count;
    const op_step *steps = op_result_steps(r, &count);
    CHECK_EQ(count, 2);
    CHECK(c.start_ns[the(r, "slow")] + c.duration_ns[the(r, "slow")] > steps[0].end_ns);
    CHECK_EQ(c.step[the(r, "slow")], 0);
    CHECK(c.start_ns[the(r, "behind it")] > steps[1].end_ns);
    CHECK_EQ(c.step[the(r, "behind it")], 1);
    op_result_free(r);
    close_session(&f);
}

int main(void) {
    RUN(work_belongs_to_the_op_that_launched_it);
    RUN(a_kernel_says_what_it_was_given);
    RUN(all_kernels_of_a_graph_belong_to_its_launch);
    RUN(a_launch_counts_once_however_it_is_told);
    RUN(every_way_to_copy_or_fill_is_a_launch);
    RUN(a_late_kernel_is_of_the_step_of_its_launch);
    return 0;
}
