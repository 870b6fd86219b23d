#include "record.h"

#include "fixture.h"

#include <pthread.h>

static folder here;

/* ---- ends from another thread ------------------------------------------------------------- */

static void *end_it(void *slot) {
    op_end(slot);
    return NULL;
}

static void end_on_another_thread(op_slot *slot) {
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, end_it, slot), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

enum { BATCH = 1000 };

static op_slot batch[BATCH + 1]; /* the last of the batch before, then this one */

static void *end_batch(void *last) {
    for (op_slot *slot = batch; slot < (op_slot *)last; slot++)
        op_end(slot);
    return NULL;
}

/* Begins `n` events here, and has them ended on other threads, a batch at a time; `in_flight` of
 * them only with the next batch. */
static void record_futures(uint32_t n, uint32_t in_flight) {
    pthread_t thread;
    batch[0] = (op_slot){0};
    for (uint32_t i = 0; i < n; i++) {
        batch[1 + i % BATCH] = begin("future");
        if (i % BATCH == BATCH - 1) {
            CHECK_EQ(pthread_create(&thread, NULL, end_batch, &batch[BATCH + 1 - in_flight]), 0);
            pthread_join(thread, NULL);
            batch[0] = in_flight ? batch[BATCH] : (op_slot){0};
        }
    }
    op_end(&batch[0]);
}

/* ---- tests -------------------------------------------------------------------------------- */

static void nothing_is_recorded_without_a_window(void) {
    op_slot slot = begin("unseen");
    CHECK(slot.event == NULL);
    op_end(&slot);
    op_result *r = NULL;
    CHECK_FAILS(op_window_stop(&r), OP_ESTATE, "no window is open");
    CHECK_FAILS(op_window_peek(&r), OP_ESTATE, "no window is open");
    CHECK_FAILS(op_step_begin(3), OP_ESTATE, "step 3");
    CHECK_FAILS(op_step_end(), OP_ESTATE, "no window is open");
    CHECK(r == NULL);
    CHECK_OK(op_window_start());
    CHECK_FAILS(op_window_start(), OP_EBUSY, "open already");
    r = stop_window();
    CHECK_EQ(columns_of(r).count, 0);
    CHECK_EQ(stats_of(r).threads, 0);
    op_result_free(r);
}

static void nested_ranges_are_a_tree(void) {
    CHECK_OK(op_window_start());
    op_slot outer = begin("outer"), inner = begin("inner"), innermost = begin("innermost");
    op_end(&innermost);
    op_end(&inner);
    op_slot second = begin("second");
    op_end(&second);
    op_end(&outer);
    op_slot sibling = begin("sibling");
    op_end(&sibling);
    op_result *r = stop_window();
    check_sound(r);
    op_columns c = columns_of(r);
    CHECK_EQ(c.count, 5);
    CHECK_EQ(c.parent[row_of(r, "outer")], -1);
    CHECK_EQ(c.parent[row_of(r, "inner")], row_of(r, "outer"));
    CHECK_EQ(c.parent[row_of(r, "innermost")], row_of(r, "inner"));
    CHECK_EQ(c.parent[row_of(r, "second")], row_of(r, "outer"));
    CHECK_EQ(c.parent[row_of(r, "sibling")], -1);
    for (uint64_t row = 0; row < c.count; row++)
        CHECK_EQ(c.flags[row], 0);
    op_result_free(r);
}

static void out_of_order_ends_are_async(void) {
    CHECK_OK(op_window_start());
    op_slot a = begin("a"), b = begin("b");
    op_end(&a); /* b goes on */
    op_slot c = begin("c");
    op_end(&c);
    op_end(&b);
    op_slot d = begin("d");
    op_end(&d);
    op_result *r = stop_window();
    check_sound(r);
    op_columns columns = columns_of(r);
    CHECK_EQ(columns.flags[row_of(r, "a")], OP_FLAG_ASYNC);
    CHECK_EQ(columns.self_ns[row_of(r, "a")], 0);
    CHECK(columns.duration_ns[row_of(r, "a")] >= 0);
    CHECK_EQ(columns.parent[row_of(r, "b")], -1);
    CHECK_EQ(columns.flags[row_of(r, "b")], 0);
    CHECK_EQ(columns.parent[row_of(r, "c")], row_of(r, "b"));
    CHECK_EQ(columns.parent[row_of(r, "d")], -1);
    CHECK_EQ(stats_of(r).unmatched_ends, 0);
    op_result_free(r);
}

