#include "made.h"
#include "result/inputs.h"

static made m;

static void start_over(void) { memset(&m, 0, sizeof m); }

typedef struct rows {
    const op_group *rows;
    uint64_t count, steps;
    const int64_t *samples;
} rows;

static rows group(op_result *r, int by_inputs) {
    rows g;
    uint32_t steps;
    CHECK_OK(op_result_groups(r, by_inputs, 0, &g.rows, &g.count, &g.samples));
    op_result_steps(r, &steps);
    g.steps = steps;
    return g;
}

/* The n-th row of this name. */
static const op_group *row_named(const rows *g, const char *name, int nth) {
    for (uint64_t i = 0; i < g->count; i++)
        if (g->rows[i].name == name_id(name) && nth-- == 0)
            return &g->rows[i];
    check_that(0, name, __FILE__, __LINE__);
    return NULL;
}

enum plane { COUNTS, TOTALS, SELVES };

static int64_t sample(const rows *g, const op_group *row, enum plane plane, int step) {
    uint64_t at = (uint64_t)(row - g->rows) * g->steps + (uint64_t)step;
    return g->samples[(uint64_t)plane * g->count * g->steps + at];
}

static void no_events_are_no_rows(void) {
    start_over();
    op_result *r = build(&m);
    CHECK_EQ(group(r, 0).count, 0);
    CHECK_EQ(group(r, 1).count, 0);
    const op_path *nodes;
    uint64_t count;
    CHECK_OK(op_result_paths(r, 10, &nodes, &count));
    CHECK_EQ(count, 0);
    op_result_free(r);
}

static void rows_sum_their_events(void) {
    start_over();
    made_thread *t = &m.threads[0];
    add_event(t, "mm", 0, 100, 200);
    add_event(t, "add", 0, 200, 500);
    add_event(t, "mm", 1, 300, 350);
    add_event(t, "mm", 0, 600, 0);
    op_result *r = build(&m);
    rows g = group(r, 0);
    CHECK_EQ(g.count, 2);
    const op_group *mm = row_named(&g, "mm", 0), *add = row_named(&g, "add", 0);
    CHECK_EQ(mm->count, 3);
    CHECK_EQ(mm->total_ns, 150);
    CHECK_EQ(mm->self_ns, 150);
    CHECK_EQ(mm->min_ns, 50);
    CHECK_EQ(mm->max_ns, 100);
    CHECK_EQ(add->total_ns, 300);
    CHECK_EQ(add->self_ns, 250);
    op_result_free(r);
}

static void rows_without_an_end_have_no_times(void) {
    start_over();
    add_event(&m.threads[0], "open", 0, 100, 0);
    op_result *r = build(&m);
    rows g = group(r, 0);
    CHECK_EQ(g.rows[0].count, 1);
    CHECK_EQ(g.rows[0].total_ns, 0);
    CHECK_EQ(g.rows[0].min_ns, 0);
    CHECK_EQ(g.rows[0].max_ns, 0);
    op_result_free(r);
}

static void rows_stand_in_order_of_first_start(void) {
    start_over();
    add_event(&m.threads[0], "third", 0, 300, 310);
    add_event(&m.threads[0], "fourth", 0, 400, 410);
    add_event(&m.threads[1], "first", 0, 100, 110);
    add_event(&m.threads[1], "fourth", 0, 200, 210);
    op_result *r = build(&m);
    rows g = group(r, 0);
    CHECK_EQ(g.count, 3);
    CHECK_EQ(g.rows[0].name, name_id("first"));
    CHECK_EQ(g.rows[1].name, name_id("fourth"));
    CHECK_EQ(g.rows[2].name, name_id("third"));
    CHECK_EQ(g.rows[1].first_event, 3);
    op_result_free(r);
}

static void annotations_and_ops_do_not_mix(void) {
    start_over();
    made_thread *t = &m.threads[0];
    add_event(t, "forward", 0, 100, 110);
    add_event(t, "forward", 0, 200, 210)->flags = OP_SCOPE_USER;
    op_result *r = build(&m);
    rows g = group(r, 0);
    CHECK_EQ(g.count, 2);
    CHECK_EQ(row_named(&g, "forward", 0)->is_user_annotation, 0);
    CHECK_EQ(row_named(&g, "forward", 1)->is_user_annotation, 1);
    op_result_free(r);
}

