#include "made.h"
#include "result/inputs.h"

static made m;

static void start_over(void) { memset(&m, 0, sizeof m); }

static void check_times(const op_result *r, const char *name, int64_t start, int64_t duration,
                        int64_t self) {
    op_columns c = columns_of(r);
    int64_t row = row_of(r, name);
    CHECK_EQ(c.start_ns[row], start);
    CHECK_EQ(c.duration_ns[row], duration);
    CHECK_EQ(c.self_ns[row], self);
}

/* Name of an event's parent, "" for a root. */
static const char *parent_of(const op_result *r, const char *name) {
    op_columns c = columns_of(r);
    int32_t parent = c.parent[row_of(r, name)];
    uint32_t length;
    return parent < 0 ? "" : op_name_text(c.name[parent], &length);
}

static void nothing_recorded_is_an_empty_result(void) {
    start_over();
    op_result *r = build(&m);
    CHECK_EQ(columns_of(r).count, 0);
    CHECK_EQ(op_result_trace_start(r), 5000000000);
    CHECK_EQ(op_result_trace_duration(r), MADE_END - MADE_START);
    op_result_free(r);
    op_result_free(NULL);
}

static void child_time_leaves_parent_self_time(void) {
    start_over();
    made_thread *t = &m.threads[0];
    add_event(t, "linear", 0, 100, 1100);
    add_event(t, "t", 1, 150, 250);
    add_event(t, "as_strided", 2, 180, 200);
    add_event(t, "addmm", 1, 300, 1000);
    add_event(t, "relu", 0, 1200, 1300);
    op_result *r = build(&m);
    check_times(r, "linear", 100, 1000, 200);
    check_times(r, "t", 150, 100, 80);
    check_times(r, "as_strided", 180, 20, 20);
    check_times(r, "addmm", 300, 700, 700);
    check_times(r, "relu", 1200, 100, 100);
    CHECK_TEXT(parent_of(r, "as_strided"), "t");
    CHECK_TEXT(parent_of(r, "addmm"), "linear");
    CHECK_TEXT(parent_of(r, "relu"), "");
    op_result_free(r);
}

static void async_events_are_no_parents(void) {
    start_over();
    made_thread *t = &m.threads[0];
    add_event(t, "outer", 0, 100, 1000);
    add_event(t, "future", 1, 200, 1500)->flags = OP_FLAG_ASYNC;
    add_event(t, "inner", 2, 300, 400);
    add_event(t, "future 2", 2, 500, 900)->flags = OP_FLAG_ASYNC;
    add_event(t, "innermost", 3, 600, 700);
    add_event(t, "sibling", 1, 950, 960);
    op_result *r = build(&m);
    CHECK_TEXT(parent_of(r, "inner"), "outer");
    CHECK_TEXT(parent_of(r, "innermost"), "outer");
    CHECK_TEXT(parent_of(r, "future 2"), "outer");
    CHECK_TEXT(parent_of(r, "sibling"), "outer");
    check_times(r, "future", 200, 1300, 0);
    check_times(r, "outer", 100, 900, 900 - 100 - 100 - 10);
    CHECK_EQ(columns_of(r).flags[row_of(r, "future")], OP_FLAG_ASYNC);
    op_result_free(r);
}

static void open_events_have_no_duration(void) {
    start_over();
    made_thread *t = &m.threads[0];
    add_event(t, "open", 0, 100, 0);
    add_event(t, "closed", 1, 200, 300);
    add_event(t, "open too", 1, 400, 0);
    op_result *r = build(&m);
    check_times(r, "open", 100, -1, 0);
    check_times(r, "closed", 200, 100, 100);
    check_times(r, "open too", 400, -1, 0);
    CHECK_TEXT(parent_of(r, "closed"), "open");
    CHECK_TEXT(parent_of(r, "open too"), "open");
    CHECK_EQ(columns_of(r).flags[0], OP_FLAG_UNFINISHED);
    op_result_free(r);
}

