#include "core/fault.h"
#include "made.h"
#include "result/device_calls.h"
#include "result/device_use.h"

static made m;

static void set_bytes(op_event *e, int thread, uint64_t bytes) {
    const op_device_work work = {.bytes = bytes};
    uint32_t words[1 + sizeof work / 4] = {OP_ARGS_HEADER(OP_ARGS_DEVICE_WORK, sizeof work / 4)};
    memcpy(words + 1, &work, sizeof work);
    add_block(&m.threads[thread], e, words, sizeof words / 4);
}

static void set_result(op_event *e, int thread, uint32_t result) {
    const op_device_call call = {.result = result};
    uint32_t words[1 + sizeof call / 4] = {OP_ARGS_HEADER(OP_ARGS_DEVICE_CALL, sizeof call / 4)};
    memcpy(words + 1, &call, sizeof call);
    add_block(&m.threads[thread], e, words, sizeof words / 4);
}

/* Two steps: forward { linear { cudaLaunchKernel { cuLaunchKernel } cudaMemcpy } cudaStreamSynchronize
 * } and add { cudaGraphLaunch }; two streams of one device and one of another. */
static op_result *build_work(const int32_t launchers[6]) {
    add_step(&m, 0, 0, 1000, 0);
    add_step(&m, 1, 1000, 2000, 0);
    add_kind(&m.threads[0], "forward", 0, 10, 900, OP_RANGE)->flags = OP_SCOPE_USER; /* row 0 */
    add_kind(&m.threads[0], "linear", 1, 100, 400, OP_TORCH);
    add_kind(&m.threads[0], "cudaLaunchKernel", 2, 110, 130, OP_RUNTIME);
    add_kind(&m.threads[0], "cuLaunchKernel", 3, 115, 125, OP_DRIVER);
    add_kind(&m.threads[0], "cudaMemcpy", 2, 200, 390, OP_RUNTIME);
    add_kind(&m.threads[0], "cudaStreamSynchronize", 1, 500, 800, OP_RUNTIME); /* row 5 */
    add_kind(&m.threads[0], "add", 0, 1100, 1200, OP_TORCH);
    add_kind(&m.threads[0], "cudaGraphLaunch", 1, 1110, 1120, OP_RUNTIME);
    add_kind(&m.threads[1], "gemm", 0, 150, 250, OP_KERNEL); /* row 8 */
    set_bytes(add_kind(&m.threads[1], "Memcpy DtoH (Device -> Pageable)", 0, 250, 380, OP_MEMCPY), 1,
              64);
    add_kind(&m.threads[1], "gemm", 0, 2050, 2150, OP_KERNEL); /* runs after its step */
    add_kind(&m.threads[2], "relu", 0, 2100, 2200, OP_KERNEL); /* row 11: concurrent */
    add_kind(&m.threads[2], "Memset (Device)", 0, 2300, 2310, OP_MEMSET);
    add_kind(&m.threads[3], "gemm", 0, 1500, 1540, OP_KERNEL); /* row 13 */
    op_result *r = build(&m);
    for (int i = 0; i < 6; i++) {
        ((int32_t *)r->columns.launcher)[8 + i] = launchers[i];
        ((int32_t *)r->columns.step)[8 + i] = launchers[i] < 0 ? -1 : r->columns.step[launchers[i]];
    }
    for (uint32_t stream = 1; stream < 4; stream++) {
        r->threads[stream].device_type = 1;
        r->threads[stream].device_index = stream == 3;
        r->threads[stream].resource = stream;
    }
    return r;
}

static op_result *build_all(void) {
    memset(&m, 0, sizeof m);
    return build_work((const int32_t[6]){3, 4, 7, 7, 7, 7});
}

static const op_group *rows;
static uint64_t row_count;

static op_device_use use_of(op_result *r) {
    const int64_t *samples;
    op_device_use use;
    CHECK_OK(op_result_groups(r, 0, 0, &rows, &row_count, &samples));
    CHECK_OK(op_result_device_use(r, &use));
    return use;
}

static uint64_t row_named(const char *name) {
    for (uint64_t i = 0; i < row_count; i++)
        if (rows[i].name == name_id(name))
            return i;
    check_that(0, name, __FILE__, __LINE__);
    return 0;
}

