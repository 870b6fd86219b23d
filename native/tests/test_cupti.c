/* Device work in the columns: its launches and its places. */
#include "core/collector.h"
#include "cuda/cupti.h"
#include "device.h"
#include "others.h"

/* ---- launches --------------------------------------------------------------------------------- */

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

/* ---- places ----------------------------------------------------------------------------------- */

static void *launch_without_an_op(void *unused) {
    (void)unused;
    fake_launch("of nobody", 9, 1000);
    return NULL;
}

static void *launch_in_an_op(void *unused) {
    (void)unused;
    op_slot op = begin("elsewhere");
    fake_launch("of another thread", 11, 1000);
    op_end(&op);
    fake_launch("after it", 11, 1000);
    return NULL;
}

static void run_thread(void *(*body)(void *)) {
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, body, NULL), 0);
    pthread_join(thread, NULL);
}

/* The second thread may get the first one's number. */
static void calls_stand_on_the_thread_that_made_them(void) {
    folder f = start_device();
    start_window();
    op_slot here = begin("here");
    run_thread(launch_in_an_op);
    run_thread(launch_without_an_op);
    fake_launch("of this thread", 7, 1000);
    op_end(&here);
    op_result *r = stop_window();
    op_columns c = columns_of(r);
    check_sound(r);
    CHECK_EQ(op_that_launched(r, the(r, "of another thread")), the(r, "elsewhere"));
    CHECK_EQ(op_that_launched(r, the(r, "of this thread")), the(r, "here"));
    CHECK_EQ(op_that_launched(r, the(r, "after it")), -1);
    CHECK_EQ(op_that_launched(r, the(r, "of nobody")), -1);
    uint32_t stranger = c.thread[c.launcher[the(r, "of nobody")]];
    CHECK(stranger != c.thread[the(r, "here")]);
    CHECK(stranger != c.thread[the(r, "elsewhere")]);
    CHECK_EQ(c.thread[c.launcher[the(r, "after it")]], c.thread[the(r, "elsewhere")]);
    op_result_free(r);
    close_session(&f);
}

static pthread_barrier_t step_begun;

static void *launch_when_the_step_has_begun(void *unused) {
    (void)unused;
    pthread_barrier_wait(&step_begun);
    fake_launch("of an older thread", 9, 1000);
    return NULL;
}

/* It may have no event of its own. */
static void a_thread_older_than_the_step_is_background(void) {
    folder f = start_device();
    pthread_t older;
    CHECK_EQ(pthread_barrier_init(&step_begun, NULL, 2), 0);
    CHECK_EQ(pthread_create(&older, NULL, launch_when_the_step_has_begun, NULL), 0);
    start_window();
    CHECK_OK(op_step_begin(0));
    pthread_barrier_wait(&step_begun);
    run_thread(launch_without_an_op);
    pthread_join(older, NULL);
    CHECK_OK(op_step_end());
    op_result *r = stop_window();
    op_columns c = columns_of(r);
    CHECK_EQ(c.step[the(r, "of an older thread")], -1);
    CHECK_EQ(c.step[the(r, "of nobody")], 0);
    op_result_free(r);
    close_session(&f);
    pthread_barrier_destroy(&step_begun);
}

static void streams_and_devices_are_places_of_their_own(void) {
    folder f = start_device();
    start_window();
    for (uint32_t device = 0; device < 2; device++)
        for (uint32_t stream = 7; stream < 10; stream++)
            for (int i = 0; i < 3; i++) {
                fake_activity launch = {
                    .kind = FAKE_LAUNCH, .device = device, .stream = stream, .ns = 100};
                fake_run(&launch);
            }
    fake_activity peer = {.kind = FAKE_MEMCPY_PEER, .peer = 1, .bytes = 77};
    fake_run(&peer);
    op_result *r = stop_window();
    op_columns c = columns_of(r);
    uint32_t count, lanes = 0;
    const op_thread_info *threads = op_result_threads(r, &count);
    for (uint32_t i = 0; i < count; i++)
        lanes += threads[i].device_type == 1;
    CHECK_EQ(lanes, 6);
    CHECK_EQ(count_kind(r, OP_KERNEL), 18);
    for (uint64_t i = 1; i < 18; i++) {
        int64_t before = nth_of(r, OP_KERNEL, i - 1), row = nth_of(r, OP_KERNEL, i);
        if (c.thread[row] == c.thread[before])
            CHECK(c.start_ns[row] >= c.start_ns[before] + c.duration_ns[before]);
    }
    CHECK_EQ(work_of(r, nth_of(r, OP_MEMCPY, 0)).bytes, 77);
    op_result_free(r);
    close_session(&f);
}

