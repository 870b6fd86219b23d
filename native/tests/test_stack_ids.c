#include "made.h"
#include "result/stack_ids.h"

static made m;
static made_thread *const t = &m.threads[0];

static op_event *add_op(const char *name, uint16_t depth, uint64_t start, uint64_t end, uint16_t line) {
    op_event *e = add_event(t, name, depth, start, end);
    e->line = line;
    return e;
}

/* Rows with equal letters must have equal ids; a dash means none. */
static void check_ids(uint32_t depth, const char *letters) {
    op_result *r = build(&m);
    uint32_t *ids = op_stack_ids(r, depth);
    CHECK(ids != NULL);
    CHECK_EQ(columns_of(r).count, strlen(letters));
    for (size_t i = 0; letters[i]; i++) {
        CHECK_EQ(ids[i] == 0, letters[i] == '-');
        for (size_t j = 0; j < i; j++)
            CHECK_EQ(ids[i] == ids[j], letters[i] == letters[j]);
    }
    free(ids);
    op_result_free(r);
}

static void ops_without_calls_have_no_stack(void) {
    memset(&m, 0, sizeof m);
    add_op("add", 0, 100, 200, 0);
    add_op("mul", 1, 110, 190, 7);
    check_ids(1, "--");
    check_ids(UINT32_MAX, "--");
}

/* Calls are a separate tree with its own depth. */
static void stacks_are_apart_by_call_and_line(void) {
    memset(&m, 0, sizeof m);
    add_kind(t, "a.py(1): f", 0, 100, 500, OP_PYTHON_CALL);
    add_op("add", 0, 110, 120, 5);
    add_op("add", 0, 130, 190, 5);
    add_op("inside", 1, 140, 150, 0);
    add_op("add", 0, 200, 210, 6);
    add_kind(t, "a.py(9): g", 1, 220, 400, OP_PYTHON_CALL)->line = 6;
    add_op("add", 0, 230, 240, 5);
    add_kind(t, "a.py(9): g", 1, 410, 450, OP_PYTHON_CALL)->line = 7;
    add_op("add", 0, 420, 430, 5);
    check_ids(UINT32_MAX, "-aaabbcde");
}

static void innermost_calls_alone_count(void) {
    memset(&m, 0, sizeof m);
    for (uint16_t i = 0; i < 2; i++) {
        uint64_t start = 100 + 300u * i;
        add_kind(t, i ? "a.py(1): f" : "a.py(2): g", 0, start, start + 200, OP_PYTHON_CALL);
        add_kind(t, "a.py(9): leaf", 1, start + 10, start + 90, OP_PYTHON_CALL);
        add_op("add", 0, start + 20, start + 30, 10);
    }
    check_ids(1, "-ab-cb");
    check_ids(2, "-ab-cd");
}

/* The innermost one was at the op's own line. */
static void open_calls_count_until_they_end(void) {
    memset(&m, 0, sizeof m);
    add_kind(t, "a.py(1): module", 0, 1, 0, OP_PYTHON_CALL)->flags = OP_FLAG_BEFORE;
    add_kind(t, "a.py(5): test", 1, 1, 300, OP_PYTHON_CALL)->flags = OP_FLAG_BEFORE;
    add_op("add", 0, 100, 110, 8);
    add_op("add", 0, 120, 130, 9);
    add_op("add", 0, 140, 150, 8);
    add_op("add", 0, 400, 410, 8);
    check_ids(UINT32_MAX, "abac");
}

static void entry_points_of_autograd_are_no_entries(void) {
    memset(&m, 0, sizeof m);
    add_kind(t, "a.py(1): f", 0, 100, 500, OP_PYTHON_CALL);
    add_op("add", 0, 110, 120, 5);
    add_kind(t, "torch/autograd/__init__.py(180): backward", 1, 130, 400, OP_PYTHON_CALL)->line = 5;
    add_op("add", 0, 140, 150, 200);
    check_ids(UINT32_MAX, "-aaa");
}

static void backward_ops_have_their_forwards_stack(void) {
    memset(&m, 0, sizeof m);
    t->torch_thread = 1;
    add_kind(t, "a.py(1): f", 0, 100, 500, OP_PYTHON_CALL);
    set_sequence(t, add_op("linear", 0, 110, 200, 5), 3, 0);
    set_sequence(t, add_op("addmm", 1, 120, 130, 0), 3, 0);
    add_kind(t, "a.py(9): g", 0, 600, 900, OP_PYTHON_CALL);
    set_sequence(t, add_op("AddmmBackward0", 0, 610, 700, 12), 3, 1);
    add_op("mm", 1, 620, 630, 0);
    set_sequence(t, add_op("Unknown", 0, 710, 720, 12), 4, 1); /* of an op before the window */
    check_ids(UINT32_MAX, "-aa-aab");
    check_ids(1, "-aa-aab");
}

/* Of the ops that share a number. */
static void the_outermost_forward_op_counts(void) {
    memset(&m, 0, sizeof m);
    t->torch_thread = 1;
    add_kind(t, "a.py(1): f", 0, 100, 500, OP_PYTHON_CALL);
    set_sequence(t, add_op("linear", 0, 110, 200, 5), 3, 0);
    add_kind(t, "a.py(7): hook", 1, 120, 180, OP_PYTHON_CALL)->line = 5;
    set_sequence(t, add_op("t", 1, 130, 140, 8), 3, 0);
    set_sequence(t, add_op("TBackward0", 0, 610, 700, 0), 3, 1);
    check_ids(UINT32_MAX, "-aaba");
}

static void many_stacks_are_kept_apart(void) {
    memset(&m, 0, sizeof m);
    enum { DEPTH = 60 };
    char letters[DEPTH + 1] = "-";
    for (uint16_t i = 0; i < DEPTH; i++) {
        add_kind(t, "a.py(1): f", i, 100u + i, 900u - i, OP_PYTHON_CALL);
        letters[i] = i ? (char)('.' + i) : '-';
    }
    check_ids(UINT32_MAX, letters);
    memset(letters + 2, letters[2], DEPTH - 2);
    check_ids(2, letters);
}

int main(void) {
    RUN(ops_without_calls_have_no_stack);
    RUN(stacks_are_apart_by_call_and_line);
    RUN(innermost_calls_alone_count);
    RUN(open_calls_count_until_they_end);
    RUN(entry_points_of_autograd_are_no_entries);
    RUN(backward_ops_have_their_forwards_stack);
    RUN(the_outermost_forward_op_counts);
    RUN(many_stacks_are_kept_apart);
    return 0;
}