static uint32_t place_of(const op_device_use *use, const char *name) {
    return use->of_group[row_named(name)];
}

static int64_t value(const op_device_use *use, uint32_t place, int measure, uint32_t step) {
    return use->values[((uint64_t)place * OP_USE_MEASURES + (uint32_t)measure) * 3 + step];
}

static void check_values(const op_device_use *use, uint32_t place, uint32_t step,
                         const int64_t expected[OP_USE_MEASURES]) {
    for (int measure = 0; measure < OP_USE_MEASURES; measure++) {
        int64_t found = value(use, place, measure, step);
        if (found != expected[measure])
            fprintf(stderr, "place %u, step %u, measure %d\n", place, step, measure);
        CHECK_EQ(found, expected[measure]);
    }
}

static void counts_belong_to_the_step_of_the_launch(void) {
    op_result *r = build_all();
    op_device_use use = use_of(r);
    /* Idle: of 1,000 ns the first device works 230, the second none; in step two the second works
     * 40. */
    static const int64_t first[OP_USE_MEASURES] = {[OP_USE_KERNELS] = 1,
                                                   [OP_USE_LAUNCHES] = 1,
                                                   [OP_USE_SYNCS] = 2,
                                                   [OP_USE_COPIES] = 1,
                                                   [OP_USE_BYTES] = 64,
                                                   [OP_USE_COPIES_HTOD + OP_COPY_DTOH] = 1,
                                                   [OP_USE_BYTES_HTOD + OP_COPY_DTOH] = 64,
                                                   [OP_USE_BUSY] = 230,
                                                   [OP_USE_IDLE] = 1770,
                                                   [OP_USE_SPAN] = 2000,
                                                   [OP_USE_DEPTH] = 1,
                                                   [OP_USE_DEPTHS] = 1};
    static const int64_t second[OP_USE_MEASURES] = {
        [OP_USE_KERNELS] = 3, [OP_USE_LAUNCHES] = 1, [OP_USE_MEMSETS] = 1, [OP_USE_BUSY] = 200,
        [OP_USE_IDLE] = 1960, [OP_USE_SPAN] = 2000,  [OP_USE_DEPTH] = 3,   [OP_USE_DEPTHS] = 1};
    static const int64_t none[OP_USE_MEASURES] = {0};
    check_values(&use, 0, 0, first);
    check_values(&use, 0, 1, second);
    check_values(&use, 0, 2, none);
    CHECK_EQ(use.unmatched_launches + use.unmatched_kernels + use.untimed, 0);
    op_result_free(r);
}

static void an_op_has_what_is_launched_inside_it(void) {
    op_result *r = build_all();
    op_device_use use = use_of(r);
    uint32_t forward = place_of(&use, "forward"), linear = place_of(&use, "linear");
    CHECK_EQ(value(&use, forward, OP_USE_SYNCS, 0), 2);
    CHECK_EQ(value(&use, linear, OP_USE_SYNCS, 0), 1);
    CHECK_EQ(value(&use, linear, OP_USE_KERNELS, 0), 1);
    CHECK_EQ(value(&use, linear, OP_USE_BYTES, 0), 64);
    CHECK_EQ(value(&use, linear, OP_USE_BUSY, 0), 230);
    CHECK_EQ(value(&use, linear, OP_USE_SPAN, 0), 600);
    CHECK_EQ(value(&use, linear, OP_USE_IDLE, 0), 600 - 230);
    CHECK_EQ(value(&use, place_of(&use, "add"), OP_USE_KERNELS, 1), 3);
    CHECK_EQ(value(&use, place_of(&use, "add"), OP_USE_LAUNCHES, 1), 1);
    CHECK_EQ(place_of(&use, "cudaLaunchKernel"), 0);
    uint32_t gemm = place_of(&use, "gemm");
    CHECK_EQ(rows[use.launcher[row_named("gemm")] - 1].name, name_id("add"));
    CHECK_EQ(rows[use.launcher[row_named("Memcpy DtoH (Device -> Pageable)")] - 1].name,
             name_id("linear"));
    CHECK_EQ(use.launcher[row_named("linear")], 0);
    CHECK_EQ(value(&use, gemm, OP_USE_BUSY, 1), 140);
    CHECK_EQ(value(&use, gemm, OP_USE_SPAN, 1), 0);
    op_result_free(r);
}

