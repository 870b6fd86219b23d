#include "made.h"

static made m;

static made_thread *start_over(void) {
    memset(&m, 0, sizeof m);
    add_step(&m, 0, 0, 1000, 0);
    return &m.threads[0];
}

/* An op whose schema says that it returns its input. */
static void add_aliasing(made_thread *t, const char *name, uint16_t depth, uint64_t start,
                         uint64_t end) {
    add_event(t, name, depth, start, end)->flags = OP_FLAG_ALIASES;
}

static bool is_view(const op_result *r, const char *name) {
    return columns_of(r).flags[row_of(r, name)] & OP_FLAG_VIEW;
}

static void what_runs_only_views_is_one(void) {
    made_thread *t = start_over();
    add_aliasing(t, "aten::reshape", 0, 100, 200);
    add_aliasing(t, "aten::view", 1, 110, 190);
    add_event(t, "aten::mul", 0, 300, 400);
    op_result *r = build(&m);
    CHECK(is_view(r, "aten::reshape"));
    CHECK(is_view(r, "aten::view"));
    CHECK(!is_view(r, "aten::mul"));
    op_result_free(r);
}

static void what_copies_is_none(void) {
    made_thread *t = start_over();
    add_aliasing(t, "aten::reshape", 0, 100, 400);
    add_event(t, "aten::clone", 1, 110, 300);
    add_aliasing(t, "aten::view", 1, 310, 390);
    op_result *r = build(&m);
    CHECK(!is_view(r, "aten::reshape"));
    CHECK(!is_view(r, "aten::clone"));
    CHECK(is_view(r, "aten::view"));
    op_result_free(r);
}

/* Ranges, Python calls and memory are not ops. What runs in the first two runs in what contains
 * them. */
static void what_is_no_op_passes_on_what_ran_in_it(void) {
    made_thread *t = start_over();
    add_aliasing(t, "my::flat", 0, 100, 300);
    add_kind(t, "inner", 1, 110, 290, OP_RANGE);
    add_aliasing(t, "aten::view", 2, 120, 280);
    add_aliasing(t, "my::copied", 0, 400, 600);
    add_kind(t, "other inner", 1, 410, 590, OP_RANGE);
    add_event(t, "aten::copy_", 2, 420, 580);
    op_event *range = add_event(t, "named", 0, 700, 800);
    range->flags = OP_FLAG_ALIASES | OP_SCOPE_USER;
    op_result *r = build(&m);
    CHECK(is_view(r, "my::flat"));
    CHECK(!is_view(r, "my::copied"));
    CHECK(!is_view(r, "inner"));
    CHECK(!is_view(r, "named"));
    op_result_free(r);
}

/* As torch does in aten::detach. */
static void what_an_op_records_of_itself_is_part_of_it(void) {
    made_thread *t = start_over();
    add_aliasing(t, "aten::detach", 0, 100, 200);
    add_event(t, "detach", 1, 110, 190);
    add_event(t, "detach of its own", 0, 300, 400);
    op_result *r = build(&m);
    CHECK(is_view(r, "aten::detach"));
    CHECK(is_view(r, "detach"));
    CHECK(!is_view(r, "detach of its own"));
    op_result_free(r);
}

static void add_node(made_thread *t, const char *wrapper, const char *node, uint64_t start,
                     uint32_t number) {
    add_event(t, wrapper, 0, start, start + 90);
    set_sequence(t, add_event(t, node, 1, start + 10, start + 80), number, 1);
}

static void a_node_goes_by_what_it_runs(void) {
    made_thread *t = start_over();
    t->torch_thread = 1;
    add_node(t, "autograd::engine::evaluate_function: TBackward0", "TBackward0", 100, 7);
    add_aliasing(t, "aten::t", 2, 120, 170);
    add_event(t, "aten::add_", 1, 182, 188); /* of gradients */
    add_node(t, "autograd::engine::evaluate_function: AddBackward0", "AddBackward0", 200, 8);
    add_node(t, "autograd::engine::evaluate_function: MulBackward0", "MulBackward0", 300, 9);
    add_event(t, "aten::mul", 2, 320, 370);
    add_node(t, "autograd::engine::evaluate_function: Accumulate", "Accumulate", 400, OP_NO_SEQUENCE);
    add_aliasing(t, "aten::detach", 2, 420, 470);
    op_result *r = build(&m);
    CHECK(is_view(r, "TBackward0"));
    CHECK(is_view(r, "autograd::engine::evaluate_function: TBackward0"));
    CHECK(!is_view(r, "AddBackward0"));
    CHECK(!is_view(r, "MulBackward0"));
    CHECK(!is_view(r, "autograd::engine::evaluate_function: MulBackward0"));
    CHECK(!is_view(r, "Accumulate"));
    CHECK(is_view(r, "aten::detach"));
    op_result_free(r);
}

static void rows_count_their_views(void) {
    made_thread *t = start_over();
    add_aliasing(t, "aten::reshape", 0, 100, 200);
    add_aliasing(t, "aten::reshape", 0, 300, 400);
    add_event(t, "aten::clone", 1, 310, 390);
    add_aliasing(t, "aten::reshape", 0, 1500, 1600); /* in no step */
    op_result *r = build(&m);
    const op_group *rows;
    const int64_t *samples;
    uint64_t count;
    CHECK_OK(op_result_groups(r, OP_GROUP_BY_NAME, 0, &rows, &count, &samples));
    CHECK_EQ(count, 2);
    CHECK_EQ(rows[0].count, 3);
    CHECK_EQ(rows[0].views, 2);
    CHECK_EQ(rows[1].views, 0);
    CHECK_EQ(samples[9 * count], 1);
    CHECK_EQ(samples[9 * count + 1], 0);
    op_result_free(r);
}

int main(void) {
    RUN(what_runs_only_views_is_one);
    RUN(what_copies_is_none);
    RUN(what_is_no_op_passes_on_what_ran_in_it);
    RUN(what_an_op_records_of_itself_is_part_of_it);
    RUN(a_node_goes_by_what_it_runs);
    RUN(rows_count_their_views);
    return 0;
}
