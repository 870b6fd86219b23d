/* Device memory by CUPTI: its events, its sizes, and what was not recorded. */
#include "cuda/cupti_abi.h"
#include "device.h"

static op_memory change_of(const op_result *r, int64_t row) {
    op_memory m;
    CHECK_EQ(op_result_memory(r, (uint64_t)row, &m), 1);
    return m;
}

static void take(uint64_t address, uint64_t bytes) {
    fake_activity a = {.kind = FAKE_MALLOC, .address = address, .bytes = bytes};
    fake_run(&a);
}

/* As CUPTI reports it; 0 bytes: unknown. */
static void give_back(uint64_t address, uint64_t bytes) {
    fake_activity a = {.kind = FAKE_FREE, .address = address, .bytes = bytes};
    fake_run(&a);
}

static void memory_belongs_to_the_op_around_its_call(void) {
    folder f = start_device();
    start_window();
    op_slot outer = begin("outer"), inner = begin("inner");
    take(0x1000, 4096);
    op_end(&inner);
    give_back(0x1000, 4096);
    op_end(&outer);
    op_result *r = stop_window();
    op_columns c = columns_of(r);
    check_sound(r);
    int64_t taken = nth_of(r, OP_MEMORY, 0), given = nth_of(r, OP_MEMORY, 1);
    CHECK_TEXT(name_of(r, taken), "[memory]");
    CHECK_EQ(c.parent[taken], the(r, "inner"));
    CHECK_EQ(c.parent[given], the(r, "outer"));
    CHECK(c.start_ns[taken] >= c.start_ns[the(r, "cudaMalloc")]);
    CHECK(c.start_ns[taken] <= c.start_ns[the(r, "cudaMalloc")] + c.duration_ns[the(r, "cudaMalloc")]);
    CHECK_EQ(change_of(r, taken).bytes, 4096);
    CHECK_EQ(change_of(r, given).bytes, -4096);
    CHECK_EQ(change_of(r, taken).device_type, 1);
    CHECK_EQ(change_of(r, taken).device_index, 0);
    CHECK_EQ(change_of(r, taken).total_allocated, 4096);
    CHECK_EQ(change_of(r, given).total_allocated, 0);
    op_memory_columns m;
    CHECK_OK(op_result_memory_columns(r, &m));
    CHECK_EQ(m.self_device[the(r, "inner")], 4096);
    CHECK_EQ(m.device[the(r, "outer")], 0);
    CHECK_EQ(m.self_device[the(r, "outer")], -4096);
    CHECK_EQ(m.cpu[the(r, "outer")], 0);
    op_result_free(r);
    close_session(&f);
}

/* A pool's release may come without a size, and a block from before the window has none. */
static void what_is_given_back_has_the_size_that_was_taken(void) {
    folder f = start_device();
    take(0x9000, 512);
    start_window();
    take(0x1000, 1024);
    give_back(0x1000, 0);
    take(0x1000, 2048);
    give_back(0x9000, 512);
    op_result *r = stop_window();
    static const int64_t expected[] = {1024, -1024, 2048, 0};
    CHECK_EQ(count_kind(r, OP_MEMORY), 4);
    for (uint64_t i = 0; i < 4; i++)
        CHECK_EQ(change_of(r, nth_of(r, OP_MEMORY, i)).bytes, expected[i]);
    const op_memory_use *use;
    CHECK_OK(op_result_memory_use(r, 1, &use));
    CHECK_EQ(use->allocated, 3072);
    CHECK_EQ(use->freed, 1024);
    CHECK_EQ(use->peak, 2048);
    CHECK_EQ(use->allocations, 2);
    op_result_free(r);
    close_session(&f);
}

static void totals_are_those_of_a_device(void) {
    folder f = start_device();
    start_window();
    for (uint32_t device = 0; device < 2; device++) {
        fake_activity a = {
            .kind = FAKE_MALLOC, .device = device, .address = 0x1000 * (device + 1), .bytes = 100};
        fake_run(&a);
    }
    take(0x8000, 11);
    op_result *r = stop_window();
    static const int64_t expected[] = {100, 100, 111};
    for (uint64_t i = 0; i < 3; i++)
        CHECK_EQ(change_of(r, nth_of(r, OP_MEMORY, i)).total_allocated, expected[i]);
    op_result_free(r);
    close_session(&f);
}

