#include "made.h"

static made m;

/* A backward op runs on the engine's thread, perhaps after the step, but belongs to its forward's
 * step. */
static void backward_goes_with_its_forward(void) {
    static uint32_t tids[] = {71, 72};
    memset(&m, 0, sizeof m);
    made_thread *forward = &m.threads[0], *engine = &m.threads[1];
    forward->os_tid = 71;
    forward->torch_thread = 1;
    engine->os_tid = 72;
    engine->torch_thread = 2;
    set_sequence(forward, add_event(forward, "mm 0", 0, 110, 120), 7, 0);
    set_sequence(forward, add_event(forward, "mm 1", 0, 310, 320), 8, 0);
    add_event(engine, "autograd::engine::evaluate_function: A", 0, 330, 340);
    set_sequence(engine, add_event(engine, "MmBackward0", 1, 331, 339), 7, 1);
    add_event(engine, "mm in backward", 2, 332, 338);
    add_event(engine, "autograd::engine::evaluate_function: B", 0, 450, 460);
    set_sequence(engine, add_event(engine, "MmBackward1", 1, 451, 459), 8, 1);
    add_event(engine, "AccumulateGrad", 0, 470, 480);
    set_sequence(engine, add_event(engine, "stray", 0, 350, 360), 99, 1);
    add_step(&m, 0, 100, 200, 71);
    add_step(&m, 1, 300, 400, 71);
    for (uint32_t i = 0; i < 2; i++) {
        m.steps[i].tids = tids;
        m.steps[i].tid_count = 2;
    }
    op_result *r = build(&m);
    op_columns c = columns_of(r);
    CHECK_EQ(step_of(r, "MmBackward0"), 0);
    CHECK_EQ(step_of(r, "mm in backward"), 0);
    CHECK_EQ(step_of(r, "autograd::engine::evaluate_function: A"), 0);
    CHECK(!is_background(r, "mm in backward"));
    CHECK_EQ(step_of(r, "MmBackward1"), 1);
    CHECK_EQ(step_of(r, "autograd::engine::evaluate_function: B"), 1);
    CHECK_EQ(step_of(r, "AccumulateGrad"), -1);
    CHECK_EQ(step_of(r, "stray"), -1);
    CHECK(is_background(r, "stray"));
    CHECK_EQ(c.forward_thread[row_of(r, "MmBackward0")], 1);
    CHECK_EQ(c.sequence_nr[row_of(r, "autograd::engine::evaluate_function: B")], 8);
    CHECK_EQ(c.forward_thread[row_of(r, "mm 0")], 0);
    op_result_free(r);
}

/* An op without a node peeks at the number that the next node gets: the last op has the node. */
static void the_last_op_of_a_number_is_the_forward(void) {
    memset(&m, 0, sizeof m);
    made_thread *t = &m.threads[0];
    t->os_tid = 71;
    t->torch_thread = 1;
    set_sequence(t, add_event(t, "detach", 0, 110, 120), 7, 0);
    set_sequence(t, add_event(t, "mul", 0, 310, 320), 7, 0);
    set_sequence(t, add_event(t, "MulBackward0", 0, 450, 460), 7, 1);
    add_step(&m, 0, 100, 200, 71);
    add_step(&m, 1, 300, 400, 71);
    op_result *r = build(&m);
    CHECK_EQ(step_of(r, "MulBackward0"), 1);
    op_result_free(r);
}

int main(void) {
    RUN(backward_goes_with_its_forward);
    RUN(the_last_op_of_a_number_is_the_forward);
    return 0;
}