static void what_is_missing_is_counted(void) {
    memset(&m, 0, sizeof m);
    op_result *r = build_work((const int32_t[6]){-1, -1, 1, 7, -1, 7});
    ((int64_t *)r->columns.duration_ns)[11] = -1;
    op_device_use use = use_of(r);
    CHECK_EQ(use.unmatched_launches, 1);
    CHECK_EQ(use.unmatched_kernels, 4); /* two kernels, one of them the op's own, a copy, a fill */
    CHECK_EQ(use.untimed, 1);
    CHECK_EQ(value(&use, 0, OP_USE_KERNELS, 2), 1);
    op_result_free(r);
}

static void no_step_launched_what_ran_before_the_first(void) {
    memset(&m, 0, sizeof m);
    add_step(&m, 0, 100, 200, 0);
    add_kind(&m.threads[0], "gemm", 0, 50, 150, OP_KERNEL);
    add_kind(&m.threads[0], "gemm", 0, 250, 260, OP_KERNEL);
    op_result *r = build(&m);
    CHECK_EQ(use_of(r).unmatched_kernels, 1);
    op_result_free(r);
}

static void launches_into_a_graph_run_nothing(void) {
    memset(&m, 0, sizeof m);
    add_kind(&m.threads[0], "cudaStreamBeginCapture", 0, 10, 20, OP_RUNTIME);
    add_kind(&m.threads[0], "cudaLaunchKernel", 0, 30, 40, OP_RUNTIME);
    add_kind(&m.threads[0], "cudaLaunchHostFunc", 0, 45, 48, OP_RUNTIME);
    add_kind(&m.threads[0], "cudaStreamEndCapture", 0, 50, 60, OP_RUNTIME);
    add_kind(&m.threads[0], "cudaLaunchKernel", 0, 70, 80, OP_RUNTIME);
    op_result *r = build(&m);
    op_device_use use = use_of(r);
    CHECK_EQ(use.values[OP_USE_LAUNCHES], 1);
    CHECK_EQ(use.unmatched_launches, 1);
    op_result_free(r);
}

static void a_capture_may_begin_before_the_window(void) {
    memset(&m, 0, sizeof m);
    add_kind(&m.threads[0], "cudaLaunchKernel", 0, 30, 40, OP_RUNTIME);
    add_kind(&m.threads[0], "cudaStreamEndCapture", 0, 50, 60, OP_RUNTIME);
    op_result *r = build(&m);
    op_device_use use = use_of(r);
    CHECK_EQ(use.values[OP_USE_LAUNCHES] + (int64_t)use.unmatched_launches, 0);
    op_result_free(r);
}

static void a_call_that_failed_did_nothing(void) {
    memset(&m, 0, sizeof m);
    set_result(add_kind(&m.threads[0], "cudaLaunchKernel", 0, 30, 40, OP_RUNTIME), 0, 9);
    set_result(add_kind(&m.threads[0], "cudaDeviceSynchronize", 0, 50, 60, OP_RUNTIME), 0, 0);
    op_result *r = build(&m);
    op_device_use use = use_of(r);
    CHECK_EQ(use.values[OP_USE_LAUNCHES] + (int64_t)use.unmatched_launches, 0);
    CHECK_EQ(use.values[OP_USE_SYNCS], 1);
    op_result_free(r);
}

static void copies_may_say_little(void) {
    memset(&m, 0, sizeof m);
    add_kind(&m.threads[1], "Memcpy unknown", 0, 10, 20, OP_MEMCPY);
    add_kind(&m.threads[1], "Memcpy DtoD (Device -> Device)", 0, 30, 40, OP_MEMCPY);
    op_result *r = build(&m);
    op_device_use use = use_of(r);
    CHECK_EQ(use.unsized, 2);
    CHECK_EQ(use.undirected, 1);
    CHECK_EQ(use.values[OP_USE_COPIES], 2);
    op_result_free(r);
}