static void steps_of_the_profiler_are_one_row(void) {
    start_over();
    for (unsigned i = 0; i < 3; i++) {
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%u", i);
        add_event(&m.threads[0], name, 0, 100 + 100 * i, 150 + 100 * i);
    }
    op_result *r = build(&m);
    rows g = group(r, 0);
    CHECK_EQ(g.count, 1);
    CHECK_EQ(g.rows[0].name, name_id("ProfilerStep*"));
    CHECK_EQ(g.rows[0].count, 3);
    CHECK(columns_of(r).name[0] != columns_of(r).name[1]);
    op_result_free(r);
}

static void samples_are_per_step(void) {
    start_over();
    made_thread *t = &m.threads[0];
    add_event(t, "mm", 0, 50, 60); /* outside */
    add_event(t, "mm", 0, 100, 130);
    add_event(t, "add", 0, 140, 190);
    add_event(t, "mm", 1, 150, 160);
    add_event(t, "mm", 0, 300, 305);
    add_event(t, "mm", 0, 310, 0);
    add_step(&m, 0, 100, 200, 0);
    add_step(&m, 1, 300, 0, 0);
    op_result *r = build(&m);
    rows g = group(r, 0);
    const op_group *mm = row_named(&g, "mm", 0), *add = row_named(&g, "add", 0);
    CHECK_EQ(mm->count, 5);
    CHECK_EQ(sample(&g, mm, COUNTS, 0), 2);
    CHECK_EQ(sample(&g, mm, TOTALS, 0), 40);
    CHECK_EQ(sample(&g, mm, SELVES, 0), 40);
    CHECK_EQ(sample(&g, add, COUNTS, 0), 1);
    CHECK_EQ(sample(&g, add, TOTALS, 0), 50);
    CHECK_EQ(sample(&g, add, SELVES, 0), 40);
    CHECK_EQ(sample(&g, mm, COUNTS, 1), 2);
    CHECK_EQ(sample(&g, mm, TOTALS, 1), 5);
    CHECK_EQ(sample(&g, add, COUNTS, 1), 0);
    op_result_free(r);
}

static void background_is_a_row_of_its_own(void) {
    static uint32_t tids[] = {71, 72};
    start_over();
    m.threads[0].os_tid = 71;
    m.threads[1].os_tid = 72;
    add_event(&m.threads[0], "copy_", 0, 150, 160);
    add_event(&m.threads[1], "copy_", 0, 150, 170);
    add_step(&m, 0, 100, 200, 71);
    m.steps[0].tids = tids;
    m.steps[0].tid_count = 2;
    op_result *r = build(&m);
    rows g = group(r, 0);
    CHECK_EQ(g.count, 2);
    const op_group *own = row_named(&g, "copy_", 0), *background = row_named(&g, "copy_", 1);
    CHECK_EQ(own->background, 0);
    CHECK_EQ(background->background, 1);
    CHECK_EQ(sample(&g, own, COUNTS, 0), 1);
    CHECK_EQ(sample(&g, background, COUNTS, 0), 0);
    op_result_free(r);
}

/* The table grows, and everything stays proportional to the events. */
static void many_names_are_many_rows(void) {
    enum { MANY = 20000 };
    static op_event events[MANY];
    op_result *r = build_tower(events, MANY);
    rows g = group(r, 0);
    CHECK_EQ(g.count, MANY);
    for (uint32_t i = 0; i < MANY; i++)
        CHECK_EQ(g.rows[i].first_event, i);
    op_result_free(r);
}

/* ---- inputs --------------------------------------------------------------------------------- */

#define TOKEN(tag, dtype, length) ((uint32_t)(tag) | (uint32_t)(dtype) << 8 | (uint32_t)(length) << 16)

/* An op with a tensor of two sizes (strides 1, 1) and an int. */
static void add_shaped(made_thread *t, uint64_t start, uint32_t height, uint32_t width,
                       uint32_t value) {
    const uint32_t words[] = {
        OP_ARGS_HEADER(OP_ARGS_TORCH, 10), 0,     0, TOKEN(OP_INPUT_TENSOR, 6, 2), height, width, 1, 1,
        TOKEN(OP_INPUT_INT, 0, 0),         value, 0};
    add_block(t, add_event(t, "mm", 0, start, start + 10), words, 11);
}

