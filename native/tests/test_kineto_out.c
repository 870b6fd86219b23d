#include "core/fault.h"
#include "json.h"
#include "kineto_step.h"

/* The step twice, the second waiting 5 us from 20 us after its start; ops of one name are marked. NULL:
 * it failed; else text that the caller frees. */
static char *both_sides(const op_result *r, int fd) {
    op_columns c = columns_of(r);
    const op_trace_mark mark = {
        .label = " [+1]", .category = ",more", .color = "bad", .args = "\"opprof\": {\"calls\": 1}"};
    const uint64_t slot = op_trace_mark_slot(c.name[MM], 0, 0);
    const int64_t from[] = {0, 20000}, to[][2] = {{0, 20000}, {0, 25000}};
    const int64_t pids[][3] = {{1, 2, 1}, {3, 4, 3}}, tids[][3] = {{11, 12, 13}, {31, 32, 33}};
    uint32_t *mark_of = calloc(slot + 1, sizeof *mark_of);
    CHECK(mark_of != NULL);
    mark_of[slot] = 1;
    op_trace_side sides[2];
    for (int i = 0; i < 2; i++)
        sides[i] = (op_trace_side){.result = r,
                                   .mark_of = mark_of,
                                   .mark_slots = slot + 1,
                                   .marks = &mark,
                                   .from_ns = from,
                                   .to_ns = to[i],
                                   .points = 2,
                                   .pids = pids[i],
                                   .tids = tids[i]};
    int rc = op_trace_write_sides(sides, 2, fd, "\"a\": 1", "{\"ph\": \"M\", \"pid\": 1}");
    free(mark_of);
    if (rc != OP_OK)
        return NULL;
    size_t size = (size_t)lseek(fd, 0, SEEK_CUR);
    char *text = calloc(size + 1, 1);
    CHECK(text && pread(fd, text, size, 0) == (ssize_t)size);
    return text;
}

static void traces_stand_side_by_side(void) {
    op_result *r = read_text(step);
    FILE *file = tmpfile();
    CHECK(file != NULL);
    char *text = both_sides(r, fileno(file));
    CHECK(text && is_json(text));
    CHECK(strstr(text, "{\"a\": 1, \"traceEvents\": [\n{\"ph\": \"M\", \"pid\": 1},\n{"));
    CHECK(strstr(text,
                 "\"cpu_op,more\", \"name\": \"aten::mm [+1]\", \"pid\": 1, \"tid\": 11, "
                 "\"ts\": 2.001, \"cname\": \"bad\", \"dur\": 4.000, \"args\": {\"External id\""));
    CHECK(strstr(text, "\"bandwidth\": \"NaN\", \"opprof\": {\"calls\": 1}}"));
    /* An event that ends where the gap begins does not wait; what contains it does; a kernel never. */
    CHECK(strstr(text, "\"ProfilerStep#4\", \"pid\": 3, \"tid\": 31, \"ts\": 0.000, \"dur\": 20.000"));
    CHECK(strstr(text, "\"gemm\", \"pid\": 4, \"tid\": 32, \"ts\": 35.000, \"dur\": 2.500"));
    CHECK(strstr(text, "\"ph\": \"e\", \"cat\": \"user_annotation\", \"name\": \"wait\", \"pid\": 3, "
                       "\"tid\": 31, \"ts\": 29.000"));
    free(text);
    fclose(file);
    op_result_free(r);
}

#ifdef OP_FAULTS
static void sides_are_written_or_refused(void) {
    op_result *r = read_text(step);
    for (unsigned n = 1;; n++) {
        FILE *file = tmpfile();
        CHECK(file != NULL);
        op_fault_arm(OP_FAULT_MEMORY, n);
        char *text = both_sides(r, fileno(file));
        bool fired = op_fault_fired() > 0;
        op_fault_arm(OP_FAULT_MEMORY, 0);
        CHECK(fired ? text == NULL : is_json(text));
        free(text);
        fclose(file);
        if (!fired)
            break;
        CHECK(n < 100);
    }
    op_result_free(r);
}

#endif

int main(void) {
    RUN(traces_stand_side_by_side);
#ifdef OP_FAULTS
    RUN(sides_are_written_or_refused);
#endif
    return 0;
}
