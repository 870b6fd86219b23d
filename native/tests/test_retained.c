/* Blocks retained by steps, credited to the innermost record at their allocation. */
#include "fixture.h"
#include "others.h"
#include "result/group.h"
#include "sources/retained.h"

static folder here;

typedef struct sums {
    int64_t total[2]; /* of each of two steps */
    int64_t outer, inner;
} sums;

static int64_t of_name(const op_group *rows, uint64_t count, const char *name) {
    for (uint64_t i = 0; i < count; i++)
        if (rows[i].name == name_id(name))
            return rows[i].retained;
    return 0;
}

static sums sums_of(op_result *r, uint64_t steps) {
    const op_group *rows;
    const int64_t *samples;
    uint64_t count;
    sums found = {0};
    CHECK_OK(op_result_groups(r, OP_GROUP_BY_NAME, 0, &rows, &count, &samples));
    for (uint64_t i = 0; i < count; i++)
        for (uint64_t step = 0; step < steps; step++)
            found.total[step] += samples[(OP_STEP_counted_retained * count + i) * steps + step];
    found.outer = of_name(rows, count, "outer");
    found.inner = of_name(rows, count, "inner");
    op_result_free(r);
    return found;
}

static void begin_step(int64_t number) { CHECK_OK(op_step_begin(number)); }
static void end_step(void) { CHECK_OK(op_step_end()); }

/* An op that allocates two blocks, and one in the op inside, and frees one. */
static void take_some(uint64_t at) {
    op_slot outer = begin("outer");
    op_retained_take(at, 100);
    op_retained_take(at + 1, 10);
    op_slot inner = begin("inner");
    op_retained_take(at + 2, 7);
    op_end(&inner);
    op_retained_give(at);
    op_end(&outer);
}

static void what_is_not_given_back_is_the_ops_and_of_those_around(void) {
    CHECK_OK(op_window_start());
    begin_step(0);
    take_some(10);
    end_step();
    op_retained_give(11); /* too late */
    begin_step(1);
    take_some(20);
    op_retained_give(10); /* not allocated, or by the previous step */
    op_retained_give(12);
    op_retained_give(21);
    end_step();
    sums found = sums_of(stop_window(), 2);
    CHECK_EQ(found.total[0], 17);
    CHECK_EQ(found.total[1], 7);
    CHECK_EQ(found.outer, 24);
    CHECK_EQ(found.inner, 14);
}

static void *give_back(void *address) {
    op_retained_give((uintptr_t)address);
    return NULL;
}

static void any_thread_may_give_it_back(void) {
    CHECK_OK(op_window_start());
    begin_step(0);
    take_some(10);
    on_another_thread(give_back, (void *)11);
    on_another_thread(give_back, (void *)12);
    end_step();
    CHECK_EQ(sums_of(stop_window(), 1).total[0], 0);
}

static void only_what_an_op_takes_in_a_step_counts(void) {
    op_retained_take(1, 5);
    CHECK_OK(op_window_start());
    take_some(10);
    begin_step(0);
    op_retained_take(1, 5); /* outside of any op */
    op_window_pause();
    op_slot unseen = begin("unseen");
    op_retained_take(2, 5);
    op_end(&unseen);
    op_window_resume();
    end_step();
    take_some(20);
    CHECK_EQ(sums_of(stop_window(), 1).total[0], 0);
    CHECK_OK(op_window_start());
    begin_step(0);
    end_step();
    CHECK_EQ(sums_of(stop_window(), 1).total[0], 0); /* nothing is left from another window */
}

static void an_address_is_taken_again(void) {
    CHECK_OK(op_window_start());
    begin_step(0);
    for (uint64_t i = 0; i < 3; i++) {
        op_slot op = begin("outer");
        op_retained_take(1, 50);
        op_retained_take(2, 3);
        op_retained_take(2, 4); /* its free was not seen */
        op_retained_give(1);
        op_end(&op);
    }
    end_step();
    CHECK_EQ(sums_of(stop_window(), 1).total[0], 4);
}

enum { MANY = 5000 };

/* Compared with a plain list, with colliding addresses. */
static void many_blocks_come_and_go(void) {
    static bool is_taken[MANY];
    uint32_t seed = 1;
    int64_t expected = 0;
    CHECK_OK(op_window_start());
    begin_step(0);
    op_slot op = begin("outer");
    for (uint32_t i = 0; i < 20 * MANY; i++) {
        seed = seed * 1664525u + 1013904223u;
        uint32_t which = (seed >> 8) % MANY;
        uint64_t address = 64 * (uint64_t)(which + 1);
        if (is_taken[which])
            op_retained_give(address);
        else
            op_retained_take(address, which + 1);
        expected += is_taken[which] ? -(int64_t)(which + 1) : (int64_t)(which + 1);
        is_taken[which] = !is_taken[which];
    }
    op_end(&op);
    end_step();
    CHECK_EQ(sums_of(stop_window(), 1).outer, expected);
}

static sums sums_of_long_window(uint64_t most_events) {
    op_result *r = NULL;
    CHECK_OK(op_window_start());
    for (int64_t step = 0; step < 2; step++) {
        begin_step(step);
        for (uint64_t i = 0; i < 400; i++) {
            take_some(1000 * i + 10);
            op_retained_give(1000 * i + (i % 3 ? 11 : 12));
        }
        end_step();
    }
    CHECK_OK(op_window_sum(most_events, &r));
    CHECK_EQ(op_result_is_folded(r), most_events != 0);
    return sums_of(r, 2);
}

static void a_long_window_has_the_same_sums(void) {
    sums whole = sums_of_long_window(0);
    CHECK_EQ(whole.total[0], 134 * 10 + 266 * 7);
    for (uint64_t most = 1; most < 500; most = most * 3 + 1) {
        sums folded = sums_of_long_window(most);
        CHECK_EQ(memcmp(&folded, &whole, sizeof whole), 0);
    }
}

static void take_and_give(unsigned turn) {
    op_retained_take(64 * (uint64_t)turn + 64, 1);
    op_retained_give(64 * (uint64_t)turn + 64);
}

static void take_in_child(void) {
    op_retained_give(64);
    op_retained_step_begin();
    op_retained_step_end();
    op_retained_forget();
}

static void a_fork_leaves_no_lock_behind(void) {
    CHECK_OK(op_window_start());
    begin_step(0);
    fork_beside(take_and_give, take_in_child);
    end_step();
    op_result_free(stop_window());
}

int main(void) {
    here = make_folder();
    open_session(&here);
    RUN(what_is_not_given_back_is_the_ops_and_of_those_around);
    RUN(any_thread_may_give_it_back);
    RUN(only_what_an_op_takes_in_a_step_counts);
    RUN(an_address_is_taken_again);
    RUN(many_blocks_come_and_go);
    RUN(a_long_window_has_the_same_sums);
    RUN(a_fork_leaves_no_lock_behind);
    close_session(&here);
    return 0;
}