static void a_range_lasts_on_a_device_as_long_as_its_work(void) {
    folder f = start_device();
    start_window();
    op_slot outer = begin("outer");
    fake_launch("a", 7, 1000);
    op_slot inner = begin("inner");
    fake_launch("b", 7, 1000);
    fake_launch("c", 8, 1000);
    op_end(&inner);
    fake_launch("d", 7, 1000);
    op_end(&outer);
    op_result *r = stop_window();
    op_columns c = columns_of(r);
    int64_t a = the(r, "a"), d = the(r, "d"), b = the(r, "b");
    CHECK_EQ(count_kind(r, OP_DEVICE_RANGE), 4);
    for (uint64_t i = 0; i < 4; i++) {
        int64_t row = nth_of(r, OP_DEVICE_RANGE, i);
        CHECK_EQ(c.name[row], c.name[c.launcher[row]]);
        if (c.thread[row] != c.thread[a])
            continue;
        bool whole = strcmp(name_of(r, row), "outer") == 0;
        CHECK_EQ(c.start_ns[row], c.start_ns[whole ? a : b]);
        CHECK_EQ(c.start_ns[row] + c.duration_ns[row],
                 c.start_ns[whole ? d : b] + c.duration_ns[whole ? d : b]);
    }
    op_result_free(r);
    close_session(&f);
}

/* What begins at the same time is ordered as if nested: ranges from the outside in, then work. */
static void what_begins_at_once_stands_longest_first(void) {
    folder f = start_device();
    start_window();
    op_slot outer = begin("outer");
    op_slot inner = begin("inner");
    uint64_t now = fake_now();
    fake_activity work = {.kind = FAKE_LAUNCH, .name = "short", .start = now, .end = now + 1000};
    fake_run(&work);
    work.name = "long";
    work.end = now + 5000;
    fake_run(&work);
    op_end(&inner);
    op_end(&outer);
    op_result *r = stop_window();
    op_columns c = columns_of(r);
    const char *expected[] = {"outer", "inner", "long", "short"};
    uint64_t at = 0;
    for (uint64_t row = 0; row < c.count; row++)
        if (c.kind[row] == OP_KERNEL || c.kind[row] == OP_DEVICE_RANGE)
            CHECK_TEXT(name_of(r, (int64_t)row), expected[at++]);
    CHECK_EQ(at, 4);
    op_result_free(r);
    close_session(&f);
}

static void waiting_is_on_record_as_that(void) {
    folder f = start_device();
    start_window();
    fake_activity other = {.kind = FAKE_LAUNCH, .device = 1, .ns = 1000};
    fake_activity wait = {.kind = FAKE_SYNC_STREAM, .device = 1, .stream = 7};
    fake_run(&other);
    fake_run(&wait);
    fake_synchronize();
    op_result *r = stop_window();
    op_columns c = columns_of(r);
    uint32_t count;
    const op_thread_info *threads = op_result_threads(r, &count);
    CHECK_EQ(count_kind(r, OP_SYNC), 2); /* and not our own at the window's end */
    CHECK_EQ(threads[c.thread[the(r, "Stream Sync")]].device_index, 1);
    CHECK_EQ(threads[c.thread[the(r, "Context Sync")]].resource, -1);
    CHECK_TEXT(name_of(r, c.launcher[the(r, "Context Sync")]), "cudaDeviceSynchronize");
    CHECK_TEXT(name_of(r, c.launcher[the(r, "Stream Sync")]), "cudaStreamSynchronize");
    op_result_free(r);
    close_session(&f);
}