static void end_on_another_thread_is_async(void) {
    CHECK_OK(op_window_start());
    op_slot outer = begin("outer"), handed = begin("handed over"), inner = begin("inner");
    end_on_another_thread(&handed);
    op_end(&inner);
    op_end(&outer);
    op_slot after = begin("after");
    op_end(&after);
    op_result *r = stop_window();
    check_sound(r);
    op_columns c = columns_of(r);
    CHECK_EQ(c.flags[row_of(r, "handed over")], OP_FLAG_ASYNC);
    CHECK_EQ(c.parent[row_of(r, "inner")], row_of(r, "outer"));
    CHECK_EQ(c.flags[row_of(r, "outer")], 0);
    CHECK_EQ(c.parent[row_of(r, "after")], -1);
    CHECK_EQ(stats_of(r).threads, 1);
    op_result_free(r);
}

static void check_futures(uint32_t n, uint32_t in_flight) {
    CHECK_OK(op_window_start());
    record_futures(n, in_flight);
    op_result *r = stop_window();
    CHECK_EQ(stats_of(r).dropped, 0);
    CHECK_EQ(stats_of(r).truncated, 0);
    CHECK_EQ(stats_of(r).unmatched_ends, 0);
    CHECK_EQ(columns_of(r).count, n);
    check_sound(r);
    op_result_free(r);
}

/* A producer of futures: begins here, ends always there. Its stack must not fill up with them, nor
 * the pool with chunks that wait for it. */
static void ends_elsewhere_leave_room(void) { check_futures(100 * BATCH, 0); }

/* The same where one is always in flight: the stack deepens, but the chunks go. */
static void futures_in_flight_hold_no_chunks(void) { check_futures(200 * BATCH, 1); }

/* Two asyncio tasks whose ranges always overlap, in a range of the loop: no end of theirs is in
 * order. */
static void overlapping_tasks_leave_room(void) {
    const uint32_t n = 200000; /* above the deepest nesting, and above what the pool holds */
    CHECK_OK(op_window_start());
    op_slot loop = begin("loop");
    op_slot last = begin("task");
    for (uint32_t i = 1; i < n; i++) {
        op_slot next = begin("task");
        op_end(&last);
        last = next;
    }
    op_end(&last);
    op_end(&loop);
    op_slot after = begin("after");
    op_end(&after);
    op_result *r = stop_window();
    op_columns c = columns_of(r);
    check_sound(r);
    CHECK_EQ(stats_of(r).truncated, 0);
    CHECK_EQ(stats_of(r).dropped, 0);
    CHECK_EQ(c.count, n + 2);
    for (uint32_t i = 1; i <= n; i++)
        CHECK_EQ(c.parent[i], 0);
    CHECK_EQ(c.parent[n + 1], -1);
    op_result_free(r);
}

/* An op of torch keeps its place in the stack, whatever was ended below it; what is open above it
 * moves down, and both end as they would have. */
static void an_op_keeps_its_place(void) {
    const uint32_t op_at = 1000;
    op_slot op = {0};
    CHECK_OK(op_window_start());
    op_slot last = begin("task");
    for (uint32_t i = 1; i < UINT16_MAX; i++) {
        op_slot next =
            op_begin(name_id("task"), i == op_at ? OP_TORCH : OP_RANGE, OP_SCOPE_USER, 0, NULL, 0);
        if (i == op_at)
            op = next;
        if (last.event != op.event)
            op_end(&last);
        last = next;
    }
    CHECK(op_self->depth < UINT16_MAX / 2);
    CHECK(op_self->stack[op_at].event == op.event);
    op_slot inside = begin("inside");
    op_end(&inside);
    op_end(&last);
    op_end(&op);
    CHECK_EQ(op_self->depth, 0);
    op_result *r = stop_window();
    check_sound(r);
    CHECK_EQ(stats_of(r).dropped, 0);
    CHECK_EQ(stats_of(r).unmatched_ends, 0);
    CHECK_EQ(columns_of(r).parent[row_of(r, "inside")], UINT16_MAX - 1);
    op_result_free(r);
}

static void nesting_past_the_deepest_is_counted(void) {
    enum { DEEP = UINT16_MAX + 1000 };
    static op_slot slots[DEEP];
    op_session_close();
    open_session_with((op_config){.pool_dir = here.path, .pool_bytes = 4 * OP_CHUNK_MAX});
    CHECK_OK(op_window_start());
    for (uint32_t i = 0; i < DEEP; i++)
        slots[i] = begin_numbered(name_id("deeper"), i);
    CHECK_EQ(op_window_dropped(), DEEP - UINT16_MAX);
    for (uint32_t i = DEEP; i-- > 0;)
        op_end(&slots[i]);
    op_slot after = begin("after");
    op_end(&after);
    op_result *r = stop_window();
    check_sound(r);
    op_columns c = columns_of(r);
    CHECK_EQ(c.count, UINT16_MAX + 1);
    CHECK_EQ(stats_of(r).dropped, DEEP - UINT16_MAX);
    CHECK_EQ(c.parent[UINT16_MAX - 1], UINT16_MAX - 2);
    CHECK_EQ(c.parent[row_of(r, "after")], -1);
    op_result_free(r);
    op_session_close();
    open_session(&here);
}

