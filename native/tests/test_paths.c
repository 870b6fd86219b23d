#include "made.h"

static made m;

static void check_path(const op_path *nodes, uint64_t count, uint64_t i, const char *name,
                       int32_t parent, uint64_t times, int64_t total) {
    CHECK(i < count);
    CHECK_EQ(nodes[i].name, name_id(name));
    CHECK_EQ(nodes[i].parent, parent);
    CHECK_EQ(nodes[i].count, times);
    CHECK_EQ(nodes[i].total_ns, total);
}

static void add_calls(void) {
    memset(&m, 0, sizeof m);
    for (uint32_t i = 0; i < 2; i++) { /* the same calls on two threads */
        made_thread *t = &m.threads[i];
        add_event(t, "linear", 0, 100, 300);
        add_event(t, "mm", 1, 110, 150);
        add_event(t, "mm", 1, 160, 200);
        add_event(t, "copy_", 2, 170, 180);
        add_event(t, "mm", 0, 400, 410);
    }
}

static void call_paths_merge_equal_callers(void) {
    add_calls();
    op_result *r = build(&m);
    const op_path *nodes;
    uint64_t count;
    CHECK_OK(op_result_paths(r, 100, &nodes, &count));
    CHECK_EQ(count, 4);
    check_path(nodes, count, 0, "linear", -1, 2, 400);
    check_path(nodes, count, 1, "mm", 0, 4, 160);
    check_path(nodes, count, 2, "copy_", 1, 2, 20);
    check_path(nodes, count, 3, "mm", -1, 2, 20);
    CHECK_EQ(nodes[0].self_ns, 2 * (200 - 80));
    CHECK_EQ(nodes[1].self_ns, 2 * 70);
    op_result_free(r);
}

static void cheap_paths_go_first(void) {
    add_calls();
    add_event(&m.threads[2], "dear root", 0, 100, 900);
    add_event(&m.threads[2], "dear leaf", 1, 150, 890);
    op_result *r = build(&m);
    const op_path *nodes;
    uint64_t count;
    CHECK_OK(op_result_paths(r, 3, &nodes, &count));
    CHECK_EQ(count, 3);
    check_path(nodes, count, 0, "linear", -1, 2, 400);
    check_path(nodes, count, 1, "dear root", -1, 1, 800);
    check_path(nodes, count, 2, "dear leaf", 1, 1, 740);
    CHECK_OK(op_result_paths(r, 0, &nodes, &count));
    CHECK_EQ(count, 0);
    op_result_free(r);
}

/* An async event may last longer than its caller, which is kept with it. */
static void kept_paths_have_their_callers(void) {
    memset(&m, 0, sizeof m);
    made_thread *t = &m.threads[0];
    add_event(t, "short", 0, 100, 110);
    add_event(t, "long future", 1, 105, 905)->flags = OP_FLAG_ASYNC;
    add_event(t, "middling", 0, 200, 400);
    op_result *r = build(&m);
    const op_path *nodes;
    uint64_t count;
    CHECK_OK(op_result_paths(r, 2, &nodes, &count));
    CHECK_EQ(count, 2);
    check_path(nodes, count, 0, "short", -1, 1, 10);
    check_path(nodes, count, 1, "long future", 0, 1, 800);
    CHECK_OK(op_result_paths(r, 1, &nodes, &count));
    check_path(nodes, count, 0, "middling", -1, 1, 200);
    op_result_free(r);
}

static void paths_of_steps_leave_out_the_rest(void) {
    add_calls();
    add_step(&m, 0, 390, 420, 0);
    op_result *r = build(&m);
    const op_path *nodes;
    uint64_t count;
    CHECK_OK(op_result_paths(r, 100, &nodes, &count));
    CHECK_EQ(count, 1);
    check_path(nodes, count, 0, "mm", -1, 2, 20);
    op_result_free(r);
}

/* The table grows, and everything stays proportional to the events. */
static void as_many_paths_as_events(void) {
    enum { MANY = 20000 };
    static op_event events[MANY];
    op_result *r = build_tower(events, MANY);
    const op_path *nodes;
    uint64_t count;
    CHECK_OK(op_result_paths(r, MANY, &nodes, &count));
    CHECK_EQ(count, MANY);
    CHECK_EQ(nodes[MANY - 1].parent, MANY - 2);
    CHECK_OK(op_result_paths(r, 500, &nodes, &count));
    CHECK_EQ(count, 500);
    CHECK_EQ(nodes[499].parent, 498);
    op_result_free(r);
}

int main(void) {
    RUN(call_paths_merge_equal_callers);
    RUN(cheap_paths_go_first);
    RUN(kept_paths_have_their_callers);
    RUN(paths_of_steps_leave_out_the_rest);
    RUN(as_many_paths_as_events);
    return 0;
}