static void threads_share_no_parents(void) {
    start_over();
    m.threads[0].os_tid = 71;
    m.threads[2].os_tid = 73;
    m.threads[2].torch_thread = 9;
    add_event(&m.threads[0], "long", 0, 0, 1000);
    add_event(&m.threads[0], "nested", 1, 10, 20);
    add_event(&m.threads[2], "elsewhere", 1, 10, 20); /* its own depth 0 was not recorded */
    op_result *r = build(&m);
    CHECK_TEXT(parent_of(r, "elsewhere"), "");
    uint32_t count;
    const op_thread_info *threads = op_result_threads(r, &count);
    CHECK_EQ(count, 2);
    CHECK_EQ(threads[1].index, 2);
    CHECK_EQ(threads[1].os_tid, 73);
    CHECK_EQ(threads[1].torch_thread, 9);
    CHECK_EQ(columns_of(r).thread[row_of(r, "elsewhere")], 1);
    op_result_free(r);
}

/* A thread's chunks have arbitrary addresses; `sequence` is their order. */
static void chunks_join_end_to_end(void) {
    start_over();
    op_event first[2] = {
        {.start = MADE_START, .end = MADE_START + 900, .name = name_id("across")},
        {.start = MADE_START + 10, .end = MADE_START + 20, .name = name_id("a"), .depth = 1}};
    op_event second = {
        .start = MADE_START + 30, .end = MADE_START + 40, .name = name_id("b"), .depth = 1};
    const op_raw raw[2] = {{.thread = 5, .count = 2, .events = first},
                           {.thread = 5, .sequence = 1, .count = 1, .events = &second}};
    const op_steps none = {0};
    CHECK(op_raw_order(&raw[0], &raw[1]) < 0 && op_raw_order(&raw[1], &raw[0]) > 0);
    op_result *r = build_from(raw, 2, &none);
    CHECK_TEXT(parent_of(r, "b"), "across");
    check_times(r, "across", 0, 900, 880);
    CHECK_EQ(stats_of(r).threads, 1);
    op_result_free(r);
}

static void sequence_numbers_are_torch_ops_only(void) {
    start_over();
    made_thread *t = &m.threads[0];
    set_sequence(t, add_event(t, "mm", 0, 10, 20), 7, 0);
    add_event(t, "view", 0, 20, 30);
    op_event *range = add_event(t, "range", 0, 30, 40);
    range->kind = OP_RANGE;
    range->aux = 3;
    range->flags = OP_SCOPE_USER;
    op_result *r = build(&m);
    op_columns c = columns_of(r);
    CHECK_EQ(c.sequence_nr[row_of(r, "mm")], 7);
    CHECK_EQ(c.sequence_nr[row_of(r, "view")], -1);
    CHECK_EQ(c.sequence_nr[row_of(r, "range")], -1);
    CHECK_EQ(c.scope[row_of(r, "range")], OP_SCOPE_USER);
    CHECK_EQ(c.kind[row_of(r, "range")], OP_RANGE);
    op_result_free(r);
}

static void events_belong_to_the_step_they_began_in(void) {
    start_over();
    made_thread *t = &m.threads[0];
    t->os_tid = 71;
    add_event(t, "before", 0, 50, 60);
    add_event(t, "first", 0, 100, 350); /* ends in the next chunk */
    add_event(t, "between", 0, 250, 260);
    add_event(t, "second", 0, 300, 310);
    add_event(t, "after", 0, 400, 410);
    add_step(&m, 3, 100, 200, 71);
    add_step(&m, 4, 300, 400, 71);
    op_result *r = build(&m);
    CHECK_EQ(step_of(r, "before"), -1);
    CHECK_EQ(step_of(r, "first"), 0);
    CHECK_EQ(step_of(r, "between"), -1);
    CHECK_EQ(step_of(r, "second"), 1);
    CHECK_EQ(step_of(r, "after"), -1);
    uint32_t count;
    const op_step *steps = op_result_steps(r, &count);
    CHECK_EQ(count, 2);
    CHECK_EQ(steps[1].number, 4);
    CHECK_EQ(steps[1].start_ns, 300);
    CHECK_EQ(steps[1].end_ns, 400);
    op_result_free(r);
}

