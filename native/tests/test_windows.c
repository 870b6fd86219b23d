/* The effect of windows, pauses and sessions on open events. */
#include "fixture.h"
#include "others.h"

static folder here;

static void *end_it(void *slot) {
    op_end(slot);
    return NULL;
}

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
    CHECK_FAILS(op_window_start(), OP_EBUSY, "already open");
    r = stop_window();
    CHECK_EQ(columns_of(r).count, 0);
    CHECK_EQ(stats_of(r).threads, 0);
    op_result_free(r);
}

static void ranges_across_windows_end_in_neither(void) {
    CHECK_OK(op_window_start());
    op_slot across = begin("across");
    op_result *first = stop_window();
    op_slot between = begin("between");
    CHECK_OK(op_window_start());
    op_end(&across); /* nothing has begun here in this window: it is not even counted */
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

/* Ends of long-closed windows, whose chunks were reused, must not touch anything. */
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
    CHECK_FAILS(op_window_start(), OP_EBUSY, "a window is already open");
    op_slot unseen = begin("unseen");
    CHECK(unseen.event == NULL);
    on_another_thread(end_it, &other);
    op_end(&inner);
    CHECK_OK(op_step_begin(7));
    op_window_pause(); /* paused */
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

/* Results own their memory: later windows and sessions do not change them. */
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
    RUN(ranges_across_windows_end_in_neither);
    RUN(stale_ends_touch_nothing);
    RUN(peeking_leaves_the_window_open);
    RUN(what_ends_in_a_pause_has_its_end);
    RUN(results_outlive_the_session);
    RUN(many_windows_use_no_more_room);
    close_session(&here);
    return 0;
}
