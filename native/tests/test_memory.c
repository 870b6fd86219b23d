#include "core/record.h"
#include "made.h"
#include "result/group.h"

static made m;

static void start_over(void) { memset(&m, 0, sizeof m); }

enum { HOST = 0, CUDA = 1 };

static void add_change(made_thread *t, uint16_t depth, uint64_t at, const op_memory_change *change) {
    op_event *e = add_event(t, change->address ? "[memory]" : "[OutOfMemory]", depth, at, at);
    uint32_t words[1 + OP_ARGS_MEMORY_WORDS] = {OP_ARGS_HEADER(OP_ARGS_MEMORY, OP_ARGS_MEMORY_WORDS)};
    memcpy(words + 1, change, sizeof *change);
    e->kind = OP_MEMORY;
    e->end = e->start;
    add_block(t, e, words, 1 + OP_ARGS_MEMORY_WORDS);
}

static void add_memory_of(made_thread *t, uint16_t depth, uint64_t at, uint64_t address, int64_t bytes,
                          int32_t device_type) {
    add_change(t, depth, at,
               &(op_memory_change){.address = address,
                                   .bytes = bytes,
                                   .total_allocated = -1,
                                   .total_reserved = -1,
                                   .device_type = device_type,
                                   .device_index = device_type == HOST ? -1 : 0});
}

static void add_memory(made_thread *t, uint16_t depth, uint64_t at, uint64_t address, int64_t bytes) {
    add_memory_of(t, depth, at, address, bytes, HOST);
}

static op_memory_columns memory_of(op_result *r) {
    op_memory_columns c;
    CHECK_OK(op_result_memory_columns(r, &c));
    return c;
}

static const op_memory_use *use_of(op_result *r, int on_device) {
    const op_memory_use *rows;
    CHECK_OK(op_result_memory_use(r, on_device, &rows));
    return rows;
}

static void a_block_is_read_as_written(void) {
    start_over();
    made_thread *t = &m.threads[0];
    add_event(t, "empty", 0, 100, 200);
    add_memory_of(t, 1, 150, 0x7fff00001000, 64, CUDA);
    op_result *r = build(&m);
    op_memory memory;
    CHECK_EQ(op_result_memory(r, 0, &memory), 0);
    CHECK_EQ(op_result_memory(r, 2, &memory), 0);
    CHECK_EQ(op_result_memory(r, 1, &memory), 1);
    CHECK_EQ(memory.address, 0x7fff00001000);
    CHECK_EQ(memory.bytes, 64);
    CHECK_EQ(memory.total_reserved, -1);
    CHECK_EQ(memory.device_type, CUDA);
    CHECK_EQ(memory.device_index, 0);
    op_result_free(r);
}

/* Half-open: an allocation at an op's begin belongs to the op, one at its end does not. */
static void the_innermost_event_is_credited(void) {
    start_over();
    made_thread *t = &m.threads[0];
    add_event(t, "linear", 0, 100, 500);
    add_event(t, "addmm", 1, 200, 300);
    add_memory(t, 2, 200, 1, 1000);
    add_memory(t, 1, 300, 2, 10);
    add_memory_of(t, 1, 310, 3, 7, CUDA);
    add_memory(t, 0, 500, 1, -1000);
    add_memory(t, 0, 510, 99, -1); /* allocated before the window */
    op_result *r = build(&m);
    op_memory_columns c = memory_of(r);
    CHECK_EQ(c.cpu[0], 1010);
    CHECK_EQ(c.self_cpu[0], 10);
    CHECK_EQ(c.device[0], 7);
    CHECK_EQ(c.self_device[0], 7);
    CHECK_EQ(c.cpu[1], 1000);
    CHECK_EQ(c.self_cpu[1], 1000);
    CHECK_EQ(c.cpu[5], -1000);
    CHECK_EQ(c.self_cpu[5], -1000);
    CHECK_EQ(r->columns.flags[2], OP_FLAG_CREDITED);
    CHECK_EQ(r->columns.flags[5], 0);
    CHECK_EQ(c.cpu[6], 0);
    CHECK_EQ(r->columns.flags[6], OP_FLAG_CREDITED);
    op_result_free(r);
}

/* Torch's device allocator knows the size of a block from before the window. */
static void a_device_has_the_bytes_of_an_earlier_block_back(void) {
    start_over();
    made_thread *t = &m.threads[0];
    op_memory_change freed = {.address = 99, .bytes = -4096, .device_type = CUDA};
    add_event(t, "zero_grad", 0, 100, 200);
    add_change(t, 1, 150, &freed);
    add_change(t, 0, 300, &freed);
    freed.bytes = OP_BYTES_UNKNOWN;
    add_change(t, 0, 400, &freed);
    op_result *r = build(&m);
    op_memory_columns c = memory_of(r);
    CHECK_EQ(c.self_device[0], -4096);
    CHECK_EQ(c.device[2], -4096);
    CHECK_EQ(r->columns.flags[2], 0);
    CHECK_EQ(c.device[3], 0);
    CHECK_EQ(r->columns.flags[3], OP_FLAG_CREDITED);
    op_result_free(r);
}