static void open_steps_last_to_the_end(void) {
    start_over();
    add_event(&m.threads[0], "late", 0, 999, 1000);
    add_step(&m, 0, 100, 0, 0);
    op_result *r = build(&m);
    uint32_t count;
    CHECK_EQ(step_of(r, "late"), 0);
    CHECK_EQ(op_result_steps(r, &count)[0].end_ns, -1);
    op_result_free(r);
}

static void old_threads_are_background(void) {
    static uint32_t tids[] = {71, 72};
    start_over();
    for (uint32_t i = 0; i < 3; i++)
        m.threads[i].os_tid = 71 + i;
    add_event(&m.threads[0], "stepper", 0, 150, 160);
    add_event(&m.threads[1], "old outside", 0, 50, 60);
    add_event(&m.threads[1], "old", 0, 150, 160);
    add_event(&m.threads[2], "new", 0, 150, 160); /* did not exist when the step began */
    add_step(&m, 0, 100, 200, 71);
    m.steps[0].tids = tids;
    m.steps[0].tid_count = 2;
    op_result *r = build(&m);
    CHECK_EQ(step_of(r, "stepper"), 0);
    CHECK_EQ(step_of(r, "new"), 0);
    CHECK_EQ(step_of(r, "old"), -1);
    CHECK(is_background(r, "old"));
    CHECK(!is_background(r, "old outside"));
    CHECK(!is_background(r, "new"));
    op_result_free(r);
}

/* Lengths in a block come from a dead process. */
static void damaged_blocks_are_left_alone(void) {
    start_over();
    made_thread *t = &m.threads[0];
    op_event *last = add_event(t, "last", 0, 10, 20), *outside = add_event(t, "outside", 0, 30, 40);
    last->aux = outside->aux = 5;
    add_block(t, last, (uint32_t[]){OP_ARGS_HEADER(OP_ARGS_TORCH, 400)}, 1);
    outside->args = 1999;
    op_result *r = build(&m);
    CHECK(columns_of(r).args[0] != 0);
    CHECK_EQ(columns_of(r).args[1], 0);
    CHECK_EQ(columns_of(r).forward_thread[0], 0);
    op_result_free(r);
}

/* Between two calibrations each line has its own rate; joined, time never jumps. */
static void time_is_converted_piece_by_piece(void) {
    static op_clock_pair pairs[3] = {{.ticks = 1000, .monotonic_ns = 500, .realtime_ns = 77},
                                     {.ticks = 2000, .monotonic_ns = 1000},
                                     {.ticks = 3000, .monotonic_ns = 3000}};
    const op_event events[4] = {{.start = 1000, .end = 3000},
                                {.start = 1500, .end = 2500, .depth = 1},
                                {.start = 2500, .end = 2600, .depth = 2},
                                {.start = 3500, .end = 4000}};
    const op_raw raw = {.count = 4, .events = events};
    const op_timeline timeline = {.pairs = pairs, .count = 3};
    const op_steps none = {0};
    const op_source source = {.raw = &raw, .raw_count = 1, .timeline = &timeline, .steps = &none};
    op_result *r = op_result_new();
    op_clock_kind = OP_CLOCK_COUNTER;
    CHECK_OK(op_tree_build(&source, r));
    op_clock_kind = OP_CLOCK_MONOTONIC;
    static const int64_t starts[4] = {0, 250, 1500, 3500}, durations[4] = {2500, 1250, 200, 1000};
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(columns_of(r).start_ns[i], starts[i]);
        CHECK_EQ(columns_of(r).duration_ns[i], durations[i]);
    }
    CHECK_EQ(op_result_trace_start(r), 77);
    CHECK_EQ(op_result_trace_duration(r), 2500);
    op_result_free(r);
}