static void only_what_was_asked_for_is_recorded(void) {
    folder f = start_device();
    op_cuda_record(OP_CUDA_WORK);
    start_window();
    CHECK(!fake_is_enabled(49));
    take(0x1000, 100);
    op_result *r = stop_window();
    CHECK_EQ(op_cuda_parts(), OP_CUDA_WORK);
    CHECK_EQ(count_kind(r, OP_MEMORY), 0);
    op_result_free(r);
    op_cuda_record(OP_CUDA_WORK | OP_CUDA_MEMORY);
    start_window();
    CHECK(fake_is_enabled(49));
    op_result_free(stop_window());
    CHECK(!fake_is_enabled(49));
    close_session(&f);
}

static void memory_that_is_refused_is_said_and_the_rest_recorded(void) {
    folder f = start_device();
    fake_fail("cuptiActivityEnable", OP_CUPTI_NOT_SUPPORTED, 10); /* after the other kinds */
    CHECK_OK(op_window_start());
    CHECK_EQ(op_cuda_parts(), OP_CUDA_WORK);
    CHECK(strstr(op_cuda_problem(), "cannot record device memory"));
    fake_launch("kernel", 7, 100);
    op_result *r = stop_window();
    CHECK_EQ(stats_of(r).cuda, OP_CUDA_RECORDED);
    CHECK_EQ(count_kind(r, OP_KERNEL), 1);
    op_result_free(r);
    close_session(&f);
}

/* Only the call shows its event. */
static void memory_without_its_call_is_counted_as_lost(void) {
    folder f = start_device();
    start_window();
    fake_activity a = {.kind = FAKE_MALLOC, .api = FAKE_NO_CALL, .address = 0x1000, .bytes = 100};
    fake_run(&a);
    op_result *r = stop_window();
    CHECK_EQ(count_kind(r, OP_MEMORY), 0);
    CHECK_EQ(stats_of(r).device_dropped, 1);
    op_result_free(r);
    close_session(&f);
}

static void what_a_pause_holds_is_no_part_of_it(void) {
    folder f = start_device();
    start_window();
    op_window_pause();
    take(0x1000, 100);
    op_window_resume();
    take(0x2000, 200);
    op_result *r = stop_window();
    CHECK_EQ(count_kind(r, OP_MEMORY), 1);
    CHECK_EQ(change_of(r, nth_of(r, OP_MEMORY, 0)).bytes, 200);
    CHECK_EQ(stats_of(r).device_dropped, 0);
    op_result_free(r);
    close_session(&f);
}

static void *take_raw(size_t bytes) {
    void *volatile taken = malloc(bytes);
    return taken;
}

/* CUPTI and the demangler allocate while their records are collected. */
static void a_peek_is_no_memory_of_the_program(void) {
    folder f = start_device();
    fake_worker(0); /* its own memory counts too */
    start_window();
    fake_launch("_Z4gemmPfi", 7, 1000);
    op_result *r;
    CHECK_OK(op_malloc_watch(take_raw, free));
    CHECK_OK(op_window_peek(&r));
    op_result_free(r);
    op_malloc_unwatch();
    r = stop_window();
    the(r, "gemm(float*, int)");
    CHECK_EQ(count_kind(r, OP_MEMORY), 0);
    op_result_free(r);
    close_session(&f);
}

int main(void) {
    RUN(memory_belongs_to_the_op_around_its_call);
    RUN(what_is_given_back_has_the_size_that_was_taken);
    RUN(totals_are_those_of_a_device);
    RUN(only_what_was_asked_for_is_recorded);
    RUN(memory_that_is_refused_is_said_and_the_rest_recorded);
    RUN(memory_without_its_call_is_counted_as_lost);
    RUN(what_a_pause_holds_is_no_part_of_it);
    RUN(a_peek_is_no_memory_of_the_program);
    fake_reset();
    return 0;
}
