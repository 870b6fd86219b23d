#include "core/event.h"
#include "core/fault.h"
#include "json.h"
#include "kineto_step.h"

static void check_named(const op_columns *c, uint64_t row, const char *name) {
    uint32_t length;
    CHECK(row < c->count);
    const char *text = op_names_text(c->name[row], &length);
    CHECK(length == strlen(name) && memcmp(text, name, length) == 0);
}

static void check_step(const op_result *r) {
    op_columns c = columns_of(r);
    CHECK_EQ(c.count, ROWS);
    CHECK_EQ(op_result_trace_start(r), 1000010000);
    CHECK_EQ(op_result_trace_duration(r), 40000);
    check_named(&c, 0, "ProfilerStep#4");
    check_named(&c, LINEAR, "aten::linear");
    check_named(&c, MM, "aten::mm");
    check_named(&c, 3, "[memory]");
    check_named(&c, LAUNCH, "cudaLaunchKernel");
    check_named(&c, ASYNC, "wait");
    check_named(&c, KERNEL, "gemm");
    static const int32_t parents[ROWS] = {-1, 0, 1, 2, 2, 2, -1, -1, -1};
    static const int32_t launchers[ROWS] = {-1, -1, -1, -1, -1, -1, 0, LAUNCH, -1};
    static const int64_t selves[ROWS] = {12000, 4000, 3000, 0, 1000, 0, 0, 0, 3000};
    for (uint64_t row = 0; row < ROWS; row++) {
        CHECK_EQ(c.parent[row], parents[row]);
        CHECK_EQ(c.launcher[row], launchers[row]);
        CHECK_EQ(c.self_ns[row], selves[row]);
        CHECK_EQ(c.step[row], 0);
    }
    CHECK_EQ(c.start_ns[MM], 2001);
    CHECK_EQ(c.duration_ns[KERNEL], 2500);
    CHECK_EQ(c.duration_ns[ASYNC], 20000);
    CHECK_EQ(c.flags[ASYNC], OP_FLAG_ASYNC);
    CHECK_EQ(c.kind[3], OP_MEMORY);
    CHECK_EQ(c.scope[8], OP_SCOPE_BACKWARD);
    CHECK_EQ(c.forward_thread[8], 1);
    CHECK_EQ(c.sequence_nr[LINEAR], 5);
    uint32_t threads;
    const op_thread_info *t = op_result_threads(r, &threads);
    CHECK_EQ(threads, 3);
    CHECK_TEXT(t[0].name, "python");
    CHECK_EQ(t[1].device_type, 1);
    CHECK_EQ(t[1].resource, 7);
    CHECK_EQ(op_result_other_events(r), 3);
    CHECK_EQ(op_result_unread_events(r), 0);
}

static void a_step_becomes_columns(void) {
    op_result *r = read_text(step);
    check_step(r);
    uint64_t words;
    const uint32_t *args = op_result_args(r, &words), *memory = args + columns_of(r).args[3] - 1;
    CHECK_EQ(memory[0], OP_ARGS_HEADER(OP_ARGS_MEMORY, OP_ARGS_MEMORY_WORDS));
    int64_t wide[4];
    memcpy(wide, memory + 1, sizeof wide);
    CHECK_EQ(wide[0], 4096);
    CHECK_EQ(wide[1], -64);
    CHECK_EQ(wide[2], -1);
    CHECK_EQ(memory[9], 1);
    op_result_free(r);
}

static void pieces_of_any_size_are_one_text(void) {
    for (size_t piece = 1; piece < sizeof step; piece += piece < 40 ? 1 : 97) {
        op_result *r;
        CHECK_OK(read_pieces(step, sizeof step - 1, piece, &r));
        check_step(r);
        op_result_free(r);
    }
}

static void a_text_cut_anywhere_is_told(void) {
    size_t end = sizeof step - 2; /* the newline after it is not needed */
    for (size_t length = 0; length < end; length++) {
        op_result *r;
        CHECK_FAILS(read_pieces(step, length, 64, &r), OP_EFORMAT, "byte");
        CHECK(r == NULL);
    }
}