/* Outputs are not an event; they belong to the op. */
static void outputs_belong_to_their_op(void) {
    memset(&m, 0, sizeof m);
    made_thread *t = &m.threads[0];
    const uint32_t words[] = {OP_ARGS_HEADER(OP_ARGS_OUTPUTS, 1), 77};
    add_event(t, "linear", 0, 100, 400);
    add_event(t, "addmm", 1, 110, 300);
    op_event *e = add_event(t, "", 2, 290, 290);
    e->kind = OP_OUTPUTS;
    add_block(t, e, words, 2);
    add_event(t, "view", 1, 310, 390);
    e = add_event(t, "", 0, 500, 500); /* without a recorded op */
    e->kind = OP_OUTPUTS;
    add_block(t, e, words, 2);
    op_result *r = build(&m);
    op_columns c = columns_of(r);
    CHECK_EQ(c.count, 3);
    CHECK_EQ(stats_of(r).events, 3);
    CHECK_EQ(op_result_outputs(r, 0), 0);
    CHECK_EQ(op_result_outputs(r, 2), 0);
    CHECK_EQ(op_result_outputs(r, 3), 0);
    uint64_t n;
    const uint32_t *args = op_result_args(r, &n);
    CHECK(op_result_outputs(r, 1) > 0);
    CHECK_EQ(args[op_result_outputs(r, 1)], 77);
    CHECK_EQ(c.parent[2], 0);
    CHECK_EQ(c.self_ns[0], 300 - 190 - 80);
    op_result_free(r);
}

/* The overload precedes the inputs and is not one of them. */
static void overload_is_told_of_its_op(void) {
    memset(&m, 0, sizeof m);
    made_thread *t = &m.threads[0];
    uint32_t overload = op_names_intern("Tensor", 6);
    const uint32_t words[] = {
        OP_ARGS_HEADER(OP_ARGS_TORCH, 5), 0, 0, OP_INPUT_OVERLOAD, overload, OP_INPUT_NONE};
    const uint32_t plain[] = {OP_ARGS_HEADER(OP_ARGS_TORCH, 3), 0, 0, OP_INPUT_NONE};
    const uint32_t cut[] = {OP_ARGS_HEADER(OP_ARGS_TORCH, 3), 0, 0, OP_INPUT_OVERLOAD};
    add_block(t, add_event(t, "aten::add", 0, 100, 110), words, 6);
    add_block(t, add_event(t, "aten::add", 0, 120, 130), plain, 4);
    add_block(t, add_event(t, "aten::add", 0, 140, 150), cut, 4);
    add_event(t, "aten::add", 0, 160, 170);
    op_result *r = build(&m);
    CHECK_EQ(op_result_overload(r, 0), overload);
    for (uint64_t row = 1; row < 5; row++)
        CHECK_EQ(op_result_overload(r, row), OP_NAME_NONE);
    op_inputs inputs;
    const uint32_t *token;
    CHECK(op_inputs_of(r->args + columns_of(r).args[0] - 1, r->args + r->arg_words, &inputs));
    CHECK(op_inputs_next(&inputs, &token) && *token == OP_INPUT_NONE);
    CHECK(!op_inputs_next(&inputs, &token));
    op_result_free(r);
}

static void overload_of_a_file_is_renamed(void) {
    const uint32_t names[] = {0, 1, 42};
    uint32_t words[] = {OP_ARGS_HEADER(OP_ARGS_TORCH, 4), 0, 0, OP_INPUT_OVERLOAD, 2};
    op_inputs_rename(words, words + 5, names, 3);
    CHECK_EQ(words[4], 42);
    op_inputs_rename(words, words + 5, names, 3); /* an id that is not in the file */
    CHECK_EQ(words[4], OP_NAME_NONE);
    uint32_t other[] = {OP_ARGS_HEADER(OP_ARGS_TORCH, 4), 0, 0, OP_INPUT_BOOL_LIST | 1 << 16, 2};
    op_inputs_rename(other, other + 5, names, 3);
    CHECK_EQ(other[4], 2);
}

/* A block of one named number, within an op's input block. */
enum { KEYWORDS = 5 };
#define NAMED(key)                                                                                     \
    OP_INPUT_KEYWORDS | KEYWORDS << 16, OP_ARGS_HEADER(OP_ARGS_FIELDS, KEYWORDS - 1), key,             \
        OP_FIELD_SIGNED | 1 << 8, 7, 0

