/* Windows that keep the newest events. */
#include "core/collector.h"
#include "core/record.h"
#include "core/spill.h"
#include "fixture.h"
#include "killed.h"
#include "others.h"

#define FITS_NOT 200000u

static folder here;

static void start_flight(const folder *f) {
    open_session(f);
    op_window_keep_last(1);
    CHECK_OK(op_window_start());
}

static void end_flight(void) {
    op_session_close();
    op_window_keep_last(0);
}

static void the_newest_events_stay(void) {
    start_flight(&here);
    record_numbered(name_id("numbered"), 0, FITS_NOT);
    op_result *r = stop_window();
    op_columns c = columns_of(r);
    op_stats s = stats_of(r);
    CHECK(c.count > 0 && c.count < FITS_NOT);
    CHECK_EQ(s.dropped, FITS_NOT - c.count);
    CHECK_EQ(s.truncated, 1);
    CHECK_EQ(s.spilled_bytes, 0);
    for (uint64_t i = 0; i < c.count; i++)
        CHECK_EQ(c.sequence_nr[i], (int64_t)(FITS_NOT - c.count + i));
    check_sound(r);
    op_result_free(r);
    end_flight();
}

static void what_fits_is_whole(void) {
    start_flight(&here);
    record_numbered(name_id("numbered"), 0, 100);
    op_result *r = stop_window();
    CHECK_EQ(columns_of(r).count, 100);
    CHECK_EQ(stats_of(r).dropped, 0);
    CHECK_EQ(stats_of(r).truncated, 0);
    op_result_free(r);
    end_flight();
}

/* An ended op is not taken for the caller of events after a gap. */
static void open_records_stay_and_ended_ones_call_nothing(void) {
    start_flight(&here);
    op_slot outermost = begin("outermost");
    op_slot early = begin("early");
    op_slot in_early = begin("in early");
    op_end(&in_early);
    op_end(&early);
    op_slot late = begin("late");
    for (uint32_t i = 0; i < FITS_NOT / 4; i++) {
        op_slot middle = begin("middle");
        record_numbered(name_id("numbered"), i, 1);
        op_end(&middle);
    }
    op_result *r = stop_window();
    check_sound(r);
    op_columns c = columns_of(r);
    int64_t outer_row = (int64_t)row_of(r, "outermost"), late_row = (int64_t)row_of(r, "late");
    CHECK_EQ(c.parent[late_row], outer_row);
    CHECK_EQ(c.duration_ns[late_row], -1);
    uint32_t middle = name_id("middle"), numbered = name_id("numbered");
    uint64_t orphans = 0;
    for (uint64_t i = 0; i < c.count; i++) {
        if (c.name[i] == middle)
            CHECK_EQ(c.parent[i], late_row);
        if (c.name[i] == numbered && c.parent[i] < 0)
            orphans++; /* its caller was forgotten */
        else if (c.name[i] == numbered)
            CHECK_EQ(c.name[c.parent[i]], middle);
    }
    CHECK(orphans <= 1);
    op_result_free(r);
    op_end(&late);
    op_end(&outermost);
    end_flight();
}

static void *record_much(void *name) {
    record_numbered(*(uint32_t *)name, 0, FITS_NOT / 4);
    return NULL;
}

static void threads_share_the_room(void) {
    open_roomy_session(&here);
    op_window_keep_last(1);
    uint32_t name = name_id("numbered");
    CHECK_OK(op_window_start());
    record_numbered(name_id("long ago"), 0, 1);
    on_threads(4, record_much, &name, 0);
    op_result *r = stop_window();
    CHECK_EQ(stats_of(r).dropped + columns_of(r).count, FITS_NOT / 4 * 4 + 1);
    CHECK_EQ(row_of(r, "long ago"), 0); /* the newest chunk of a living thread is its own */
    check_sound(r);
    op_result_free(r);
    end_flight();
}

static void other_windows_end_at_their_limit(void) {
    start_flight(&here);
    op_result_free(stop_window());
    op_window_keep_last(0);
    CHECK_OK(op_window_start());
    record_numbered(name_id("numbered"), 0, FITS_NOT);
    op_result *r = stop_window();
    CHECK_EQ(columns_of(r).count, FITS_NOT);
    CHECK(stats_of(r).spilled_bytes > 0);
    op_result_free(r);
    end_flight();
}

int main(void) {
    here = make_folder();
    RUN(the_newest_events_stay);
    RUN(what_fits_is_whole);
    RUN(open_records_stay_and_ended_ones_call_nothing);
    RUN(threads_share_the_room);
    RUN(other_windows_end_at_their_limit);
    remove_folder(&here);
    return 0;
}