static void ranges_across_windows_end_in_neither(void) {
    CHECK_OK(op_window_start());
    op_slot across = begin("across");
    op_result *first = stop_window();
    op_slot between = begin("between");
    CHECK_OK(op_window_start());
    op_end(&across); /* nothing of this window was begun here yet: it is not even counted */
    op_slot inside = begin("inside");
    op_end(&across);
    op_end(&between);
    op_end(&inside);
    op_result *second = stop_window();
    check_sound(first);
    check_sound(second);
    CHECK_EQ(columns_of(first).flags[row_of(first, "across")], OP_FLAG_UNFINISHED);
    CHECK_EQ(columns_of(first).duration_ns[0], -1);
    CHECK_EQ(columns_of(first).self_ns[0], 0);
    CHECK_EQ(columns_of(second).count, 1);
    CHECK_EQ(columns_of(second).parent[row_of(second, "inside")], -1);
    CHECK_EQ(stats_of(second).unmatched_ends, 1);
    op_result_free(first);
    op_result_free(second);
}

/* Ends of windows long gone, after their chunks were used again: they may touch nothing. */
static void stale_ends_touch_nothing(void) {
    static op_slot stale[600];
    CHECK_OK(op_window_start());
    for (int i = 0; i < 600; i++)
        stale[i] = begin("stale");
    op_result_free(stop_window());
    for (int window = 0; window < 3; window++) {
        CHECK_OK(op_window_start());
        op_slot open = begin("open");
        record_numbered(name_id("fresh"), 0, 20000);
        for (int i = window; i < 600; i += 3)
            op_end(&stale[i]);
        op_result *r = stop_window();
        check_sound(r);
        CHECK_EQ(columns_of(r).count, 20001);
        CHECK_EQ(columns_of(r).flags[row_of(r, "open")], OP_FLAG_UNFINISHED);
        CHECK_EQ(stats_of(r).unmatched_ends, 200);
        op_result_free(r);
        op_end(&open);
    }
}

static void argument_blocks_stay_with_their_events(void) {
    static uint32_t words[OP_ARGS_MAX_WORDS];
    const uint32_t n = 3000;
    CHECK_OK(op_window_start());
    for (uint32_t i = 0; i < n; i++) {
        uint32_t payload = i % 7 == 0 ? OP_ARGS_MAX_WORDS - 1 : i % 5 + 1;
        words[0] = OP_ARGS_HEADER(OP_ARGS_TEXT, payload);
        words[1] = 4 * (payload - 1);
        for (uint32_t j = 2; j <= payload; j++)
            words[j] = i;
        op_slot slot = op_begin(name_id("argued"), OP_RANGE, OP_SCOPE_USER, 0, words, 1 + payload);
        op_end(&slot);
    }
    op_result *r = stop_window();
    op_columns c = columns_of(r);
    uint64_t total;
    const uint32_t *args = op_result_args(r, &total);
    CHECK_EQ(c.count, n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t payload = i % 7 == 0 ? OP_ARGS_MAX_WORDS - 1 : i % 5 + 1;
        CHECK(c.args[i] && c.args[i] + payload <= total);
        const uint32_t *block = args + c.args[i] - 1;
        CHECK_EQ(block[0], OP_ARGS_HEADER(OP_ARGS_TEXT, payload));
        for (uint32_t j = 2; j <= payload; j++)
            CHECK_EQ(block[j], i);
    }
    op_result_free(r);
}

static void arguments_larger_than_a_chunk_are_dropped(void) {
    static uint32_t words[OP_CHUNK_MIN];
    CHECK_OK(op_window_start());
    op_slot slot = op_begin(name_id("huge"), OP_RANGE, OP_SCOPE_USER, 0, words, OP_CHUNK_MIN);
    op_end(&slot);
    record_numbered(name_id("after"), 0, 10);
    op_result *r = stop_window();
    CHECK_EQ(columns_of(r).count, stats_of(r).dropped ? 10 : 11);
    op_result_free(r);
}

static void peeking_leaves_the_window_open(void) {
    CHECK_OK(op_window_start());
    op_slot open = begin("open");
    record_numbered(name_id("early"), 0, 30000);
    op_result *peeked = NULL, *again = NULL;
    CHECK_OK(op_window_peek(&peeked));
    record_numbered(name_id("late"), 0, 30000);
    CHECK_OK(op_window_peek(&again));
    op_end(&open);
    op_result *whole = stop_window();
    check_sound(peeked);
    check_sound(again);
    check_sound(whole);
    CHECK_EQ(columns_of(peeked).count, 30001);
    CHECK_EQ(columns_of(again).count, 60001);
    CHECK_EQ(columns_of(whole).count, 60001);
    CHECK_EQ(columns_of(again).flags[row_of(again, "open")], OP_FLAG_UNFINISHED);
    CHECK_EQ(columns_of(whole).flags[row_of(whole, "open")], 0);
    op_result_free(peeked);
    op_result_free(again);
    op_result_free(whole);
}