static void keywords_are_no_inputs(void) {
    const uint32_t words[] = {OP_ARGS_HEADER(OP_ARGS_TORCH, 9), 0, 0, NAMED(3), OP_INPUT_NONE};
    const uint32_t behind[] = {
        OP_ARGS_HEADER(OP_ARGS_TORCH, 11), 0, 0, OP_INPUT_OVERLOAD, 9, NAMED(3), OP_INPUT_NONE};
    const uint32_t *token, *const blocks[] = {words, behind}, ends[] = {10, 12};
    for (int i = 0; i < 2; i++) {
        const uint32_t *limit = blocks[i] + ends[i], *at = NULL;
        const uint32_t *keywords = op_inputs_keywords(blocks[i], limit);
        op_field field;
        CHECK(keywords && op_fields_next(keywords, limit, &at, &field));
        CHECK_EQ(field.key, 3);
        CHECK_EQ(field.values[0], 7);
        CHECK(!op_fields_next(keywords, limit, &at, &field));
        CHECK_EQ(op_inputs_overload(blocks[i], limit) ? 9 : 0, i ? 9 : 0);
        op_inputs inputs;
        CHECK(op_inputs_of(blocks[i], limit, &inputs));
        CHECK(op_inputs_next(&inputs, &token) && *token == OP_INPUT_NONE);
        CHECK(!op_inputs_next(&inputs, &token));
    }
}

static void damaged_keywords_are_none(void) {
    const uint32_t too_long[] = {OP_ARGS_HEADER(OP_ARGS_TORCH, 4), 0, 0, OP_INPUT_KEYWORDS | 2 << 16,
                                 OP_ARGS_HEADER(OP_ARGS_FIELDS, 1)};
    CHECK(op_inputs_keywords(too_long, too_long + 5) == NULL);
    const uint32_t empty[] = {OP_ARGS_HEADER(OP_ARGS_TORCH, 4), 0, 0, OP_INPUT_KEYWORDS,
                              OP_ARGS_HEADER(OP_ARGS_FIELDS, 1)};
    CHECK(op_inputs_keywords(empty, empty + 5) == NULL);
    uint32_t reaches_on[] = {OP_ARGS_HEADER(OP_ARGS_TORCH, 9), 0, 0, NAMED(3), OP_INPUT_NONE};
    reaches_on[4] = OP_ARGS_HEADER(OP_ARGS_FIELDS, KEYWORDS);
    CHECK(op_inputs_keywords(reaches_on, reaches_on + 10) == NULL);
    const uint32_t text[] = {OP_ARGS_HEADER(OP_ARGS_TEXT, 2), 4, OP_INPUT_KEYWORDS};
    CHECK(op_inputs_keywords(text, text + 3) == NULL);
}

static void keywords_of_a_file_are_renamed(void) {
    const uint32_t names[] = {0, 1, 2, 42};
    uint32_t words[] = {OP_ARGS_HEADER(OP_ARGS_TORCH, 9), 0, 0, NAMED(3), OP_INPUT_NONE};
    op_inputs_rename(words, words + 10, names, 4);
    CHECK_EQ(words[5], 42);
}

int main(void) {
    RUN(keywords_are_no_inputs);
    RUN(damaged_keywords_are_none);
    RUN(keywords_of_a_file_are_renamed);
    RUN(overload_is_told_of_its_op);
    RUN(overload_of_a_file_is_renamed);
    RUN(nothing_recorded_is_an_empty_result);
    RUN(child_time_leaves_parent_self_time);
    RUN(async_events_are_no_parents);
    RUN(open_events_have_no_duration);
    RUN(threads_share_no_parents);
    RUN(chunks_join_end_to_end);
    RUN(sequence_numbers_are_torch_ops_only);
    RUN(events_belong_to_the_step_they_began_in);
    RUN(open_steps_last_to_the_end);
    RUN(old_threads_are_background);
    RUN(damaged_blocks_are_left_alone);
    RUN(time_is_converted_piece_by_piece);
    RUN(outputs_belong_to_their_op);
    return 0;
}