/* The written text; the caller frees it. */
static char *written(const op_result *r) {
    FILE *file = tmpfile();
    CHECK(file != NULL);
    CHECK_OK(op_result_write_trace(r, fileno(file), "", "unused"));
    size_t size = (size_t)lseek(fileno(file), 0, SEEK_CUR);
    char *text = calloc(size + 1, 1);
    CHECK(text && pread(fileno(file), text, size, 0) == (ssize_t)size);
    fclose(file);
    return text;
}

static void a_trace_written_again_is_the_same(void) {
    op_result *r = read_text(step);
    char *once = written(r);
    CHECK(is_json(once));
    CHECK(strstr(once, "\"bandwidth\": \"NaN\"") && strstr(once, "\"grid\": [1, 2, 3]"));
    CHECK(strstr(once, "\"traceName\": \"step.json\"") &&
          strstr(once, "{\"ph\": \"s\", \"cat\": \"ac2g\""));
    op_result *again = read_text(once);
    check_step(again);
    char *twice = written(again);
    CHECK_TEXT(twice, once);
    free(once);
    free(twice);
    op_result_free(r);
    op_result_free(again);
}

static void arguments_are_given_back(void) {
    op_result *r = read_text(step);
    const char *text;
    uint64_t length;
    CHECK_OK(op_result_event_args(r, LAUNCH, &text, &length));
    static const char expected[] = "\"External id\": 3, \"cbid\": 211, \"correlation\": 9";
    CHECK_EQ(length, sizeof expected - 1);
    CHECK(memcmp(text, expected, length) == 0);
    CHECK_OK(op_result_event_args(r, ROWS, &text, &length));
    CHECK_EQ(length, 0);
    op_result_free(r);
}