static void what_ends_in_a_pause_has_its_end(void) {
    CHECK_OK(op_window_start());
    op_slot outer = begin("outer"), inner = begin("inner"), other = begin("ended by another thread");
    op_window_pause();
    CHECK(op_window_is_open());
    CHECK_FAILS(op_window_start(), OP_EBUSY, "a window is open already");
    op_slot unseen = begin("unseen");
    CHECK(unseen.event == NULL);
    end_on_another_thread(&other);
    op_end(&inner);
    CHECK_OK(op_step_begin(7));
    op_window_pause(); /* it is paused */
    op_window_resume();
    op_slot after = begin("after");
    op_end(&after);
    op_end(&outer);
    op_window_resume();
    op_result *r = stop_window();
    check_sound(r);
    op_columns c = columns_of(r);
    CHECK_EQ(c.count, 4);
    for (uint64_t row = 0; row < c.count; row++)
        CHECK(c.duration_ns[row] >= 0);
    CHECK_EQ(c.flags[row_of(r, "inner")] & OP_FLAG_ASYNC, 0);
    CHECK_EQ(c.parent[row_of(r, "after")], row_of(r, "outer"));
    CHECK_EQ(c.step[row_of(r, "after")], 0);
    CHECK_EQ(stats_of(r).unmatched_ends, 0);
    op_result_free(r);
    CHECK_OK(op_window_start());
    op_window_pause();
    op_result_free(stop_window());
    CHECK(!op_window_is_open());
    op_window_resume(); /* nothing is open */
    CHECK(!op_window_is_open());
}

static void handed_over_records_are_around_nothing(void) {
    CHECK_OK(op_window_start());
    op_slot handed = begin("handed over");
    op_slot before = begin("before");
    op_end(&before);
    op_make_async(&handed);
    op_slot after = begin("after");
    op_end(&after);
    op_end(&handed);
    op_make_async(&handed); /* it has ended */
    op_result *r = stop_window();
    check_sound(r);
    op_columns c = columns_of(r);
    CHECK_EQ(c.flags[row_of(r, "handed over")], OP_FLAG_ASYNC);
    CHECK_EQ(c.parent[row_of(r, "before")], -1);
    CHECK_EQ(c.parent[row_of(r, "after")], -1);
    op_result_free(r);
    op_make_async(&handed); /* of a window gone by */
}

/* Results own their memory: windows and sessions that come later change nothing in them. */
static void results_outlive_the_session(void) {
    CHECK_OK(op_window_start());
    record_numbered(name_id("kept"), 0, 5000);
    op_result *kept = stop_window();
    CHECK_OK(op_window_start());
    record_numbered(name_id("later"), 7, 5000);
    op_result_free(stop_window());
    close_session(&here);
    check_numbered(kept, 0, 5000);
    check_sound(kept);
    op_result_free(kept);
    here = make_folder();
    open_session(&here);
}

static void many_windows_use_no_more_room(void) {
    for (int i = 0; i < COUNT(2000); i++) {
        CHECK_OK(op_window_start());
        op_slot left_open = begin("left open");
        record_numbered(name_id("each"), 0, 700);
        op_result *r = stop_window();
        CHECK_EQ(columns_of(r).count, 701);
        CHECK_EQ(stats_of(r).truncated, 0);
        op_result_free(r);
        op_end(&left_open);
    }
}

int main(void) {
    here = make_folder();
    open_session(&here);
    RUN(nothing_is_recorded_without_a_window);
    RUN(nested_ranges_are_a_tree);
    RUN(out_of_order_ends_are_async);
    RUN(end_on_another_thread_is_async);
    RUN(ends_elsewhere_leave_room);
    RUN(futures_in_flight_hold_no_chunks);
    RUN(overlapping_tasks_leave_room);
    RUN(an_op_keeps_its_place);
    RUN(nesting_past_the_deepest_is_counted);
    RUN(ranges_across_windows_end_in_neither);
    RUN(stale_ends_touch_nothing);
    RUN(argument_blocks_stay_with_their_events);
    RUN(arguments_larger_than_a_chunk_are_dropped);
    RUN(peeking_leaves_the_window_open);
    RUN(what_ends_in_a_pause_has_its_end);
    RUN(handed_over_records_are_around_nothing);
    RUN(results_outlive_the_session);
    RUN(many_windows_use_no_more_room);
    close_session(&here);
    return 0;
}