static void rows_by_inputs_differ_in_shape_only(void) {
    start_over();
    made_thread *t = &m.threads[0];
    add_shaped(t, 100, 2, 3, 5);
    add_shaped(t, 200, 2, 3, 6); /* the same shape with another int */
    add_shaped(t, 300, 3, 2, 5);
    add_event(t, "mm", 0, 400, 410); /* no inputs recorded */
    op_result *r = build(&m);
    rows g = group(r, 1);
    CHECK_EQ(g.count, 3);
    CHECK_EQ(g.rows[0].count, 2);
    CHECK_EQ(g.rows[1].count, 1);
    CHECK_EQ(g.rows[1].args_event, 2);
    CHECK_EQ(g.rows[2].args_event, 3);
    CHECK_EQ(group(r, 0).count, 1);
    CHECK_EQ(group(r, 0).rows[0].count, 4);
    op_result_free(r);
}

static void add_words(made_thread *t, uint64_t start, const uint32_t *tokens, uint32_t count) {
    uint32_t words[64] = {OP_ARGS_HEADER(OP_ARGS_TORCH, count + 2)};
    memcpy(words + 3, tokens, count * sizeof *tokens);
    add_block(t, add_event(t, "cat", 0, start, start + 10), words, count + 3);
}

static void wide_and_listed_tensors_have_shapes(void) {
    start_over();
    made_thread *t = &m.threads[0];
    const uint32_t wide[] = {TOKEN(OP_INPUT_TENSOR_WIDE, 6, 1), 7, 1, 1, 0};
    const uint32_t wider[] = {TOKEN(OP_INPUT_TENSOR_WIDE, 6, 1), 7, 2, 1, 0};
    const uint32_t list[] = {TOKEN(OP_INPUT_TENSOR_LIST, 0, 2),
                             TOKEN(OP_INPUT_TENSOR, 6, 1),
                             4,
                             1,
                             TOKEN(OP_INPUT_TENSOR, 6, 1),
                             5,
                             1};
    const uint32_t flat[] = {TOKEN(OP_INPUT_TENSOR, 6, 1), 4, 1, TOKEN(OP_INPUT_TENSOR, 6, 1), 5, 1};
    const uint32_t cut[] = {TOKEN(OP_INPUT_TENSOR, 6, 1), 4, 1, TOKEN(OP_INPUT_CUT, 0, 0)};
    for (uint32_t i = 0; i < 2; i++) {
        add_words(t, 100 + 500 * i, wide, 5);
        add_words(t, 200 + 500 * i, wider, 5);
        add_words(t, 300 + 500 * i, list, 7);
        add_words(t, 400 + 500 * i, flat, 6);
        add_words(t, 500 + 500 * i, cut, 4);
    }
    op_result *r = build(&m);
    rows g = group(r, 1);
    CHECK_EQ(g.count, 5);
    for (uint64_t i = 0; i < g.count; i++)
        CHECK_EQ(g.rows[i].count, 2);
    op_result_free(r);
}

static void overloads_are_rows_when_asked_for(void) {
    start_over();
    made_thread *t = &m.threads[0];
    for (uint16_t i = 0; i < 4; i++) {
        const char *overload = i % 2 ? "Tensor" : "out";
        const uint32_t words[] = {OP_ARGS_HEADER(OP_ARGS_TORCH, 4), 0, 0, OP_INPUT_OVERLOAD,
                                  op_names_intern(overload, strlen(overload))};
        add_block(t, add_event(t, "add", 0, 100 + 10u * i, 105 + 10u * i), words, i == 3 ? 3 : 5);
    }
    m.threads[0].words[MADE_WORDS - t->arg_words] = OP_ARGS_HEADER(OP_ARGS_TORCH, 2);
    op_result *r = build(&m);
    CHECK_EQ(group(r, OP_GROUP_BY_NAME).count, 1);
    CHECK_EQ(group(r, OP_GROUP_BY_SHAPES).count, 1); /* an overload is not an input */
    rows g = group(r, OP_GROUP_BY_SHAPES | OP_GROUP_BY_OVERLOAD);
    CHECK_EQ(g.count, 3);
    CHECK_EQ(row_named(&g, "add", 0)->count, 2);
    CHECK_EQ(row_named(&g, "add", 1)->first_event, 1);
    CHECK_EQ(row_named(&g, "add", 2)->first_event, 3);
    op_result_free(r);
}

/* ---- work ----------------------------------------------------------------------------------- */

