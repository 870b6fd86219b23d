#include "export/flows.h"
#include "made.h"

static made m;

/* `aten::linear` and the `aten::t` in it peek at the same number; the inner one makes the node. */
static void arrows_begin_at_the_op_that_began_last(void) {
    memset(&m, 0, sizeof m);
    made_thread *t = &m.threads[0], *worker = &m.threads[1];
    t->torch_thread = 1;
    worker->torch_thread = 2;
    set_sequence(t, add_event(t, "linear", 0, 100, 400), 7, 0);
    set_sequence(t, add_event(t, "t", 1, 110, 200), 7, 0);
    set_sequence(t, add_event(t, "addmm", 1, 210, 390), 8, 0);
    set_sequence(worker, add_event(worker, "evaluate", 0, 1000, 1100), 8, 1);
    set_sequence(worker, add_event(worker, "AddmmBackward", 1, 1010, 1090), 8, 1);
    set_sequence(worker, add_event(worker, "TBackward", 0, 1200, 1250), 7, 1);
    set_sequence(worker, add_event(worker, "again", 0, 1300, 1350), 7, 1);
    set_sequence(worker, add_event(worker, "of another thread", 0, 1400, 1450), 8, 5);
    op_result *r = build(&m);
    op_flows flows;
    CHECK_OK(op_flows_find(&flows, r));
    CHECK_EQ(flows.count, 2);
    static const uint32_t expected[] = {0, 2, 1, 0, 1, 2, 0, 0};
    for (int row = 0; row < 8; row++)
        CHECK_EQ(flows.of_row[row], expected[row]);
    free(flows.of_row);
    op_result_free(r);
}

/* A number may be repeated, as after retain_graph: the first to end is the node. */
static void a_forward_op_has_one_arrow(void) {
    memset(&m, 0, sizeof m);
    made_thread *t = &m.threads[0];
    t->torch_thread = 1;
    set_sequence(t, add_event(t, "mul", 0, 100, 200), 0, 0);
    set_sequence(t, add_event(t, "MulBackward", 0, 300, 350), 0, 1);
    set_sequence(t, add_event(t, "MulBackward", 0, 400, 450), 0, 1);
    set_sequence(t, add_event(t, "mul", 0, 500, 600), 0, 0);
    set_sequence(t, add_event(t, "MulBackward", 0, 700, 750), 0, 1);
    op_result *r = build(&m);
    op_flows flows;
    CHECK_OK(op_flows_find(&flows, r));
    static const uint32_t expected[] = {1, 1, 0, 2, 2};
    for (int row = 0; row < 5; row++)
        CHECK_EQ(flows.of_row[row], expected[row]);
    free(flows.of_row);
    op_result_free(r);
}

static void without_backward_ops_nothing_is_kept(void) {
    memset(&m, 0, sizeof m);
    set_sequence(&m.threads[0], add_event(&m.threads[0], "mul", 0, 100, 200), 3, 0);
    op_result *r = build(&m);
    op_flows flows;
    CHECK_OK(op_flows_find(&flows, r));
    CHECK(flows.of_row == NULL && flows.count == 0);
    op_result_free(r);
}

int main(void) {
    RUN(arrows_begin_at_the_op_that_began_last);
    RUN(a_forward_op_has_one_arrow);
    RUN(without_backward_ops_nothing_is_kept);
    return 0;
}
