#include "core/fault.h"
#include "made.h"
#include "result/collectives.h"
#include "result/stretches.h"

static made m;

static const char all_reduce[] = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage)";

/* An op launches, waits and launches again: a kernel with a concurrent collective, a copy, a kernel. A
 * second device has a kernel without a launch. */
static op_result *build_work(void) {
    memset(&m, 0, sizeof m);
    add_kind(&m.threads[0], "aten::a", 0, 0, 400, OP_TORCH); /* row 0 */
    add_kind(&m.threads[0], "cudaLaunchKernel", 1, 10, 20, OP_RUNTIME);
    add_kind(&m.threads[0], "cudaStreamSynchronize", 1, 220, 300, OP_RUNTIME);
    add_kind(&m.threads[0], "cuStreamSynchronize", 2, 230, 300, OP_DRIVER); /* part of the same wait */
    add_kind(&m.threads[0], "cudaLaunchKernel", 0, 480, 500, OP_RUNTIME);   /* row 4 */
    add_kind(&m.threads[1], "gemm", 0, 50, 150, OP_KERNEL);                 /* row 5 */
    add_kind(&m.threads[1], "gemm", 0, 510, 600, OP_KERNEL);
    add_kind(&m.threads[2], all_reduce, 0, 100, 180, OP_KERNEL); /* row 7 */
    add_kind(&m.threads[2], "Memcpy DtoH", 0, 170, 200, OP_MEMCPY);
    add_kind(&m.threads[3], "gemm", 0, 100, 300, OP_KERNEL); /* row 9 */
    op_result *r = build(&m);
    int32_t *launcher = (int32_t *)r->columns.launcher;
    launcher[5] = launcher[7] = launcher[8] = 1;
    launcher[6] = 4;
    for (uint32_t stream = 1; stream < 4; stream++) {
        r->threads[stream].device_type = 1;
        r->threads[stream].device_index = stream == 3;
    }
    return r;
}

static const op_device_span *spans_of(op_result *r, const int64_t *bounds, uint64_t windows) {
    const op_device_span *spans;
    uint64_t count;
    CHECK_OK(op_result_device_spans(r, bounds, windows, &spans, &count));
    CHECK(count == 2 * windows);
    return spans;
}

static int64_t parts(const op_device_span *s) {
    return s->compute_ns + s->exposed_communication_ns + s->copy_ns + s->launch_bound_ns + s->host_ns +
           s->synchronize_ns + s->queued_ns + s->unknown_ns;
}

static void each_part_of_a_window_has_a_cause(void) {
    op_result *r = build_work();
    const op_device_span *s = spans_of(r, (const int64_t[]){0, 700}, 1);
    CHECK(s->device == 0 && s->span_ns == 700 && parts(s) == 700);
    CHECK(s->compute_ns == 190 && s->communication_ns == 80 && s->overlap_ns == 50);
    CHECK(s->exposed_communication_ns == 30 && s->copy_ns == 20);
    CHECK(s->launch_bound_ns == 20 + 140); /* until the launch; and 200 to 500 minus the rest */
    CHECK(s->synchronize_ns == 80 && s->host_ns == 80);
    CHECK(s->queued_ns == 30 + 10 && s->unknown_ns == 100);
    CHECK(s[1].device == 1 && s[1].compute_ns == 200 && s[1].unknown_ns == 500);
    op_result_free(r);
}

static void windows_add_up_to_the_whole(void) {
    op_result *r = build_work();
    const op_device_span *s = spans_of(r, (const int64_t[]){240, 700, 0, 240, 700, 100}, 3);
    CHECK(parts(&s[0]) == 460 && parts(&s[1]) == 240 && parts(&s[2]) == 0);
    CHECK(s[0].synchronize_ns == 60 && s[1].synchronize_ns == 20);
    CHECK(s[0].compute_ns == 90 && s[1].compute_ns == 100);
    op_result_free(r);
}

static void work_without_length_keeps_a_device_idle(void) {
    memset(&m, 0, sizeof m);
    add_kind(&m.threads[0], "gemm", 0, 50, 50, OP_KERNEL);
    op_result *r = build(&m);
    const op_device_span *spans;
    uint64_t count;
    CHECK_OK(op_result_device_spans(r, (const int64_t[]){0, 100}, 1, &spans, &count));
    CHECK(count == 1 && spans->unknown_ns == 100);
    op_result_free(r);
}

static void collectives_are_told_by_their_names(void) {
    op_result *r = build_work();
    const uint32_t *rows;
    uint64_t count;
    CHECK_OK(op_result_collectives(r, &rows, &count));
    CHECK(count == 1 && rows[0] == 7);
    op_result_free(r);
}

#ifdef OP_FAULTS
static void every_allocation_may_fail(void) {
    op_result *r = build_work();
    const op_device_span *spans;
    const uint32_t *rows;
    uint64_t count;
    unsigned n = 0;
    for (bool fired = true; fired;) {
        op_fault_arm(OP_FAULT_MEMORY, ++n);
        int rc = op_result_device_spans(r, (const int64_t[]){0, 700}, 1, &spans, &count);
        rc = rc == OP_OK ? op_result_collectives(r, &rows, &count) : rc;
        fired = op_fault_fired() > 0;
        op_fault_arm(OP_FAULT_MEMORY, 0);
        CHECK(rc == (fired ? OP_ENOMEM : OP_OK));
    }
    CHECK(n > 12);
    op_result_free(r);
}
#endif

static void stretches_grow_and_join(void) {
    op_stretches s = {0};
    for (int64_t i = 0; i < 1000; i++)
        CHECK(op_stretches_add(&s, 10 * i, 10 * i + 4) && op_stretches_add(&s, 10 * i + 3, 10 * i + 5));
    CHECK(s.count == 1000);
    CHECK(op_stretches_within(&s, 0, 10000) == 5000);
    CHECK(op_stretches_within(&s, 9998, 20000) == 0);
    CHECK(op_stretches_within(&s, 2, 13) == 6);
    CHECK(op_stretches_within(&s, 13, 2) == 0);
    op_stretches_free(&s);
}

int main(void) {
    RUN(each_part_of_a_window_has_a_cause);
    RUN(windows_add_up_to_the_whole);
    RUN(work_without_length_keeps_a_device_idle);
    RUN(collectives_are_told_by_their_names);
    RUN(stretches_grow_and_join);
#ifdef OP_FAULTS
    RUN(every_allocation_may_fail);
#endif
    return 0;
}
