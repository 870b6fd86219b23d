/* A fold's sums equal those of the rows. */
#include "made.h"
#include "result/group.h"

enum { THREADS = 3, EVENTS = 60, ROUNDS = 300, SITES = 5 };

static made m;
static uint32_t seed;

static uint32_t draw(uint32_t below) {
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % below;
}

/* Forward ops, backward ops of any thread, views, ranges, open and async events. */
static void add_any(made_thread *t, uint32_t *number, uint16_t depth, uint64_t start, uint64_t end) {
    static const char *const ops[] = {"aten::mm", "aten::t", "aten::add", "detach"};
    static const char wrapper[] = "autograd::engine::evaluate_function: MulBackward0";
    op_event *e;
    switch (draw(6)) {
    case 0:
        e = add_kind(t, draw(2) ? "range" : "other range", depth, start, end, OP_RANGE);
        e->flags = OP_SCOPE_USER;
        break;
    case 1:
        e = add_event(t, "MulBackward0", depth, start, end);
        set_sequence(t, e, draw(20), 1 + draw(THREADS));
        break;
    case 2: /* the node is its first op */
        add_event(t, wrapper, depth, start, end);
        e = add_event(t, "MulBackward0", (uint16_t)(depth + 1), start, end);
        set_sequence(t, e, draw(20), 1 + draw(THREADS));
        break;
    default:
        e = add_event(t, ops[draw(4)], depth, start, end);
        set_sequence(t, e, *number += draw(2), 0);
    }
    if (draw(3) == 0 && e->kind == OP_TORCH)
        e->flags |= OP_FLAG_ALIASES;
    if (draw(12) == 0)
        e->flags |= OP_FLAG_ASYNC;
    if (depth == 0 || draw(4) == 0)
        e->line = (uint16_t)draw(SITES + 1);
}

/* Consecutive subtrees, at most `deep`. */
static void add_subtrees(made_thread *t, uint32_t *number, uint16_t depth, uint64_t from, uint64_t to) {
    while (t->count + 1 < EVENTS && to - from > 4 && draw(5)) {
        uint64_t start = from + draw((uint32_t)(to - from) / 2),
                 end = start + 1 + draw((uint32_t)(to - start));
        add_any(t, number, depth, start, draw(30) ? end : 0);
        if (depth < 6)
            add_subtrees(t, number, (uint16_t)(depth + 1), start, end);
        from = end;
    }
}

static void make_any(void) {
    memset(&m, 0, sizeof m);
    for (uint32_t i = 0; i < THREADS; i++) {
        uint32_t number = draw(4);
        m.threads[i].torch_thread = i + 1;
        m.threads[i].os_tid = 100 + i;
        for (uint64_t from = 0; m.threads[i].count < EVENTS && from < 90000; from += 10000)
            add_subtrees(&m.threads[i], &number, 0, from, from + 10000);
    }
    m.sites = SITES;
    add_step(&m, 1, 10000, 40000, 100);
    add_step(&m, 2, 40000, 70000, 100);
}

static uint64_t calls_from(const op_result *r, const op_called_from *wanted) {
    uint64_t count, calls = 0;
    const op_called_from *rows = op_result_called_from(r, &count);
    for (uint64_t i = 0; i < count; i++)
        if (rows[i].name == wanted->name && rows[i].site == wanted->site)
            calls += rows[i].count;
    return calls;
}

static void check_same_sites(const op_result *whole, const op_result *folded) {
    uint64_t count, others;
    const op_called_from *rows = op_result_called_from(whole, &count);
    op_result_called_from(folded, &others);
    CHECK_EQ(count, others);
    for (uint64_t i = 0; i < count; i++)
        CHECK_EQ(calls_from(folded, &rows[i]), rows[i].count);
}