static uint32_t record_event(uint32_t event, uint32_t context, uint32_t stream) {
    fake_activity a = {.kind = FAKE_RECORD, .event = event, .context = context, .stream = stream};
    return fake_run(&a);
}

static void wait_for_event(uint32_t event, uint32_t context) {
    fake_activity a = {.kind = FAKE_WAIT_EVENT, .event = event, .context = context, .stream = 7};
    fake_run(&a);
}

static void a_wait_names_who_recorded_its_event_last(void) {
    folder f = start_device();
    start_window();
    record_event(9, 1, 20);
    wait_for_event(9, 1);
    uint32_t again = record_event(9, 1, 24);
    record_event(9, 2, 28); /* another event, with that number in its own context */
    record_event(8, 1, 32);
    wait_for_event(9, 1);
    record_event(9, 1, 36); /* later */
    wait_for_event(5, 1);   /* from before the window */
    fake_synchronize();
    op_result *r = stop_window();
    CHECK_EQ(count_kind(r, OP_SYNC), 4);
    static const uint32_t streams[] = {20, 24, UINT32_MAX};
    for (uint64_t i = 0; i < 3; i++)
        CHECK_EQ(work_of(r, nth_of(r, OP_SYNC, i)).waited_stream, streams[i]);
    int32_t call = work_of(r, nth_of(r, OP_SYNC, 1)).waited_call;
    op_device_call recorded;
    CHECK_EQ(op_result_device_call(r, (uint64_t)call, &recorded), 1);
    CHECK_EQ(recorded.correlation, again);
    CHECK_EQ(work_of(r, nth_of(r, OP_SYNC, 2)).waited_call, -1);
    CHECK_EQ(work_of(r, the(r, "Context Sync")).waited_stream, UINT32_MAX);
    op_result_free(r);
    close_session(&f);
}

static void calls_that_only_ask_are_left_out(void) {
    folder f = start_device();
    start_window();
    fake_call(FAKE_RUNTIME, 17);  /* cudaGetDevice */
    fake_call(FAKE_RUNTIME, 10);  /* cudaGetLastError */
    fake_call(FAKE_RUNTIME, 134); /* cudaEventCreateWithFlags */
    fake_call(FAKE_RUNTIME, 135); /* cudaEventRecord */
    op_result *r = stop_window();
    CHECK_EQ(count_kind(r, OP_RUNTIME), 1);
    CHECK_TEXT(name_of(r, nth_of(r, OP_RUNTIME, 0)), "cudaEventRecord");
    op_result_free(r);
    close_session(&f);
}

/* ---- a fork ----------------------------------------------------------------------------------- */

/* As a peek does: the collector's lock, then that of the records. */
static void take_records(unsigned turn) {
    const op_cuda_pause *pauses;
    uint32_t count;
    (void)turn;
    pthread_mutex_lock(&op_the_collector.lock);
    CHECK(op_cupti_records_lock(&pauses, &count) != NULL);
    op_cupti_records_unlock();
    pthread_mutex_unlock(&op_the_collector.lock);
}

static void do_nothing(void) {}

static void a_fork_takes_locks_in_the_order_of_a_peek(void) {
    folder f = start_device();
    start_window();
    fork_beside(take_records, do_nothing);
    fake_launch("after them", 7, 1000);
    op_result *r = stop_window();
    the(r, "after them");
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
    RUN(calls_stand_on_the_thread_that_made_them);
    RUN(a_thread_older_than_the_step_is_background);
    RUN(streams_and_devices_are_places_of_their_own);
    RUN(a_range_lasts_on_a_device_as_long_as_its_work);
    RUN(what_begins_at_once_stands_longest_first);
    RUN(waiting_is_on_record_as_that);
    RUN(a_wait_names_who_recorded_its_event_last);
    RUN(calls_that_only_ask_are_left_out);
    RUN(a_fork_takes_locks_in_the_order_of_a_peek);
    return 0;
}
