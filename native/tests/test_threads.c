#include "core/collector.h"
#include "core/record.h"
#include "fixture.h"
#include "others.h"
#include "sources/call.h"

static folder here;

/* ---- threads of one window ---------------------------------------------------------------- */

static void *record_few(void *unused) {
    (void)unused;
    record_numbered(name_id("few"), 0, 20);
    return NULL;
}

static void a_thousand_threads_one_after_the_other(void) {
    const uint32_t n = COUNT(1000);
    CHECK_OK(op_window_start());
    for (uint32_t i = 0; i < n; i++)
        on_another_thread(record_few, NULL);
    op_result *r = stop_window();
    CHECK_EQ(stats_of(r).threads, n);
    CHECK_EQ(columns_of(r).count, n * 20);
    for (uint32_t i = 0; i < n; i += 37)
        check_numbered(r, i, 20);
    check_sound(r);
    op_result_free(r);
    CHECK(op_the_collector.threads == NULL); /* nothing of them is kept */
    CHECK_EQ(op_the_collector.pool.used_units, 0);
}

static void *record_much(void *unused) {
    (void)unused;
    record_numbered(name_id("much"), 0, 5000);
    return NULL;
}

static void sixty_four_threads_at_once(void) {
    CHECK_OK(op_window_start());
    on_threads(64, record_much, NULL, 0);
    op_result *r = stop_window();
    CHECK_EQ(stats_of(r).threads, 64);
    CHECK_EQ(stats_of(r).truncated, 0);
    for (uint32_t i = 0; i < 64; i++)
        check_numbered(r, i, 5000);
    check_sound(r);
    op_result_free(r);
}

static void *name_itself(void *unused) {
    (void)unused;
    pthread_setname_np(pthread_self(), "loader-7");
    op_slot slot = begin("named");
    op_end(&slot);
    return NULL;
}

static void ended_threads_keep_their_name(void) {
    CHECK_OK(op_window_start());
    on_another_thread(name_itself, NULL);
    op_slot slot = begin("here");
    op_end(&slot);
    op_result *r = stop_window();
    uint32_t count;
    const op_thread_info *threads = op_result_threads(r, &count);
    CHECK_EQ(count, 2);
    CHECK_TEXT(threads[0].name, "loader-7");
    CHECK_TEXT(threads[1].name, "");
    op_result_name_thread(r, 1, "a name longer than sixteen bytes");
    op_result_name_thread(r, 2, "nobody");
    CHECK_TEXT(threads[1].name, "a name longer t");
    CHECK(threads[0].os_tid != threads[1].os_tid);
    op_result_free(r);
}

static void *leave_open(void *slot) {
    *(op_slot *)slot = begin("left open");
    op_slot inner = begin("inner");
    op_end(&inner);
    return NULL;
}

static void *leave_call_open(void *code) {
    op_thread *t = op_thread_prepare(op_recording(), 0);
    CHECK(t && op_calls_grow(t, op_recording()));
    op_call_begin(t, code, name_id("call"), OP_PYTHON_CALL, 0, 0);
    return NULL;
}

static void threads_that_end_inside_a_range(void) {
    op_slot left[2];
    uint32_t used = op_the_collector.pool.used_units;
    CHECK_OK(op_window_start());
    on_another_thread(leave_open, &left[0]);
    op_end(&left[0]); /* its thread is gone; the record is not */
    on_another_thread(leave_open, &left[1]);
    on_another_thread(leave_call_open, left);
    op_result *r = stop_window();
    op_columns c = columns_of(r);
    CHECK_EQ(c.count, 5);
    CHECK_EQ(c.flags[0], OP_FLAG_ASYNC);
    CHECK_EQ(c.parent[1], -1);
    CHECK_EQ(c.flags[2], OP_FLAG_UNFINISHED);
    CHECK_EQ(c.parent[3], 2);
    CHECK_EQ(op_the_collector.pool.used_units, used); /* their chunks wait for nobody */
    op_result_free(r);
    CHECK_OK(op_window_start());
    op_end(&left[1]); /* window and thread are gone */
    op_result_free(stop_window());
}

/* ---- threads that live longer than windows ------------------------------------------------ */

typedef struct worker {
    uint32_t window, done; /* requested; recorded */
} worker;

static void *record_when_asked(void *argument) {
    worker *w = argument;
    for (uint32_t window = 1; window <= 50; window++) {
        while (__atomic_load_n(&w->window, __ATOMIC_ACQUIRE) < window)
            sched_yield();
        record_numbered(name_id("asked for"), 0, 40 * window);
        __atomic_store_n(&w->done, window, __ATOMIC_RELEASE);
    }
    return NULL;
}

static void threads_outlive_windows(void) {
    worker workers[4] = {{0, 0}};
    pthread_t threads[4];
    start_threads(threads, 4, record_when_asked, workers, sizeof workers[0]);
    for (uint32_t window = 1; window <= 50; window++) {
        CHECK_OK(op_window_start());
        for (int i = 0; i < 4; i++)
            __atomic_store_n(&workers[i].window, window, __ATOMIC_RELEASE);
        for (int i = 0; i < 4; i++)
            while (__atomic_load_n(&workers[i].done, __ATOMIC_ACQUIRE) < window)
                sched_yield();
        op_result *r = stop_window();
        CHECK_EQ(stats_of(r).threads, 4);
        for (uint32_t i = 0; i < 4; i++)
            check_numbered(r, i, 40 * window);
        op_result_free(r);
    }
    join_threads(threads, 4);
}

