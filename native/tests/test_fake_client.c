/* How the fake delivers records and answers calls: late, dropped, refused, with another client. */
#include "cupti_client.h"
#include "others.h"

/* ---- buffers ----------------------------------------------------------------------------- */

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
    start();
    buffer_size = 4096;
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

static void a_buffer_holds_no_more_than_it_may(void) {
    start();
    most_records = 3;
    fake_worker(0);
    for (int i = 0; i < 8; i++)
        fake_call(FAKE_RUNTIME, 10);
    CHECK_EQ(requests, 3);
    flush();
    CHECK_EQ(completions, 3);
    CHECK_EQ(count_of(CUPTI_ACTIVITY_KIND_RUNTIME), 8);
}

static void a_forced_flush_returns_empty_buffers(void) {
    start();
    fake_launch("a", 7, 10);
    fake_synchronize();
    flush();
    int before = completions;
    flush();
    CHECK_EQ(completions, before);
    fake_launch("b", 7, 10);
    fake_synchronize();
    force();
    CHECK(completions > before);
    CHECK_EQ(totals().held, 0);
}

static void buffers_are_zeroed_by_the_library_or_the_client(void) {
    start();
    uint8_t on = 1;
    size_t size = sizeof on;
    CUpti_ActivityAttribute zeroed = CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER;
    CHECK_EQ(cuptiActivitySetAttribute(zeroed, &size, &on), CUPTI_SUCCESS);
    on = 0;
    CHECK_EQ(cuptiActivityGetAttribute(zeroed, &size, &on), CUPTI_SUCCESS);
    CHECK_EQ(on, 1);
    uint8_t *data = malloc(buffer_size); /* the allocator's next block is probably not zeroed */
    memset(data, 0xff, buffer_size);
    free(data);
    fake_launch("a", 7, 10);
    force();
    CHECK(totals().dirty >= 1);
}

/* ---- late, unordered --------------------------------------------------------------------- */

static void late_records_come_with_a_later_flush(void) {
    start();
    fake_late(2);
    fake_launch("a", 7, 10);
    fake_synchronize();
    flush();
    flush();
    CHECK_EQ(count_of(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), 0);
    flush();
    CHECK_EQ(count_of(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), 1);
    CHECK(nth_kernel(0)->start > 0);
    fake_activity later = {.kind = FAKE_LAUNCH, .flags = FAKE_LATE};
    fake_late(0);
    fake_run(&later);
    fake_synchronize();
    flush();
    CHECK_EQ(count_of(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), 1);
    force();
    CHECK(nth_kernel(1)->start > 0);
}

static int inversions(void) {
    int found = 0;
    for (int i = 1; i < count_of(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL); i++)
        found += nth_kernel(i)->correlationId < nth_kernel(i - 1)->correlationId;
    return found;
}

static int launch_and_count_inversions(uint64_t seed) {
    start();
    fake_worker(0);
    fake_shuffle(seed);
    for (int i = 0; i < 100; i++)
        fake_launch("a", 7, 10);
    fake_waiting(0);
    fake_synchronize();
    flush();
    CHECK_EQ(count_of(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), 100);
    return inversions();
}

static void a_seed_mixes_the_order_and_loses_nothing(void) {
    CHECK_EQ(launch_and_count_inversions(0), 0);
    CHECK(launch_and_count_inversions(1) > 20);
}

static void bad_times_are_given_as_they_are(void) {
    start();
    fake_activity none = {.kind = FAKE_LAUNCH, .flags = FAKE_UNTIMED};
    fake_activity backward = {.kind = FAKE_LAUNCH, .flags = FAKE_BACKWARD};
    fake_activity lost = {.kind = FAKE_LAUNCH, .flags = FAKE_LOST};
    fake_run(&none);
    fake_run(&backward);
    fake_run(&lost);
    fake_synchronize();
    force();
    CHECK_EQ(count_of(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), 2);
    CHECK_EQ(nth_kernel(0)->end, 0);
    CHECK(nth_kernel(1)->end < nth_kernel(1)->start);
}

/* ---- dropped ----------------------------------------------------------------------------- */

static size_t dropped(void) {
    size_t n = 99;
    CHECK_EQ(cuptiActivityGetNumDroppedRecords(NULL, 0, &n), CUPTI_SUCCESS);
    return n;
}

static void dropped_records_are_counted_once(void) {
    start();
    fake_drop(3);
    for (int i = 0; i < 5; i++)
        fake_call(FAKE_RUNTIME, 10);
    CHECK_EQ(dropped(), 3);
    CHECK_EQ(dropped(), 0);
    refuse = true;
    flush();
    fake_call(FAKE_RUNTIME, 10);
    CHECK_EQ(dropped(), 1);
    refuse = false;
    fake_call(FAKE_RUNTIME, 10);
    flush();
    CHECK_EQ(count_of(CUPTI_ACTIVITY_KIND_RUNTIME), 3);
    CHECK_EQ(totals().dropped[CUPTI_ACTIVITY_KIND_RUNTIME], 4);
}

/* ---- answers, other clients -------------------------------------------------------------- */

static void CUPTIAPI listen(void *data, CUpti_CallbackDomain domain, CUpti_CallbackId call,
                            const void *more) {
    (void)data, (void)domain, (void)call, (void)more;
}