static void other_threads_are_not_credited(void) {
    start_over();
    add_event(&m.threads[0], "mm", 0, 100, 500);
    add_memory(&m.threads[1], 0, 200, 1, 64);
    op_result *r = build(&m);
    CHECK_EQ(memory_of(r).cpu[0], 0);
    CHECK_EQ(memory_of(r).cpu[1], 64);
    op_result_free(r);
}

static void an_async_event_owns_no_memory(void) {
    start_over();
    made_thread *t = &m.threads[0];
    add_event(t, "outer", 0, 100, 500);
    add_event(t, "async", 1, 200, 300)->flags = OP_FLAG_ASYNC;
    add_memory(t, 2, 250, 1, 64);
    op_result *r = build(&m);
    CHECK_EQ(memory_of(r).cpu[1], 0);
    CHECK_EQ(memory_of(r).self_cpu[0], 64);
    op_result_free(r);
}

static void groups_sum_memory_and_leave_its_events_out(void) {
    start_over();
    made_thread *t = &m.threads[0];
    add_step(&m, 0, 50, 450, 0);
    add_step(&m, 1, 450, 900, 0);
    add_event(t, "empty", 0, 100, 200);
    add_memory(t, 1, 150, 1, 64);
    add_event(t, "empty", 0, 500, 600);
    add_memory(t, 1, 550, 2, 32);
    add_memory(t, 0, 700, 1, -64);
    add_memory(t, 0, 710, 0, 1 << 30);
    op_result *r = build(&m);
    const op_group *rows;
    const int64_t *samples;
    uint64_t count;
    CHECK_OK(op_result_groups(r, OP_GROUP_BY_NAME, 0, &rows, &count, &samples));
    CHECK_EQ(count, 3);
    CHECK_EQ(rows[0].count, 2);
    CHECK_EQ(rows[0].cpu_memory, 96);
    CHECK_EQ(rows[0].self_cpu_memory, 96);
    CHECK_EQ(rows[0].device_memory, 0);
    CHECK_EQ(rows[1].cpu_memory, -64);
    CHECK_EQ(rows[2].count, 1); /* a failed allocation */
    CHECK_EQ(rows[2].cpu_memory, 0);
    const int64_t *memory = samples + 5 * count * 2;
    CHECK_EQ(memory[0], 64);
    CHECK_EQ(memory[1], 32);
    CHECK_EQ(memory[3], -64);
    op_result_free(r);
}

static void steps_know_their_peak(void) {
    start_over();
    add_step(&m, 0, 50, 450, 0);
    add_step(&m, 1, 450, 900, 0);
    made_thread *t = &m.threads[0], *u = &m.threads[1];
    add_memory(t, 0, 100, 1, 100);
    add_memory(t, 0, 300, 1, -100);
    add_memory(t, 0, 400, 2, 50);
    add_memory(t, 0, 500, 2, -50);
    add_memory(t, 0, 600, 3, 30);
    add_memory_of(t, 0, 610, 9, 5, CUDA);
    add_memory(u, 0, 200, 4, 40); /* between the first two of the other thread */
    op_result *r = build(&m);
    const op_memory_use *use = use_of(r, 0);
    CHECK_EQ(use[0].allocated, 190);
    CHECK_EQ(use[0].freed, 100);
    CHECK_EQ(use[0].peak, 140);
    CHECK_EQ(use[0].allocations, 3);
    CHECK_EQ(use[1].allocated, 30);
    CHECK_EQ(use[1].freed, 0); /* an earlier step's allocations are not part of it */
    CHECK_EQ(use[1].peak, 30);
    CHECK_EQ(use[2].allocated, 220);
    CHECK_EQ(use[2].freed, 150);
    CHECK_EQ(use[2].peak, 140);
    CHECK_EQ(use_of(r, 1)[1].peak, 5);
    op_result_free(r);
}

static void a_thread_from_before_the_step_gives_back(void) {
    static uint32_t tids[] = {71, 72};
    start_over();
    add_step(&m, 0, 50, 450, 71);
    m.steps[0].tids = tids;
    m.steps[0].tid_count = 2;
    made_thread *t = &m.threads[0], *older = &m.threads[1];
    t->os_tid = tids[0];
    older->os_tid = tids[1];
    add_event(t, "ones", 0, 100, 400);
    add_memory(t, 1, 110, 1, 100);
    add_memory(older, 0, 200, 1, -100);
    add_memory(t, 1, 300, 2, 60);
    add_memory(t, 1, 310, 3, 7);
    add_memory(older, 0, 500, 3, -7); /* after the step */
    op_result *r = build(&m);
    const op_memory_use *use = use_of(r, 0);
    CHECK_EQ(use[0].allocated, 167);
    CHECK_EQ(use[0].freed, 100);
    CHECK_EQ(use[0].peak, 100);
    CHECK_EQ(r->work[row_of(r, "ones")].retained, 67);
    op_result_free(r);
}

