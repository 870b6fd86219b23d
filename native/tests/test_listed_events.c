#include "core/fault.h"
#include "fixture.h"

/* ---- a list: the events of a training step, unordered --------------------------------------- */

enum { LINEAR, ADDMM, LAUNCH, GEMM, MANGLED, STEP, MEMORY, CALL, SHAPES, TEXTS };
static const char *const texts[TEXTS] = {"aten::linear", "aten::addmm", "cudaLaunchKernel",
                                         "void gemm()",  "_Z4gemmv",    "ProfilerStep#3",
                                         "[memory]",     "m.py(3): f",  "[[2,3],[]]"};
static const uint32_t groups[TEXTS] = {[MANGLED] = GEMM + 1};
static const op_thread_info threads[2] = {
    {.index = 0, .os_tid = 7, .torch_thread = 1, .device_index = -1},
    {.index = 1, .device_type = 1, .resource = 7},
};

#define EVENT(is, text, from, to, ...)                                                                 \
    {.kind = (is),                                                                                     \
     .name = (text) + 1,                                                                               \
     .start_ns = (from),                                                                               \
     .end_ns = (to),                                                                                   \
     .sequence_nr = -1,                                                                                \
     __VA_ARGS__}

static const op_listed_event listed[] = {
    EVENT(OP_KERNEL, MANGLED, 200, 300, .thread = 1, .link = 2),
    EVENT(OP_MEMORY, MEMORY, 30, 30, .link = -1, .bytes = 64),
    EVENT(OP_TORCH, ADDMM, 20, 80, .link = 2, .flops = 12, .shapes = SHAPES + 1),
    EVENT(OP_TORCH, LINEAR, 10, 90, .link = 1, .shapes = SHAPES + 1),
    EVENT(OP_RUNTIME, LAUNCH, 40, 50, .link = -1),
    EVENT(OP_PYTHON_CALL, CALL, 5, 95, .link = -1),
    EVENT(OP_RANGE, STEP, 0, 100, .link = 9, .scope = OP_SCOPE_USER),
    EVENT(OP_TORCH, ADDMM, 120, 130, .link = 3, .flags = OP_FLAG_UNFINISHED),
};
enum { EVENTS = sizeof listed / sizeof *listed };

static int read_list(uint64_t count, uint32_t *order, op_result **out) {
    uint32_t lengths[TEXTS];
    for (int i = 0; i < TEXTS; i++)
        lengths[i] = (uint32_t)strlen(texts[i]);
    const op_event_list list = {.events = listed,
                                .count = count,
                                .texts = texts,
                                .text_lengths = lengths,
                                .text_groups = groups,
                                .text_count = TEXTS,
                                .threads = threads,
                                .thread_count = 2,
                                .window_ns = 5000};
    return op_events_read(&list, order, out);
}

/* ---- the tests ---------------------------------------------------------------------------- */

static void events_stand_where_their_times_put_them(void) {
    /* By row, the index of the event; parents are rows. */
    static const uint32_t event_at[EVENTS] = {6, 5, 3, 2, 1, 4, 7, 0};
    static const int32_t parents[EVENTS] = {-1, 0, 1, 2, 3, 3, -1, -1};
    uint32_t order[EVENTS];
    op_result *r;
    op_columns c;
    CHECK_OK(read_list(EVENTS, order, &r));
    op_result_columns(r, &c);
    CHECK_EQ(c.count, EVENTS);
    for (int row = 0; row < EVENTS; row++) {
        CHECK_EQ(order[row], event_at[row]);
        CHECK_EQ(c.parent[row], parents[row]);
    }
    CHECK_EQ(c.self_ns[2], 20);     /* linear minus addmm */
    CHECK_EQ(c.launcher[7], 3);     /* by addmm's number */
    CHECK_EQ(c.duration_ns[6], -1); /* unfinished, although it ends before the kernel */
    CHECK_EQ(op_result_trace_start(r), 5000);
    CHECK_EQ(op_result_trace_duration(r), 300);
    op_result_free(r);
}

static const op_group *group_of(const op_group *rows, uint64_t count, const char *name) {
    for (uint64_t i = 0; i < count; i++) {
        uint32_t length;
        const char *text = op_names_text(rows[i].name, &length);
        if (strlen(name) == length && memcmp(text, name, length) == 0)
            return &rows[i];
    }
    CHECK(false && "a row of this name");
    return NULL;
}

static void rows_have_what_was_told(void) {
    uint32_t order[EVENTS];
    op_result *r;
    const op_group *rows;
    const int64_t *samples;
    uint64_t count;
    CHECK_OK(read_list(EVENTS, order, &r));
    CHECK_OK(op_result_groups(r, OP_GROUP_BY_NAME, 0, &rows, &count, &samples));
    const op_group *linear = group_of(rows, count, "aten::linear");
    CHECK_EQ(linear->flops, 12);
    CHECK_EQ(linear->counted_flops, 0);
    CHECK_EQ(linear->cpu_memory, 64);
    CHECK_EQ(linear->self_cpu_memory, 0);
    CHECK_EQ(linear->device_total_ns, 100);
    CHECK_EQ(group_of(rows, count, "aten::addmm")->counted_flops, 12);
    CHECK_EQ(group_of(rows, count, "aten::addmm")->count, 2);
    CHECK_EQ(group_of(rows, count, "void gemm()")->self_device_ns, 100); /* demangled */
    CHECK_EQ(group_of(rows, count, "ProfilerStep*")->count, 1);
    CHECK_EQ(group_of(rows, count, "m.py: f")->count, 1);
    CHECK_OK(op_result_groups(r, OP_GROUP_BY_SHAPES, 0, &rows, &count, &samples));
    CHECK_EQ(count, 7); /* addmm with and without shapes are separate; memory is in its op */
    uint32_t steps;
    CHECK_EQ(op_result_steps(r, &steps)->number, 3);
    CHECK_EQ(steps, 1);
    op_result_free(r);
}

static void nothing_is_a_result_too(void) {
    op_result *r;
    op_columns c;
    CHECK_OK(read_list(0, NULL, &r));
    op_result_columns(r, &c);
    CHECK_EQ(c.count, 0);
    op_result_free(r);
}

static void names_go_with_their_last_result(void) {
    uint32_t order[EVENTS], before = op_names_count();
    for (int i = 0; i < 3; i++) {
        op_result *r;
        CHECK_OK(read_list(EVENTS, order, &r));
        op_result_free(r);
    }
    CHECK_EQ(op_names_count(), before);
}

#ifdef OP_FAULTS
static void every_allocation_may_fail(void) {
    uint32_t order[EVENTS];
    unsigned n = 0;
    for (bool fired = true; fired;) {
        op_result *r;
        op_fault_arm(OP_FAULT_MEMORY, ++n);
        int rc = read_list(EVENTS, order, &r);
        fired = op_fault_fired() > 0;
        op_fault_arm(OP_FAULT_MEMORY, 0);
        CHECK(rc == OP_OK || (fired && rc == OP_ENOMEM));
        CHECK((rc == OP_OK) == (r != NULL));
        op_result_free(r);
    }
    CHECK(n > 10);
}
#endif

int main(void) {
    RUN(events_stand_where_their_times_put_them);
    RUN(rows_have_what_was_told);
    RUN(nothing_is_a_result_too);
    RUN(names_go_with_their_last_result);
#ifdef OP_FAULTS
    RUN(every_allocation_may_fail);
#endif
    return 0;
}
