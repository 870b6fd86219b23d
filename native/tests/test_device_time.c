#include "made.h"
#include "result/device_time.h"

static made m;

/* forward { linear { addmm { cudaLaunchKernel }  cudaMemcpyAsync }  python { cuLaunchKernel } } and the
 * work of the three calls, with a range around it and a wait on the same stream. */
static op_result *build_launches(void) {
    memset(&m, 0, sizeof m);
    made_thread *host = &m.threads[0], *device = &m.threads[1];
    add_kind(host, "forward", 0, 0, 1000, OP_RANGE)->flags = OP_SCOPE_USER; /* row 0 */
    add_kind(host, "linear", 1, 100, 400, OP_TORCH);
    add_kind(host, "addmm", 2, 150, 250, OP_TORCH);
    add_kind(host, "cudaLaunchKernel", 3, 200, 210, OP_RUNTIME);
    add_kind(host, "cudaMemcpyAsync", 2, 300, 310, OP_RUNTIME);
    add_kind(host, "call", 0, 500, 600, OP_PYTHON_CALL); /* row 5: its depth is that among calls */
    add_kind(host, "cuLaunchKernel", 1, 520, 530, OP_DRIVER);
    add_kind(host, "cudaLaunchKernel", 0, 1100, 1110, OP_RUNTIME);
    add_kind(device, "gemm", 0, 1000, 1400, OP_KERNEL); /* row 8 */
    add_kind(device, "copy", 0, 1400, 1420, OP_MEMCPY);
    add_kind(device, "triton", 0, 1500, 1503, OP_KERNEL);
    add_kind(device, "gemm", 0, 1600, 1607, OP_KERNEL);
    add_kind(device, "forward", 0, 1000, 1503, OP_DEVICE_RANGE)->flags = OP_SCOPE_USER;
    add_kind(device, "wait", 0, 1700, 1750, OP_SYNC);
    op_result *r = build(&m);
    static const int32_t launchers[] = {3, 4, 6, 7, 0, 7};
    for (uint64_t i = 0; i < 6; i++)
        ((int32_t *)r->columns.launcher)[8 + i] = launchers[i];
    r->threads[1].device_type = 1;
    r->threads[1].device_index = 0;
    return r;
}

static void kernels_are_charged_to_the_op_that_launched_them(void) {
    op_result *r = build_launches();
    op_device_time times;
    CHECK_OK(op_device_time_sum(r, &times));
    static const int64_t selves[] = {3, 20, 400, 0, 0, 0, 0, 7, 400, 20, 3, 7, 503, 50};
    static const int64_t totals[] = {423, 420, 400, 0, 0, 0, 0, 7, 400, 20, 3, 7, 503, 50};
    for (int row = 0; row < 14; row++) {
        CHECK_EQ(times.self_ns[row], selves[row]);
        CHECK_EQ(times.total_ns[row], totals[row]);
    }
    op_device_time_free(&times);
    op_result_free(r);
}

static void without_a_device_nothing_is_kept(void) {
    memset(&m, 0, sizeof m);
    add_event(&m.threads[0], "add", 0, 0, 10);
    op_result *r = build(&m);
    op_device_time times;
    CHECK_OK(op_device_time_sum(r, &times));
    CHECK(times.self_ns == NULL && times.total_ns == NULL);
    op_result_free(r);
}

static const op_group *group_of(const op_group *rows, uint64_t count, const char *name,
                                int32_t device) {
    for (uint64_t i = 0; i < count; i++)
        if (rows[i].name == name_id(name) && rows[i].device_type == device)
            return &rows[i];
    check_that(0, name, __FILE__, __LINE__);
    return NULL;
}

static void rows_of_a_device_are_apart(void) {
    op_result *r = build_launches();
    const op_group *rows;
    uint64_t count;
    const int64_t *samples;
    CHECK_OK(op_result_groups(r, 0, 0, &rows, &count, &samples));
    CHECK_EQ(count, 12);
    const op_group *host = group_of(rows, count, "forward", 0);
    CHECK_EQ(host->total_ns, 1000);
    CHECK_EQ(host->device_total_ns, 423);
    CHECK_EQ(host->self_device_ns, 3);
    const op_group *device = group_of(rows, count, "forward", 1);
    CHECK_EQ(device->total_ns, 0);
    CHECK_EQ(device->self_ns, 0);
    CHECK_EQ(device->self_device_ns, 503);
    CHECK_EQ(device->is_user_annotation, 1);
    const op_group *gemm = group_of(rows, count, "gemm", 1);
    CHECK_EQ(gemm->count, 2);
    CHECK_EQ(gemm->device_total_ns, 407);
    CHECK_EQ(gemm->min_ns, 7);
    CHECK_EQ(group_of(rows, count, "cudaLaunchKernel", 0)->self_device_ns, 7);
    op_result_free(r);
}

static void samples_have_device_time(void) {
    op_result *r = build_launches();
    static op_step step = {.number = 1, .start_ns = 0, .end_ns = 1050};
    free(r->steps);
    r->steps = malloc(sizeof step);
    CHECK(r->steps != NULL);
    *r->steps = step;
    r->step_count = 1;
    for (uint64_t row = 0; row < 13; row++)
        ((int32_t *)r->columns.step)[row] = row == 7 || row == 11 ? -1 : 0;
    const op_group *rows;
    uint64_t count;
    const int64_t *samples;
    CHECK_OK(op_result_groups(r, 0, 0, &rows, &count, &samples));
    uint64_t gemm = (uint64_t)(group_of(rows, count, "gemm", 1) - rows);
    uint64_t linear = (uint64_t)(group_of(rows, count, "linear", 0) - rows);
    CHECK_EQ(samples[gemm], 1);
    CHECK_EQ(samples[count + gemm], 0);
    CHECK_EQ(samples[3 * count + gemm], 400);
    CHECK_EQ(samples[3 * count + linear], 420);
    CHECK_EQ(samples[4 * count + linear], 20);
    op_result_free(r);
}

static void a_call_path_is_on_the_host(void) {
    op_result *r = build_launches();
    const op_path *nodes;
    uint64_t count;
    CHECK_OK(op_result_paths(r, 100, &nodes, &count));
    for (uint64_t i = 0; i < count; i++)
        CHECK(nodes[i].name != name_id("gemm"));
    CHECK_EQ(count, 8);
    op_result_free(r);
}

int main(void) {
    RUN(kernels_are_charged_to_the_op_that_launched_them);
    RUN(without_a_device_nothing_is_kept);
    RUN(rows_of_a_device_are_apart);
    RUN(samples_have_device_time);
    RUN(a_call_path_is_on_the_host);
    return 0;
}