/* Of an op and those around it: what the step frees is not left, wherever that happens. */
static void what_a_step_leaves_is_its_ops(void) {
    start_over();
    add_step(&m, 0, 50, 450, 0);
    add_step(&m, 1, 450, 900, 0);
    made_thread *t = &m.threads[0];
    add_event(t, "linear", 0, 100, 300);
    add_event(t, "addmm", 1, 110, 200);
    add_memory(t, 2, 120, 1, 100);
    add_memory(t, 2, 130, 2, 7);
    add_memory_of(t, 1, 210, 3, 30, CUDA);
    add_memory(t, 0, 400, 2, -7);
    add_memory(t, 0, 500, 1, -100); /* the next step retains less, and nothing of its own */
    add_event(t, "empty", 0, 600, 700);
    add_memory(t, 1, 610, 1, 50);
    add_memory(t, 1, 620, 1, -50);
    op_result *r = build(&m);
    const op_group *rows;
    const int64_t *samples;
    uint64_t count;
    CHECK_OK(op_result_groups(r, OP_GROUP_BY_NAME, 0, &rows, &count, &samples));
    CHECK_EQ(rows[0].retained, 130);
    CHECK_EQ(rows[1].retained, 100);
    const int64_t *retained = samples + OP_STEP_retained * count * 2;
    CHECK_EQ(retained[0], 130);
    CHECK_EQ(retained[1], 0);
    for (uint64_t row = 0; row < r->columns.count; row++)
        if (r->columns.step[row] == 1)
            CHECK_EQ(r->work[row].retained, 0);
    op_result_free(r);
}

/* As `linear` of a nested tensor, which runs `linear` on a plain one. */
static void what_an_op_leaves_in_one_of_its_name_counts_once(void) {
    start_over();
    add_step(&m, 0, 50, 450, 0);
    made_thread *t = &m.threads[0];
    add_event(t, "linear", 0, 100, 400);
    add_event(t, "PythonSubclass", 1, 110, 300);
    add_event(t, "linear", 2, 120, 200);
    add_memory(t, 3, 130, 1, 100);
    op_result *r = build(&m);
    const op_group *rows;
    const int64_t *samples;
    uint64_t count;
    CHECK_OK(op_result_groups(r, OP_GROUP_BY_NAME, 0, &rows, &count, &samples));
    CHECK_EQ(rows[0].name, name_id("linear"));
    CHECK_EQ(rows[0].retained, 100);
    CHECK_EQ(rows[1].retained, 100);
    op_result_free(r);
}

/* free() only has an address: the size is that of the last allocation there, on any thread. */
static void frees_find_their_bytes(void) {
    start_over();
    made_thread *t = &m.threads[0], *u = &m.threads[1];
    add_memory(t, 0, 100, 0x10, 8);
    add_memory(u, 0, 200, 0x10, OP_BYTES_UNKNOWN);
    add_memory(t, 0, 300, 0x10, 24);
    add_memory(t, 0, 400, 0x10, OP_BYTES_UNKNOWN);
    add_memory(t, 0, 500, 0x20, OP_BYTES_UNKNOWN); /* from before the window */
    op_result *r = build(&m);
    op_memory_columns c = memory_of(r);
    CHECK_EQ(c.cpu[2], -24);
    CHECK_EQ(c.cpu[3], 0);
    CHECK_EQ(c.cpu[4], -8);
    op_result_free(r);
}

static void a_recorded_change_is_an_instant(void) {
    const op_config config = {0};
    CHECK_OK(op_session_open(&config));
    CHECK_OK(op_window_start());
    op_slot slot = op_begin(name_id("empty"), OP_TORCH, 0, OP_NO_SEQUENCE, NULL, 0);
    const op_memory_change change = {.address = 1, .bytes = 512, .device_index = -1};
    op_memory_changed(name_id("[memory]"), &change);
    op_end(&slot);
    op_result *r;
    CHECK_OK(op_window_stop(&r));
    CHECK_EQ(r->columns.count, 2);
    CHECK_EQ(r->columns.duration_ns[1], 0);
    CHECK_EQ(r->columns.parent[1], 0);
    CHECK_EQ(memory_of(r).self_cpu[0], 512);
    op_result_free(r);
    op_memory_changed(name_id("[memory]"), &change); /* no window: nothing to do */
    op_session_close();
}

int main(void) {
    RUN(a_recorded_change_is_an_instant);
    RUN(a_block_is_read_as_written);
    RUN(the_innermost_event_is_credited);
    RUN(a_device_has_the_bytes_of_an_earlier_block_back);
    RUN(other_threads_are_not_credited);
    RUN(an_async_event_owns_no_memory);
    RUN(groups_sum_memory_and_leave_its_events_out);
    RUN(steps_know_their_peak);
    RUN(a_thread_from_before_the_step_gives_back);
    RUN(what_a_step_leaves_is_its_ops);
    RUN(what_an_op_leaves_in_one_of_its_name_counts_once);
    RUN(frees_find_their_bytes);
    return 0;
}