static void one_subscriber_at_a_time(void) {
    CUpti_SubscriberHandle one, two;
    start();
    CHECK_EQ(cuptiSubscribe(&one, listen, NULL), CUPTI_SUCCESS);
    CHECK_EQ(cuptiSubscribe(&two, listen, NULL), CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    CHECK_EQ(cuptiUnsubscribe(one), CUPTI_SUCCESS);
    CHECK_EQ(cuptiUnsubscribe(one), CUPTI_ERROR_INVALID_PARAMETER);
    fake_other_subscriber("nsys");
    CHECK_EQ(cuptiSubscribe(&one, listen, NULL), CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
#if CUPTI_API_VERSION >= 130001
    char name[64];
    CUpti_SubscriberParams parameters = {
        .structSize = sizeof parameters, .oldSubscriberName = name, .oldSubscriberSize = sizeof name};
    CHECK_EQ(cuptiSubscribe_v2(&one, listen, NULL, &parameters),
             CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    CHECK_TEXT(name, "nsys");
#endif
    fake_other_subscriber(NULL);
    CHECK_EQ(cuptiSubscribe(&one, listen, NULL), CUPTI_SUCCESS);
}

static void another_client_takes_the_records(void) {
    start();
    fake_launch("ours", 7, 10);
    fake_synchronize();
    flush();
    fake_other_client(1);
    fake_launch("theirs", 7, 10);
    fake_synchronize();
    flush();
    fake_other_client(0);
    CHECK(!fake_is_enabled(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
    CHECK_EQ(count_of(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), 1);
    CHECK_EQ(totals().appended[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL], 2);
}

static void each_library_has_its_words_without_a_gpu(void) {
    start_without_kinds();
    static const CUptiResult refusals[] = {0, CUPTI_ERROR_NOT_INITIALIZED, CUPTI_ERROR_UNKNOWN,
                                           CUPTI_ERROR_UNKNOWN};
    for (int mode = FAKE_NO_GPU_12; mode <= FAKE_NO_GPU_13_5; mode++) {
        bool says_nothing = mode == FAKE_NO_GPU_13_5;
        uint32_t version = 5;
        const char *text = NULL;
        fake_mode(mode);
        CHECK_EQ(cuptiGetVersion(&version), says_nothing ? CUPTI_ERROR_UNKNOWN : CUPTI_SUCCESS);
        CHECK_EQ(version == 5, says_nothing);
        CHECK_EQ(cuptiGetResultString(CUPTI_ERROR_UNKNOWN, &text) == CUPTI_SUCCESS, !says_nothing);
        CHECK_EQ(text == NULL, says_nothing);
        CHECK_EQ(cuptiActivityRegisterCallbacks(give, take) == CUPTI_SUCCESS, !says_nothing);
        CHECK_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), refusals[mode]);
        CHECK_EQ(cuptiActivityFlushAll(0), refusals[mode]);
    }
}

static void a_flush_needs_callbacks(void) {
    fake_reset();
    CHECK_EQ(cuptiActivityFlushAll(0), CUPTI_ERROR_INVALID_OPERATION);
    CHECK_EQ(cuptiActivityRegisterCallbacks(give, NULL), CUPTI_ERROR_INVALID_PARAMETER);
    CHECK_EQ(cuptiActivityEnable((CUpti_ActivityKind)0), CUPTI_ERROR_INVALID_KIND);
}

/* ---- threads ----------------------------------------------------------------------------- */

static void the_worker_delivers_where_it_is_on(void) {
    start();
    fake_launch("a", 7, 10);
    fake_synchronize();
    flush();
    CHECK(!pthread_equal(completed_on, pthread_self()));
    fake_worker(0);
    fake_launch("b", 7, 10);
    fake_synchronize();
    flush();
    CHECK(pthread_equal(completed_on, pthread_self()));
}

static void *launch_many(void *stream) {
    for (int i = 0; i < 500; i++)
        fake_launch("many", *(uint32_t *)stream, 50);
    return NULL;
}

static void many_threads_lose_nothing(void) {
    uint32_t streams[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    start();
    buffer_size = 4096;
    fake_shuffle(3);
    on_threads(8, launch_many, streams, sizeof *streams);
    for (uint32_t device = 0; device < 2; device++)
        fake_synchronize();
    force();
    CHECK_EQ(count_of(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), 4000);
    CHECK_EQ(count_of(CUPTI_ACTIVITY_KIND_RUNTIME), 4002);
    CHECK_EQ(totals().untimed, 0);
    CHECK_EQ(totals().held, 0);
}

int main(void) {
    RUN(incomplete_records_stay_until_forced);
    RUN(full_buffers_come_without_a_flush);
    RUN(a_buffer_holds_no_more_than_it_may);
    RUN(a_forced_flush_returns_empty_buffers);
    RUN(buffers_are_zeroed_by_the_library_or_the_client);
    RUN(late_records_come_with_a_later_flush);
    RUN(a_seed_mixes_the_order_and_loses_nothing);
    RUN(bad_times_are_given_as_they_are);
    RUN(dropped_records_are_counted_once);
    RUN(one_subscriber_at_a_time);
    RUN(another_client_takes_the_records);
    RUN(each_library_has_its_words_without_a_gpu);
    RUN(a_flush_needs_callbacks);
    RUN(the_worker_delivers_where_it_is_on);
    RUN(many_threads_lose_nothing);
    fake_reset();
    return 0;
}