static void waits_without_a_call_are_counted(void) {
    memset(&m, 0, sizeof m);
    add_kind(&m.threads[0], "Stream Sync", 0, 10, 20, OP_SYNC);
    add_kind(&m.threads[0], "Stream Wait Event", 0, 30, 40, OP_SYNC);
    op_result *r = build(&m);
    CHECK_EQ(use_of(r).values[OP_USE_SYNCS], 1);
    op_result_free(r);
}

static void without_a_device_there_is_nothing(void) {
    memset(&m, 0, sizeof m);
    add_kind(&m.threads[0], "add", 0, 0, 10, OP_TORCH);
    op_result *r = build(&m);
    CHECK(use_of(r).values == NULL);
    op_result_free(r);
}

static void names_say_what_a_call_does(void) {
    static const struct {
        const char *name;
        op_call_role role;
    } calls[] = {{"cudaLaunchKernelExC_v11060", OP_CALL_LAUNCH},
                 {"cuLaunchCooperativeKernel", OP_CALL_LAUNCH},
                 {"hipExtModuleLaunchKernel", OP_CALL_LAUNCH},
                 {"cuGraphLaunch", OP_CALL_LAUNCH},
                 {"cudaLaunchHostFunc", OP_CALL_OTHER},
                 {"cuCtxSynchronize", OP_CALL_SYNC},
                 {"cudaEventSynchronize", OP_CALL_SYNC},
                 {"cudaEventQuery", OP_CALL_OTHER},
                 {"cudaStreamWaitEvent", OP_CALL_OTHER},
                 {"cudaMemcpyAsync", OP_CALL_OTHER},
                 {"cuMemcpyDtoH_v2", OP_CALL_COPY},
                 {"hipMemcpyWithStream", OP_CALL_COPY},
                 {"cudaStreamBeginCaptureToGraph", OP_CALL_BEGIN_CAPTURE},
                 {"cuStreamEndCapture", OP_CALL_END_CAPTURE}};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        CHECK_EQ(op_call_role_of(calls[i].name, strlen(calls[i].name)), calls[i].role);
    static const char *const copies[] = {
        "Memcpy HtoA (Pinned -> Array)",  "CopyDeviceToHost", "Memcpy AtoA",
        "Memcpy PtoP (Device -> Device)", "Memcpy HtoH",      "Memcpy unknown"};
    static const op_copy_direction directions[] = {OP_COPY_HTOD, OP_COPY_DTOH, OP_COPY_DTOD,
                                                   OP_COPY_PTOP, OP_COPY_HTOH, OP_COPY_UNKNOWN};
    for (size_t i = 0; i < 6; i++)
        CHECK_EQ(op_copy_direction_of(copies[i], strlen(copies[i])), directions[i]);
}

#ifdef OP_FAULTS
static void every_allocation_may_fail(void) {
    op_result *r = build_all();
    const int64_t *samples;
    CHECK_OK(op_result_groups(r, 0, 0, &rows, &row_count, &samples));
    unsigned n = 0;
    bool fired = true;
    while (fired) {
        op_device_use use;
        op_fault_arm(OP_FAULT_MEMORY, ++n);
        int rc = op_result_device_use(r, &use);
        fired = op_fault_fired() > 0;
        op_fault_arm(OP_FAULT_MEMORY, 0);
        CHECK(rc == (fired ? OP_ENOMEM : OP_OK));
        CHECK(fired == (use.values == NULL));
    }
    CHECK(n > 8);
    op_result_free(r);
}
#endif

int main(void) {
    RUN(counts_belong_to_the_step_of_the_launch);
    RUN(an_op_has_what_is_launched_inside_it);
    RUN(what_is_missing_is_counted);
    RUN(no_step_launched_what_ran_before_the_first);
    RUN(launches_into_a_graph_run_nothing);
    RUN(a_capture_may_begin_before_the_window);
    RUN(a_call_that_failed_did_nothing);
    RUN(copies_may_say_little);
    RUN(waits_without_a_call_are_counted);
    RUN(without_a_device_there_is_nothing);
    RUN(names_say_what_a_call_does);
#ifdef OP_FAULTS
    RUN(every_allocation_may_fail);
#endif
    return 0;
}
