/* Device work in the columns: its places. */
#include "core/collector.h"
#include "cuda/cupti.h"
#include "device.h"
#include "others.h"

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
