/* Records without room are counted, whatever ran out. */
#include "core/fault.h"
#include "cuda/cupti_buffers.h"
#include "device.h"
#include "others.h"

enum { LAUNCHES = COUNT(120000), FEW = 40 };

static void launch_many(int count) {
    for (int i = 0; i < count; i++)
        fake_launch("kernel", 7, 100);
}

/* A launch has two records: its call and its kernel. */
static void check_accounts(op_result *r, uint64_t launches) {
    op_stats s = stats_of(r);
    CHECK_EQ(count_kind(r, OP_KERNEL) + count_kind(r, OP_RUNTIME) + s.device_dropped, 2 * launches);
    CHECK_EQ(s.device_events, count_kind(r, OP_KERNEL));
    CHECK(launches_unseen(r) <= s.device_dropped);
    check_sound(r);
}

static void a_long_window_needs_few_buffers(void) {
    folder f = start_device();
    op_cupti_buffers_limit(2 * OP_CUPTI_BUFFER_BYTES);
    start_window();
    launch_many(LAUNCHES);
    op_result *r = stop_window();
    check_accounts(r, LAUNCHES);
    fake_totals totals;
    fake_count(&totals);
    if (stats_of(r).device_dropped == 0)
        CHECK(totals.completed > 2); /* more than existed at once */
    CHECK_EQ(totals.dirty, 0);       /* CUPTI was promised zeros */
    op_result_free(r);
    op_cupti_buffers_limit(0);
    close_session(&f);
}

/* A wait at the window's end would break it. */
static void a_capture_outlives_the_windows_end(void) {
    for (int blocking = 0; blocking < 2; blocking++) {
        folder f = start_device();
        start_window();
        fake_launch("before", 7, 1000);
        fake_activity begin_capture = {
            .kind = FAKE_CAPTURE, .stream = 13, .flags = blocking ? 0 : FAKE_NON_BLOCKING};
        fake_run(&begin_capture);
        op_result_free(stop_window());
        CHECK(fake_capture() & FAKE_CAPTURING);
        start_window(); /* which does not see its begin */
        fake_activity end_capture = {.kind = FAKE_END_CAPTURE, .stream = 13};
        fake_run(&end_capture);
        fake_launch("after", 7, 1000);
        op_result *r = stop_window();
        CHECK_EQ(fake_capture(), 0);
        CHECK_EQ(stats_of(r).device_untimed, 0); /* this one waited */
        op_result_free(r);
        close_session(&f);
    }
}

static void another_end_does_not_hide_an_open_capture(void) {
    for (uint32_t result = 0; result <= 401; result += 401) { /* CUDA_ERROR_ILLEGAL_STATE */
        folder f = start_device();
        fake_activity begin_capture = {.kind = FAKE_CAPTURE, .stream = 13, .flags = FAKE_NON_BLOCKING};
        fake_activity end_capture = {.kind = FAKE_END_CAPTURE, .stream = 17, .result = result};
        fake_run(&begin_capture);
        start_window();
        fake_run(result ? &begin_capture : &end_capture);
        fake_run(result ? &end_capture : &begin_capture);
        op_result_free(stop_window());
        CHECK_EQ(fake_capture(), FAKE_CAPTURING);
        close_session(&f);
    }
}

static void a_capture_from_before_the_window_is_asked_for(void) {
    folder f = start_device();
    fake_activity begin_capture = {.kind = FAKE_CAPTURE, .stream = 13};
    fake_run(&begin_capture);
    start_window();
    fake_launch("endless", 7, 1000000000);
    op_result *r = stop_window();
    CHECK(fake_capture() & FAKE_CAPTURING);
    CHECK_EQ(stats_of(r).device_untimed, 1); /* nothing waited for it */
    op_result_free(r);
    close_session(&f);
}

static uint32_t version;

/* The version is queried once. */
static void meet_the_limit(void) {
    folder f = make_folder();
    fake_version(version);
    fake_cuda_use(0);
    open_roomy_session(&f);
    CHECK_OK(op_cuda_open(NULL, NULL, 0));
    op_cuda_record(1);
    op_cupti_buffers_limit(1); /* not one */
    start_window();
    launch_many(FEW);
    op_result *r = stop_window();
    CHECK_EQ(stats_of(r).device_dropped, 2 * FEW);
    check_accounts(r, FEW);
    op_result_free(r);
    close_session(&f);
}