static void what_is_no_trace_is_told(void) {
    static const struct {
        const char *text, *problem;
    } bad[] = {{"", "byte 0: the file is empty"},
               {"  x", "byte 2: neither an object nor a list"},
               {"\xff\xfe[", "byte 0: neither"},
               {"{}", "it has no traceEvents"},
               {"{\"nodes\": []}", "it has no traceEvents"},
               {"{\"traceEvents\": {}}", "byte 16: traceEvents is not a list"},
               {"{\"traceEvents\": [], \"traceEvents\": []}", "appears twice"},
               {"[1]", "byte 1: an event that is not an object"},
               {"[{}] []", "byte 5: more text after"},
               {"[{},]", "byte 4: an event that is not an object"},
               {"[{\"a\": \"\xff\"}]", "byte 8: bytes that are not UTF-8"},
               {"[{\"a\" 1}]", "byte 6: a name without a colon"},
               {"{\"a\": tru", "byte 6: the text ends here"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (size_t piece = 1; piece < 100; piece += 98) {
            op_result *r;
            CHECK_FAILS(read_pieces(bad[i].text, strlen(bad[i].text), piece, &r), OP_EFORMAT,
                        bad[i].problem);
        }
}

static void what_is_not_understood_is_kept(void) {
    static const char text[] =
        "[{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"no times\", \"pid\": 1, \"tid\": 1},"
        "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"x\", \"pid\": 1, \"tid\": 1, \"ts\": 1e300, "
        "\"dur\": 1},"
        "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"x\", \"pid\": [], \"tid\": 1, \"ts\": 1, "
        "\"dur\": 1},"
        "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"x\", \"pid\": NaN, \"tid\": 1, \"ts\": 1, "
        "\"dur\": 1},"
        "{\"ph\": \"X\", \"cat\": \"no such\", \"name\": \"x\", \"pid\": 1, \"tid\": 1, \"ts\": 1, "
        "\"dur\": 1},"
        "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"x\", \"pid\": 1, \"tid\": 1, \"ts\": 1, "
        "\"dur\": -1},"
        "{\"ph\": 7, \"cat\": {}, \"name\": 3}, {}]";
    op_result *r = read_text(text);
    CHECK_EQ(columns_of(r).count, 0);
    CHECK_EQ(op_result_other_events(r), 8);
    CHECK_EQ(op_result_unread_events(r), 6);
    char *out = written(r);
    CHECK(is_json(out) && strstr(out, "1e300"));
    free(out);
    op_result_free(r);
}

static void the_last_of_two_equal_keys_counts(void) {
    op_result *r = read_text(
        "[{\"ph\": \"M\", \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"a\", \"name\": \"b\","
        "\"pid\": 1, \"tid\": 1, \"ts\": 1, \"ts\": 2, \"dur\": 1}]");
    op_columns c = columns_of(r);
    CHECK_EQ(c.count, 1);
    check_named(&c, 0, "b");
    CHECK_EQ(op_result_trace_start(r), 2000);
    op_result_free(r);
}

#define EVENT(category, name, pid, ts, args)                                                           \
    "{\"ph\": \"X\", \"cat\": \"" category "\", \"name\": \"" name "\", \"pid\": " pid                 \
    ", \"tid\": 70, \"ts\": " ts ", \"dur\": 1, \"args\": {" args "}}"
#define CALL(pid, ts, number) EVENT("cuda_runtime", "call", pid, ts, "\"correlation\": " number)
#define KERNEL(pid, ts, number) EVENT("kernel", "kernel", pid, ts, "\"correlation\": " number)

/* Kernels of templates have such names; a recording shortens them too. */
static void long_names_are_shortened(void) {
    enum { LONG = 9000 };
    char name[LONG + 1], text[2 * LONG + 500];
    memset(name, 'n', LONG);
    name[LONG] = 0;
    snprintf(text, sizeof text,
             "[" EVENT("kernel", "%s%c", "0", "1", "") "," EVENT("kernel", "%s%c", "0", "1", "") "]",
             name, 'a', name, 'b');
    op_result *r = read_text(text);
    op_columns c = columns_of(r);
    uint32_t length;
    CHECK_EQ(c.count, 2);
    CHECK(c.name[0] != c.name[1]);
    CHECK(memcmp(op_names_text(c.name[0], &length), name, 8000) == 0);
    CHECK(length < LONG);
    op_result_free(r);
}

static void work_without_a_time_has_none(void) {
    op_result *r = read_text("[" EVENT("kernel", "untimed", "0", "2", "\"finished\": false") "," EVENT(
        "kernel", "timed", "0", "5", "") "]");
    op_columns c = columns_of(r);
    CHECK_EQ(c.duration_ns[0], -1);
    CHECK_EQ(c.duration_ns[1], 1000);
    op_result_free(r);
}

/* Both processes have a call 1 and an op 5. */
static void each_process_numbers_its_own_calls(void) {
    static const char *const events[] = {CALL("7", "10", "1"),
                                         CALL("8", "11", "1"),
                                         CALL("8", "12", "2"),
                                         EVENT("cpu_op", "op", "7", "13", "\"External id\": 5"),
                                         EVENT("cpu_op", "op", "8", "14", "\"External id\": 5"),
                                         KERNEL("7", "20", "1"),
                                         KERNEL("8", "21", "1"),
                                         KERNEL("0", "22", "1"),
                                         KERNEL("0", "23", "2"),
                                         EVENT("kernel", "of an op", "8", "24", "\"External id\": 5")};
    static const int64_t launched_at[] = {10, 11, -1, 12, 14}; /* by kernel; -1: not known by which */
    enum { EVENTS = sizeof events / sizeof *events };
    char text[EVENTS * 200] = "[";
    for (int i = 0; i < EVENTS; i++)
        strcat(strcat(text, i ? "," : ""), events[i]);
    op_result *r = read_text(strcat(text, "]"));
    op_columns c = columns_of(r);
    CHECK_EQ(c.count, EVENTS);
    for (uint64_t row = 0; row < EVENTS; row++) {
        int64_t at = c.launcher[row] < 0 ? -1 : c.start_ns[c.launcher[row]] / 1000 + 10;
        int64_t kernel = c.start_ns[row] / 1000 + 10 - 20;
        CHECK_EQ(at, kernel < 0 ? -1 : launched_at[kernel]);
    }
    op_result_free(r);
}

static void limits_are_kept(void) {
    op_trace_reader *reader;
    CHECK_OK(op_trace_open(&reader, 3, 0));
    CHECK_FAILS(op_trace_feed(reader, step, sizeof step - 1), OP_ELIMIT, "more than 3 events");
    op_result *r;
    CHECK_FAILS(op_trace_finish(reader, &r), OP_ELIMIT, "");
    op_trace_close(reader);
    CHECK_OK(op_trace_open(&reader, 0, 100));
    CHECK_FAILS(op_trace_feed(reader, step, 101), OP_ELIMIT, "more than 100 bytes");
    op_trace_close(reader);
}

/* An endless string is refused early: before twice the limit, because the pieces looked at double. */
static void a_value_without_end_is_refused_soon(void) {
    enum { PIECE = 1 << 20, LIMIT = 64 };
    char *piece = malloc(PIECE);
    CHECK(piece != NULL);
    memset(piece, 'x', PIECE);
    op_trace_reader *reader;
    CHECK_OK(op_trace_open(&reader, 0, 0));
    CHECK_OK(op_trace_feed(reader, "[{\"name\": \"", 11));
    int fed = 0;
    while (fed < 2 * LIMIT && op_trace_feed(reader, piece, PIECE) == OP_OK)
        fed++;
    CHECK_EQ(fed, LIMIT - 1);
    CHECK_FAILS(op_trace_feed(reader, piece, PIECE), OP_ELIMIT,
                "the event or member at byte 1 has more than 64 MiB of JSON: remove it from the file");
    op_trace_close(reader);
    free(piece);
}

/* A value that arrives complete, in one piece. */
static void a_value_too_large_is_refused_whole(void) {
    static const char head[] = "{\"traceEvents\": [], \"a\": \"", tail[] = "\"}";
    const size_t length = (size_t)65 << 20;
    char *text = malloc(length);
    CHECK(text != NULL);
    memset(text, 'x', length);
    memcpy(text, head, sizeof head - 1);
    memcpy(text + length - sizeof tail + 1, tail, sizeof tail - 1);
    op_result *r;
    CHECK_FAILS(read_pieces(text, length, length, &r), OP_ELIMIT,
                "the event or member at byte 18 has more than 64 MiB");
    free(text);
}

static void deep_values_are_kept(void) {
    enum { DEPTH = 100000 };
    char *text = calloc(2 * DEPTH + 200, 1);
    CHECK(text != NULL);
    int n = sprintf(
        text,
        "[{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"deep\", \"pid\": 1, \"tid\": 1, \"ts\": 1, "
        "\"dur\": 1, \"args\": {\"a\": ");
    memset(text + n, '[', DEPTH);
    memset(text + n + DEPTH, ']', DEPTH);
    strcat(text + n + 2 * DEPTH, "}}]");
    op_result *r;
    CHECK_OK(read_pieces(text, strlen(text), 4096, &r));
    CHECK_EQ(columns_of(r).count, 1);
    char *out = written(r);
    CHECK(strlen(out) > 2 * DEPTH);
    free(out);
    free(text);
    op_result_free(r);
}

#ifdef OP_FAULTS
static void every_allocation_may_fail(void) {
    unsigned n = 0;
    bool fired = true;
    while (fired) {
        op_result *r;
        op_fault_arm(OP_FAULT_MEMORY, ++n);
        int rc = read_pieces(step, sizeof step - 1, 50, &r);
        fired = op_fault_fired() > 0;
        CHECK(rc == OP_OK || (fired && rc == OP_ENOMEM));
        op_fault_arm(OP_FAULT_MEMORY, 0);
        if (rc == OP_OK)
            check_step(r);
        op_result_free(r);
    }
    printf("   %u places\n", n - 1);
    CHECK(n > 20);
}
#endif

int main(void) {
    RUN(a_step_becomes_columns);
    RUN(pieces_of_any_size_are_one_text);
    RUN(a_text_cut_anywhere_is_told);
    RUN(a_trace_written_again_is_the_same);
    RUN(arguments_are_given_back);
    RUN(what_is_no_trace_is_told);
    RUN(what_is_not_understood_is_kept);
    RUN(long_names_are_shortened);
    RUN(the_last_of_two_equal_keys_counts);
    RUN(work_without_a_time_has_none);
    RUN(each_process_numbers_its_own_calls);
    RUN(limits_are_kept);
    RUN(a_value_without_end_is_refused_soon);
    RUN(a_value_too_large_is_refused_whole);
    RUN(deep_values_are_kept);
#ifdef OP_FAULTS
    RUN(every_allocation_may_fail);
#endif
    return 0;
}