static void add_work(made_thread *t, const char *name, uint16_t depth, uint64_t start, uint32_t bytes,
                     uint32_t nodes, uint32_t flops, uint8_t flags) {
    const uint32_t with_flops[] = {OP_ARGS_HEADER(OP_ARGS_TORCH, 9),
                                   0,
                                   0,
                                   OP_INPUT_WORK | nodes << 8,
                                   bytes,
                                   0,
                                   OP_INPUT_FLOPS,
                                   flops,
                                   0,
                                   OP_INPUT_NONE};
    const uint32_t without[] = {
        OP_ARGS_HEADER(OP_ARGS_TORCH, 6), 0, 0, OP_INPUT_WORK | nodes << 8, bytes, 0, OP_INPUT_NONE};
    op_event *e = add_event(t, name, depth, start, start + 10 - depth);
    e->flags = flags;
    add_block(t, e, flops ? with_flops : without, flops ? 10 : 7);
}

/* linear(transpose, addmm), and a range around relu, called by an op without work. */
static void add_working_step(made_thread *t, uint64_t start) {
    add_work(t, "linear", 0, start, 100, 2, 60, 0);
    add_work(t, "transpose", 1, start + 1, 40, 1, 0, OP_FLAG_ALIASES);
    add_work(t, "addmm", 1, start + 3, 90, 1, 50, 0);
    add_event(t, "node", 0, start + 10, start + 30);
    add_kind(t, "range", 1, start + 11, start + 29, OP_RANGE)->flags = OP_SCOPE_USER;
    add_work(t, "relu", 2, start + 12, 7, 0, 9, 0);
}

static void check_work(op_result *r) {
    rows g = group(r, OP_GROUP_BY_NAME);
    static const struct {
        const char *name;
        int64_t bytes, counted_bytes, nodes, counted_nodes, flops, counted_flops;
    } expected[] = {
        {"linear", 100, 10, 2, 0, 60, 10}, {"transpose", 0, 0, 1, 1, 0, 0},
        {"addmm", 90, 90, 1, 1, 50, 50},   {"node", 7, 0, 0, 0, 9, 0},
        {"range", 7, 0, 0, 0, 9, 0},       {"relu", 7, 7, 0, 0, 9, 9},
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const op_group *row = row_named(&g, expected[i].name, 0);
        CHECK_EQ(row->bytes, 2 * expected[i].bytes);
        CHECK_EQ(row->counted_bytes, 2 * expected[i].counted_bytes);
        CHECK_EQ(row->nodes, 2 * expected[i].nodes);
        CHECK_EQ(row->counted_nodes, 2 * expected[i].counted_nodes);
        CHECK_EQ(row->flops, 2 * expected[i].flops);
        CHECK_EQ(row->counted_flops, 2 * expected[i].counted_flops);
    }
    op_result_free(r);
}

static void work_is_an_ops_own_or_that_inside_of_it(void) {
    start_over();
    add_working_step(&m.threads[0], 100);
    add_working_step(&m.threads[0], 200);
    check_work(build(&m));
}

static void work_is_no_input(void) {
    start_over();
    add_work(&m.threads[0], "mm", 0, 100, 100, 1, 8, 0);
    op_result *r = build(&m);
    op_inputs inputs;
    const uint32_t *block = r->args + r->columns.args[0] - 1, *token;
    CHECK(op_inputs_of(block, r->args + r->arg_words, &inputs));
    CHECK(op_inputs_next(&inputs, &token));
    CHECK_EQ(*token, OP_INPUT_NONE);
    CHECK(!op_inputs_next(&inputs, &token));
    CHECK(op_inputs_overload(block, r->args + r->arg_words) == NULL);
    op_result_free(r);
}

int main(void) {
    RUN(work_is_an_ops_own_or_that_inside_of_it);
    RUN(work_is_no_input);
    RUN(overloads_are_rows_when_asked_for);
    RUN(no_events_are_no_rows);
    RUN(rows_sum_their_events);
    RUN(rows_without_an_end_have_no_times);
    RUN(rows_stand_in_order_of_first_start);
    RUN(annotations_and_ops_do_not_mix);
    RUN(steps_of_the_profiler_are_one_row);
    RUN(samples_are_per_step);
    RUN(background_is_a_row_of_its_own);
    RUN(many_names_are_many_rows);
    RUN(rows_by_inputs_differ_in_shape_only);
    RUN(wide_and_listed_tensors_have_shapes);
    return 0;
}