static void check_same(op_result *whole, op_result *folded) {
    const op_group *rows[2];
    const int64_t *samples[2];
    const op_path *paths[2];
    uint64_t count[2];
    op_result *results[2] = {whole, folded};
    for (int i = 0; i < 2; i++)
        CHECK_OK(op_result_groups(results[i], OP_GROUP_BY_NAME, 0, &rows[i], &count[i], &samples[i]));
    CHECK_EQ(count[0], count[1]);
    for (uint64_t i = 0; i < count[0]; i++) {
        const op_group *a = &rows[0][i], *b = &rows[1][i];
        CHECK_EQ(a->name, b->name);
        CHECK_EQ(a->kind, b->kind);
        CHECK_EQ(a->scope, b->scope);
        CHECK_EQ(a->background, b->background);
        CHECK_EQ(a->is_user_annotation, b->is_user_annotation);
        CHECK_EQ(a->is_async, b->is_async);
        CHECK_EQ(a->start_ns, b->start_ns);
        CHECK_EQ(a->count, b->count);
        CHECK_EQ(a->views, b->views);
        CHECK_EQ(a->total_ns, b->total_ns);
        CHECK_EQ(a->self_ns, b->self_ns);
        CHECK_EQ(a->min_ns, b->min_ns);
        CHECK_EQ(a->max_ns, b->max_ns);
    }
    CHECK_EQ(memcmp(samples[0], samples[1], count[0] * OP_STEP_COLUMNS * 2 * sizeof **samples), 0);
    for (int i = 0; i < 2; i++)
        CHECK_OK(op_result_paths(results[i], 50, &paths[i], &count[i]));
    CHECK_EQ(count[0], count[1]);
    for (uint64_t i = 0; i < count[0]; i++) {
        CHECK_EQ(paths[0][i].parent, paths[1][i].parent);
        CHECK_EQ(paths[0][i].name, paths[1][i].name);
        CHECK_EQ(paths[0][i].count, paths[1][i].count);
        CHECK_EQ(paths[0][i].total_ns, paths[1][i].total_ns);
        CHECK_EQ(paths[0][i].self_ns, paths[1][i].self_ns);
    }
    check_same_sites(whole, folded);
    CHECK_EQ(stats_of(whole).events, stats_of(folded).events);
}

static void sums_are_those_of_the_rows(void) {
    for (seed = 0; seed < ROUNDS; seed++) {
        uint32_t round = seed;
        make_any();
        op_result *whole = build(&m);
        for (uint64_t most = 1; most < 100; most = most * 3 + 1) {
            op_result *folded = build_at_most(&m, most);
            bool is_summed = stats_of(whole).events > most;
            CHECK_EQ(op_result_is_folded(folded), is_summed);
            CHECK_EQ(columns_of(folded).count, is_summed ? 0 : columns_of(whole).count);
            check_same(whole, folded);
            op_result_free(folded);
        }
        op_result_free(whole);
        seed = round;
    }
}

static void only_names_are_apart(void) {
    const op_group *rows;
    const int64_t *samples;
    uint64_t count;
    seed = 7;
    make_any();
    op_result *r = build_at_most(&m, 5);
    CHECK_EQ(op_result_groups(r, OP_GROUP_BY_SHAPES, 0, &rows, &count, &samples), OP_ESTATE);
    CHECK_EQ(op_result_groups(r, OP_GROUP_BY_NAME, 3, &rows, &count, &samples), OP_ESTATE);
    op_result_free(r);
}

static void rows_that_others_follow_from_are_kept(void) {
    seed = 7;
    make_any();
    add_kind(&m.threads[1], "call", 0, 95000, 96000, OP_PYTHON_CALL);
    op_result *r = build_at_most(&m, 5), *whole = build(&m);
    CHECK_EQ(op_result_is_folded(r), 0);
    CHECK_EQ(columns_of(r).count, columns_of(whole).count);
    check_same(whole, r);
    op_result_free(r);
    op_result_free(whole);
}

int main(void) {
    RUN(sums_are_those_of_the_rows);
    RUN(only_names_are_apart);
    RUN(rows_that_others_follow_from_are_kept);
    return 0;
}
