#include "made.h"
#include "result/forwards.h"

static made m;

static op_result *two_threads(void) {
    memset(&m, 0, sizeof m);
    made_thread *t = &m.threads[0], *other = &m.threads[1];
    t->torch_thread = 1;
    other->torch_thread = 2;
    set_sequence(t, add_event(t, "linear", 0, 100, 400), 7, 0);
    set_sequence(t, add_event(t, "t", 1, 110, 200), 7, 0);
    add_event(t, "view", 1, 210, 220);
    set_sequence(t, add_event(t, "addmm", 1, 230, 390), 8, 0);
    set_sequence(other, add_event(other, "mul", 0, 100, 200), 7, 0);
    set_sequence(other, add_event(other, "MulBackward", 0, 300, 400), 9, 1);
    return build(&m);
}

static void the_first_is_kept(void) {
    op_result *r = two_threads();
    op_forwards f;
    CHECK_OK(op_forwards_index(&f, r));
    CHECK_EQ(op_forwards_find(&f, 1, 7), 0);
    CHECK_EQ(op_forwards_find(&f, 1, 8), 3);
    CHECK_EQ(op_forwards_find(&f, 2, 7), 4);
    CHECK_EQ(op_forwards_find(&f, 2, 8), OP_NO_FORWARD);
    CHECK_EQ(op_forwards_find(&f, 2, 9), OP_NO_FORWARD); /* a backward op is nobody's forward */
    CHECK_EQ(op_forwards_find(&f, 1, -1), OP_NO_FORWARD);
    op_forwards_close(&f);
    op_result_free(r);
}

static void what_is_taken_is_gone(void) {
    op_forwards f;
    CHECK_OK(op_forwards_open(&f, 2));
    CHECK_EQ(op_forwards_take(&f, 1, 7), OP_NO_FORWARD);
    uint32_t *place = op_forwards_add(&f, 1, 7);
    CHECK_EQ(*place, 0);
    *place = 5 + 1;
    CHECK_EQ(*op_forwards_add(&f, 1, 7), 5 + 1);
    CHECK_EQ(op_forwards_take(&f, 1, 7), 5);
    CHECK_EQ(op_forwards_take(&f, 1, 7), OP_NO_FORWARD);
    CHECK_EQ(op_forwards_find(&f, 1, 7), OP_NO_FORWARD);
    CHECK_EQ(*op_forwards_add(&f, 1, 7), 0); /* the number may be reused */
    op_forwards_close(&f);
}

/* All have one thread, and their slots collide. */
static void as_many_fit_as_were_asked_for(void) {
    const uint32_t n = 10000;
    op_forwards f;
    CHECK_OK(op_forwards_open(&f, n));
    for (uint32_t i = 0; i < n; i++)
        *op_forwards_add(&f, 1, i) = i + 1;
    for (uint32_t i = 0; i < n; i++)
        CHECK_EQ(op_forwards_find(&f, 1, i), i);
    CHECK_EQ(op_forwards_find(&f, 1, n), OP_NO_FORWARD);
    CHECK_EQ(op_forwards_find(&f, 2, 0), OP_NO_FORWARD);
    op_forwards_close(&f);
}

int main(void) {
    RUN(the_first_is_kept);
    RUN(what_is_taken_is_gone);
    RUN(as_many_fit_as_were_asked_for);
    return 0;
}
