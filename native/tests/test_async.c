/* Ends out of order and on other threads. */
#include "fixture.h"
#include "others.h"

static folder here;

static void *end_it(void *slot) {
    op_end(slot);
    return NULL;
}

static void out_of_order_ends_are_async(void) {
    CHECK_OK(op_window_start());
    op_slot a = begin("a"), b = begin("b");
    op_end(&a); /* b continues */
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
    on_another_thread(end_it, &handed);
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

enum { BATCH = 1000 };

static op_slot batch[BATCH + 1]; /* the last of the previous batch, then this batch */

static void *end_batch(void *last) {
    for (op_slot *slot = batch; slot < (op_slot *)last; slot++)
        op_end(slot);
    return NULL;
}

/* Begins `n` events here and ends them on other threads in batches, `in_flight` of them a batch
 * later. */
static void record_futures(uint32_t n, uint32_t in_flight) {
    batch[0] = (op_slot){0};
    for (uint32_t i = 0; i < n; i++) {
        batch[1 + i % BATCH] = begin("future");
        if (i % BATCH == BATCH - 1) {
            on_another_thread(end_batch, &batch[BATCH + 1 - in_flight]);
            batch[0] = in_flight ? batch[BATCH] : (op_slot){0};
        }
    }
    op_end(&batch[0]);
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

/* A producer of futures, whose ranges begin here and always end elsewhere. They must not fill its
 * stack, nor the pool with waiting chunks. */
static void ends_elsewhere_leave_room(void) { check_futures(100 * BATCH, 0); }

/* The same with one always in flight: the stack deepens, but the chunks are released. */
static void futures_in_flight_hold_no_chunks(void) { check_futures(200 * BATCH, 1); }

/* Two asyncio tasks whose ranges always overlap, inside a range of the loop: none ends in order. */
static void overlapping_tasks_leave_room(void) {
    const uint32_t n = 200000; /* more than the deepest nesting, and than the pool holds */
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

/* A torch op keeps its place in the stack, whatever ended below it. Open events above it move down, and
 * both end normally. */
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

static void handed_over_records_are_around_nothing(void) {
    CHECK_OK(op_window_start());
    op_slot handed = begin("handed over");
    op_slot before = begin("before");
    op_end(&before);
    op_make_async(&handed);
    op_slot after = begin("after");
    op_end(&after);
    op_end(&handed);
    op_make_async(&handed); /* already ended */
    op_result *r = stop_window();
    check_sound(r);
    op_columns c = columns_of(r);
    CHECK_EQ(c.flags[row_of(r, "handed over")], OP_FLAG_ASYNC);
    CHECK_EQ(c.parent[row_of(r, "before")], -1);
    CHECK_EQ(c.parent[row_of(r, "after")], -1);
    op_result_free(r);
    op_make_async(&handed); /* of an earlier window */
}

int main(void) {
    here = make_folder();
    open_session(&here);
    RUN(out_of_order_ends_are_async);
    RUN(end_on_another_thread_is_async);
    RUN(ends_elsewhere_leave_room);
    RUN(futures_in_flight_hold_no_chunks);
    RUN(overlapping_tasks_leave_room);
    RUN(an_op_keeps_its_place);
    RUN(handed_over_records_are_around_nothing);
    close_session(&here);
    return 0;
}