/* Before CUDA 12.9 CUPTI crashes without a buffer, as the fake does; later releases count. */
static void past_the_limit_records_are_counted(void) {
    static const uint32_t versions[] = {26, 28};
    for (int i = 0; i < 2; i++) {
        version = versions[i];
        in_child(meet_the_limit, exit);
    }
}

static void a_window_after_a_loss_is_whole(void) {
    folder f = start_device();
    start_window();
    fake_drop(5);
    launch_many(FEW);
    op_result *r = stop_window();
    CHECK_EQ(stats_of(r).device_dropped, 5);
    check_accounts(r, FEW);
    op_result_free(r);
    start_window();
    launch_many(FEW);
    r = stop_window();
    CHECK_EQ(stats_of(r).device_dropped, 0);
    CHECK_EQ(count_kind(r, OP_KERNEL), FEW);
    op_result_free(r);
    close_session(&f);
}

static void what_is_seen_meanwhile_is_seen_again(void) {
    folder f = start_device();
    start_window();
    op_slot op = begin("op");
    launch_many(3);
    fake_synchronize();
    op_result *r;
    CHECK_OK(op_window_peek(&r));
    CHECK_EQ(count_kind(r, OP_KERNEL), 3);
    CHECK_EQ(op_that_launched(r, nth_of(r, OP_KERNEL, 0)), the(r, "op"));
    op_result_free(r);
    launch_many(2);
    op_end(&op);
    r = stop_window();
    CHECK_EQ(count_kind(r, OP_KERNEL), 5);
    op_result_free(r);
    close_session(&f);
}

static void no_thread_of_ours_outlives_a_window(void) {
    folder f = start_device();
    fake_worker(0);
    int before = count_tasks();
    start_window();
    CHECK_EQ(count_tasks(), before + 1);
    launch_many(3);
    op_result_free(stop_window());
    check_tasks_go(before);
    close_session(&f);
}

#ifdef OP_FAULTS

/* A window in which any request may fail: then it reports that, or counts what is missing. */
static void record_few(void) {
    op_result *r = NULL;
    if (op_window_start() != OP_OK) {
        CHECK(op_last_error()[0]);
        return;
    }
    op_slot op = begin("op");
    launch_many(FEW);
    fake_memcpy(1, 100, 8, 10);
    fake_synchronize();
    op_end(&op);
    if (op_window_stop(&r) != OP_OK) {
        CHECK(op_last_error()[0]);
        return;
    }
    op_stats s = stats_of(r);
    uint64_t rows = count_kind(r, OP_KERNEL) + count_kind(r, OP_RUNTIME) + count_kind(r, OP_MEMCPY) +
                    count_kind(r, OP_SYNC);
    if (s.cuda == OP_CUDA_RECORDED)
        CHECK_EQ(rows + s.device_dropped, 2 * (FEW + 2));
    check_sound(r);
    op_result_free(r);
}

static void any_request_may_be_refused(void) {
    static const enum op_fault_kind kinds[] = {OP_FAULT_MEMORY, OP_FAULT_MAP, OP_FAULT_THREAD};
    for (int k = 0; k < 3; k++) {
        unsigned nth = 0;
        do {
            folder f = start_device();
            op_fault_arm(kinds[k], ++nth);
            record_few();
            unsigned fired = op_fault_fired();
            op_fault_arm(kinds[k], 0);
            if (!fired)
                nth = 0;
            record_few();
            close_session(&f);
        } while (nth);
    }
}

#endif

int main(void) {
    RUN(past_the_limit_records_are_counted); /* first, because CUPTI must not be used before a fork */
    RUN(a_long_window_needs_few_buffers);
    RUN(a_window_after_a_loss_is_whole);
    RUN(a_capture_outlives_the_windows_end);
    RUN(another_end_does_not_hide_an_open_capture);
    RUN(a_capture_from_before_the_window_is_asked_for);
    RUN(what_is_seen_meanwhile_is_seen_again);
    RUN(no_thread_of_ours_outlives_a_window);
#ifdef OP_FAULTS
    RUN(any_request_may_be_refused);
#endif
    return 0;
}