/* ---- races -------------------------------------------------------------------------------- */

static uint32_t recorded;

static void *record_and_end(void *unused) {
    record_few(unused);
    __atomic_add_fetch(&recorded, 1, __ATOMIC_RELEASE);
    return NULL;
}

/* Records of a thread that ends together with the window are in the result. The half-full pool makes
 * the window's end slow, because the drain thread has to be joined first. */
static void threads_that_end_with_the_window_lose_nothing(void) {
    pthread_t threads[8];
    op_session_close();
    open_session(&here);
    for (int round = 0; round < COUNT(300); round++) {
        recorded = 0;
        CHECK_OK(op_window_start());
        record_numbered(name_id("filling"), 0, 40000);
        start_threads(threads, 8, record_and_end, NULL, 0);
        while (__atomic_load_n(&recorded, __ATOMIC_ACQUIRE) < 8)
            sched_yield();
        op_result *r = stop_window();
        CHECK_EQ(columns_of(r).count, 40000 + 8 * 20);
        CHECK_EQ(stats_of(r).threads, 9);
        op_result_free(r);
        join_threads(threads, 8);
    }
    op_session_close();
    open_roomy_session(&here);
}

static bool stop_recording;

/* Nested and with arguments; a window may close at any point. */
static void *record_forever(void *unused) {
    (void)unused;
    uint32_t name = name_id("forever"), number = 0;
    while (!__atomic_load_n(&stop_recording, __ATOMIC_RELAXED)) {
        uint32_t words[3] = {OP_ARGS_HEADER(OP_ARGS_TEXT, 2), 4, number};
        op_slot outer = op_begin(name, OP_TORCH, 0, number++, words, 3);
        record_numbered(name, number, 3);
        number += 3;
        op_end(&outer);
        if (!outer.event) /* no window: let the next one open */
            sched_yield();
    }
    return NULL;
}

/* The events of a thread in a window are consecutive ones of all it began. */
static void check_consecutive(const op_result *r) {
    op_columns c = columns_of(r);
    uint64_t words;
    const uint32_t *args = op_result_args(r, &words);
    for (uint64_t row = 0; row < c.count; row++) {
        if (row && c.thread[row] == c.thread[row - 1])
            CHECK_EQ(c.sequence_nr[row], c.sequence_nr[row - 1] + 1);
        if (c.args[row])
            CHECK_EQ(args[c.args[row] + 1], c.sequence_nr[row]);
    }
    check_sound(r);
}

static void windows_come_and_go_under_recording_threads(void) {
    pthread_t threads[4];
    stop_recording = false;
    start_threads(threads, 4, record_forever, NULL, 0);
    uint64_t events = 0;
    for (int i = 0; i < COUNT(1000); i++) {
        op_result *peeked = NULL;
        CHECK_OK(op_window_start());
        if (i % 10 == 0)
            sched_yield();
        if (i % 7 == 0)
            CHECK_OK(op_window_peek(&peeked));
        op_result *r = stop_window();
        CHECK_EQ(stats_of(r).dropped, 0);
        CHECK_EQ(stats_of(r).truncated, 0);
        check_consecutive(r);
        events += columns_of(r).count;
        if (peeked)
            check_consecutive(peeked);
        op_result_free(r);
        op_result_free(peeked);
    }
    __atomic_store_n(&stop_recording, true, __ATOMIC_RELAXED);
    join_threads(threads, 4);
    CHECK(events > 0);
}

/* At the end of a Python process the session closes while daemon threads still record. */
static void sessions_come_and_go_under_recording_threads(void) {
    pthread_t threads[4];
    stop_recording = false;
    start_threads(threads, 4, record_forever, NULL, 0);
    for (int i = 0; i < COUNT(200); i++) {
        CHECK_OK(op_window_start());
        if (i % 3 == 0)
            sched_yield();
        if (i % 2)
            op_result_free(stop_window());
        op_session_close();
        open_roomy_session(&here);
    }
    __atomic_store_n(&stop_recording, true, __ATOMIC_RELAXED);
    join_threads(threads, 4);
}

static void *start_and_stop(void *unused) {
    (void)unused;
    for (int i = 0; i < COUNT(1000); i++) {
        op_result *r = NULL;
        int rc = op_window_start();
        CHECK(rc == OP_OK || rc == OP_EBUSY);
        record_numbered(name_id("anybody's"), 0, 5);
        op_step_begin(i);
        rc = op_window_stop(&r);
        CHECK(rc == OP_OK || rc == OP_ESTATE);
        if (rc == OP_OK)
            check_sound(r);
        op_result_free(r);
    }
    return NULL;
}

static void several_control_threads_do_no_harm(void) {
    on_threads(4, start_and_stop, NULL, 0);
    CHECK(!op_window_is_open());
}

int main(void) {
    here = make_folder();
    open_roomy_session(&here);
    RUN(a_thousand_threads_one_after_the_other);
    RUN(sixty_four_threads_at_once);
    RUN(ended_threads_keep_their_name);
    RUN(threads_that_end_inside_a_range);
    RUN(threads_outlive_windows);
    RUN(threads_that_end_with_the_window_lose_nothing);
    RUN(windows_come_and_go_under_recording_threads);
    RUN(sessions_come_and_go_under_recording_threads);
    RUN(several_control_threads_do_no_harm);
    close_session(&here);
    return 0;
}
