#include "written.h"

#include "export/lanes.h"

static made m;

static op_result *build_streams(uint32_t from, int32_t device, int64_t stream) {
    op_result *r = build(&m);
    for (uint32_t i = from; i < r->thread_count; i++) {
        r->threads[i].device_type = 1;
        r->threads[i].device_index = device;
        r->threads[i].resource = stream + i - from;
    }
    return r;
}

static void set_launcher(op_result *r, uint64_t row, int32_t launcher) {
    ((int32_t *)r->columns.launcher)[row] = launcher;
}

static void work_of_devices_stands_as_kineto_writes_it(void) {
    memset(&m, 0, sizeof m);
    made_thread *host = &m.threads[0], *device = &m.threads[1];
    host->os_tid = 71;
    add_kind(host, "addmm", 0, 100, 400, OP_TORCH); /* row 0 */
    add_kind(host, "cudaLaunchKernel", 1, 200, 210, OP_RUNTIME);
    add_kind(host, "cuLaunchKernel", 0, 500, 510, OP_DRIVER);
    add_kind(device, "gemm", 0, 1000, 1400, OP_KERNEL); /* row 3 */
    add_kind(device, "forward", 0, 1000, 1500, OP_DEVICE_RANGE);
    add_kind(device, "Memset (Device)", 0, 1600, 1700, OP_MEMSET);
    add_kind(device, "Memcpy HtoD (Pageable -> Device)", 0, 1700, 1800, OP_MEMCPY);
    add_kind(device, "Stream Sync", 0, 1900, 2000, OP_SYNC);
    op_result *r = build_streams(1, 2, 7);
    set_launcher(r, 3, 1);
    set_launcher(r, 4, 0);
    set_launcher(r, 5, 2);
    char *text = trace_of(r, "", "t");
    int pid = (int)getpid();
    check_event(
        text,
        "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":%d,\"tid\":71,"
        "\"ts\":5000000.200,\"dur\":0.010,\"args\":{\"External id\":1,\"correlation\":2}},\n"
        "{\"ph\":\"s\",\"id\":2,\"cat\":\"ac2g\",\"name\":\"ac2g\",\"pid\":%d,\"tid\":71,"
        "\"ts\":5000000.200}",
        pid, pid);
    check_event(text, "\"cat\":\"cuda_driver\",\"name\":\"cuLaunchKernel\",\"pid\":%d,", pid);
    check_has(text, "\"args\":{\"External id\":3,\"correlation\":3}}");
    /* The range comes first, because it contains the kernel that begins with it. */
    check_has(
        text,
        "{\"ph\":\"X\",\"cat\":\"gpu_user_annotation\",\"name\":\"forward\",\"pid\":2,\"tid\":7,"
        "\"ts\":5000001.000,\"dur\":0.500,\"args\":{\"External id\":1}},\n"
        "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"pid\":2,\"tid\":7,\"ts\":5000001.000,"
        "\"dur\":0.400,\"args\":{\"External id\":1,\"correlation\":2,\"device\":2,\"stream\":7}},\n"
        "{\"ph\":\"f\",\"bp\":\"e\",\"id\":2,\"cat\":\"ac2g\",\"name\":\"ac2g\",\"pid\":2,\"tid\":7,"
        "\"ts\":5000001.000}");
    check_has(text, "\"cat\":\"gpu_memset\",\"name\":\"Memset (Device)\"");
    check_has(text, "\"cat\":\"gpu_memcpy\",\"name\":\"Memcpy HtoD (Pageable -> Device)\"");
    check_has(text,
              "\"cat\":\"cuda_sync\",\"name\":\"Stream Sync\",\"pid\":2,\"tid\":7,\"ts\":5000001.900,"
              "\"dur\":0.100,\"args\":{\"device\":2,\"stream\":7}}");
    check_has(text, "\"pid\":2,\"tid\":0,\"args\":{\"labels\":\"GPU 2\"}}");
    check_has(text, "\"pid\":2,\"tid\":0,\"args\":{\"sort_index\":5000002}}");
    check_has(text, "\"pid\":2,\"tid\":7,\"args\":{\"name\":\"stream 7\"}}");
    free(text);
    op_result_free(r);
}

static void what_overlaps_goes_to_a_further_track(void) {
    memset(&m, 0, sizeof m);
    made_thread *t = &m.threads[0];
    add_kind(t, "a", 0, 100, 200, OP_KERNEL);
    add_kind(t, "b", 0, 150, 250, OP_KERNEL); /* beyond the end of a */
    add_kind(t, "c", 0, 160, 170, OP_KERNEL); /* inside a and b */
    add_kind(t, "d", 0, 200, 210, OP_KERNEL);
    add_kind(t, "outer", 0, 300, 400, OP_DEVICE_RANGE);
    add_kind(t, "inner", 0, 310, 390, OP_DEVICE_RANGE);
    add_kind(t, "e", 0, 310, 390, OP_KERNEL);
    add_kind(t, "f", 0, 395, 405, OP_KERNEL); /* beyond the end of the outer range */
    add_kind(t, "g", 0, 405, 405, OP_KERNEL);
    op_result *r = build_streams(0, 0, 7);
    op_lanes lanes;
    CHECK_OK(op_lanes_lay(&lanes, r));
    static const uint32_t rows[] = {0, 1, 2, 3, 4, 5, 6, 7, 8}, tracks[] = {0, 1, 2, 0, 0, 0, 0, 1, 0};
    CHECK_EQ(lanes.count, 9);
    for (int i = 0; i < 9; i++) {
        CHECK_EQ(lanes.slices[i].row, rows[i]);
        CHECK_EQ(lanes.slices[i].track, tracks[i]);
    }
    free(lanes.slices);
    char *text = trace_of(r, "", "t");
    check_has(text, "\"name\":\"b\",\"pid\":0,\"tid\":1000007,");
    check_has(text, "\"name\":\"c\",\"pid\":0,\"tid\":2000007,");
    check_has(text, "\"pid\":0,\"tid\":1000007,\"args\":{\"name\":\"stream 7 (overlapping)\"}}");
    check_has(text, "\"pid\":0,\"tid\":2000007,\"args\":{\"sort_index\":2000007}}");
    free(text);
    op_result_free(r);
}

/* However many overlap, all are there on a bounded number of tracks. */
static void tracks_are_bounded(void) {
    enum { MANY = 1000 };
    static op_event events[MANY];
    for (uint32_t i = 0; i < MANY; i++)
        events[i] = (op_event){
            .start = MADE_START + i, .end = MADE_END, .kind = OP_KERNEL, .name = name_id("gemm")};
    const op_raw raw = {.count = MANY, .events = events};
    const op_steps none = {0};
    op_result *r = build_from(&raw, 1, &none);
    r->threads[0].device_type = 1;
    op_lanes lanes;
    CHECK_OK(op_lanes_lay(&lanes, r));
    CHECK_EQ(lanes.count, MANY);
    for (uint32_t i = 0; i < MANY; i++)
        CHECK_EQ(lanes.slices[i].track, i < OP_LANE_TRACKS ? i : OP_LANE_TRACKS - 1);
    free(lanes.slices);
    op_result_free(r);
}

int main(void) {
    RUN(work_of_devices_stands_as_kineto_writes_it);
    RUN(what_overlaps_goes_to_a_further_track);
    RUN(tracks_are_bounded);
    return 0;
}
