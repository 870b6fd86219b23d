#include "written.h"

#include <fcntl.h>

static made m;

static void start_over(void) { memset(&m, 0, sizeof m); }

static void checker_knows_json(void) {
    static const char *const good[] = {"{}", " [1, -2.5e+7, \"a\\u12aF\\n\", true, null, {\"a\": []}] ",
                                       "\"\xe6\x97\xa5\"", "0"};
    static const char *const bad[] = {"",
                                      "{",
                                      "[1,]",
                                      "{\"a\" 1}",
                                      "01",
                                      "1.",
                                      "\"\n\"",
                                      "\"\\x\"",
                                      "\"\xed\xa0\x80\"",
                                      "\"\xff\"",
                                      "\"\xc0\x80\"",
                                      "\"\\u12\"",
                                      "nul",
                                      "{} {}",
                                      "NaN",
                                      "-"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        check_that(is_json(good[i]), good[i], __FILE__, __LINE__);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        check_that(!is_json(bad[i]), bad[i], __FILE__, __LINE__);
}

static void empty_result_is_a_trace(void) {
    start_over();
    op_result *r = build(&m);
    char *text = trace_of(r, "", "trace.json");
    check_has(text, "\"schemaVersion\": 1, ");
    check_has(text, "\"baseTimeNanoseconds\": 0,");
    check_has(text, "\"traceName\": \"trace.json\"");
    check_has(text, "\"name\":\"Record Window End\",\"pid\":\"\",\"tid\":\"\",\"ts\":5001000.000}");
    free(text);
    op_result_free(r);
}

static void events_stand_as_kineto_writes_them(void) {
    start_over();
    made_thread *t = &m.threads[0];
    t->os_tid = 71;
    set_sequence(t, add_event(t, "mm", 0, 1100, 3205), 7, 0);
    add_event(t, "forward", 0, 5000, 5007)->flags = OP_SCOPE_USER;
    add_event(t, "call", 0, 6000, 6009)->kind = OP_PYTHON_CALL;
    add_event(t, "op", 0, 6001, 6008);
    add_event(t, "inner", 1, 6002, 6007)->kind = OP_C_CALL;
    add_event(t, "mark", 0, 7000, 7000)->kind = OP_MARK;
    op_result *r = build(&m);
    op_result_name_thread(r, 0, "worker");
    char *text = trace_of(r, "\"with_stack\": 0", "t");
    int pid = (int)getpid();
    check_has(text, "\"with_stack\": 0, ");
    check_event(
        text,
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"mm\",\"pid\":%d,\"tid\":71,\"ts\":5000001.100,"
        "\"dur\":2.105,\"args\":{\"External id\":1,\"Record function id\":1,"
        "\"Sequence number\":7,\"Fwd thread id\":0,\"Ev Idx\":0}}",
        pid);
    check_event(text,
                "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"forward\",\"pid\":%d,\"tid\":71,"
                "\"ts\":5000005.000,\"dur\":0.007,"
                "\"args\":{\"External id\":2,\"Record function id\":2,\"Ev Idx\":1}}",
                pid);
    check_event(text,
                "{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"call\",\"pid\":%d,\"tid\":71,"
                "\"ts\":5000006.000,\"dur\":0.009,"
                "\"args\":{\"Python id\":3,\"Python parent id\":0,\"Ev Idx\":2}}",
                pid);
    check_has(text, "\"args\":{\"Python id\":5,\"Python parent id\":3,\"Ev Idx\":4}}");
    check_event(text,
                "{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"cpu_instant_event\",\"name\":\"mark\",\"pid\":%d,"
                "\"tid\":71,\"ts\":5000007.000,\"args\":{\"Ev Idx\":5}}",
                pid);
    check_event(
        text,
        "{\"ph\":\"M\",\"name\":\"thread_name\",\"ts\":5000000.000,\"pid\":%d,\"tid\":71,\"args\":{"
        "\"name\":\"thread 71 (worker)\"}}",
        pid);
    free(text);
    op_result_free(r);
}

static void async_events_are_a_pair(void) {
    start_over();
    add_event(&m.threads[0], "future", 0, 1000, 4000)->flags = OP_FLAG_ASYNC | OP_SCOPE_USER;
    op_result *r = build(&m);
    char *text = trace_of(r, "", "t");
    int pid = (int)getpid();
    check_event(text,
                "{\"ph\":\"b\",\"id\":1,\"cat\":\"user_annotation\",\"name\":\"future\",\"pid\":%d,"
                "\"tid\":0,\"ts\":5000001.000,\"args\":",
                pid);
    check_event(text,
                "{\"ph\":\"e\",\"id\":1,\"cat\":\"user_annotation\",\"name\":\"future\",\"pid\":%d,"
                "\"tid\":0,\"ts\":5000004.000}",
                pid);
    CHECK(strstr(text, "{\"ph\":\"X\",\"cat\":\"user_annotation\"") == NULL);
    free(text);
    op_result_free(r);
}

static void open_events_last_to_the_end(void) {
    start_over();
    add_event(&m.threads[0], "open", 0, 1000, 0);
    op_result *r = build(&m);
    char *text = trace_of(r, "", "t");
    check_has(text, "\"ts\":5000001.000,\"dur\":999.000,\"args\":{\"External id\":1,"
                    "\"Record function id\":1,\"finished\":false,\"Ev Idx\":0}}");
    free(text);
    op_result_free(r);
}

static void any_name_is_valid_json(void) {
    static const struct {
        const char *name, *escaped;
    } names[] = {{"a\"b\\c", "\"a\\\"b\\\\c\""},
                 {"line\nfeed\ttab", "\"line\\u000afeed\\u0009tab\""},
                 {"\xe6\x97\xa5\xe6\x9c\xac", "\"\xe6\x97\xa5\xe6\x9c\xac\""},
                 {"\xf0\x9f\x90\x8d", "\"\xf0\x9f\x90\x8d\""},
                 {"lone \xed\xa0\x80 surrogate", "\"lone \\\\ud800 surrogate\""},
                 {"no \xff\xfe utf-8", "\"no \\ufffd\\ufffd utf-8\""},
                 {"overlong \xc0\x80", "\"overlong \\ufffd\\ufffd\""},
                 {"past the end \xf4\x90\x80\x80", "\"past the end \\ufffd\\ufffd\\ufffd\\ufffd\""},
                 {"cut \xe6\x97", "\"cut \\ufffd\\ufffd\""},
                 {"delete \x7f", "\"delete \\u007f\""}};
    enum { NAMES = sizeof names / sizeof *names };
    start_over();
    for (uint32_t i = 0; i < NAMES; i++)
        for (uint32_t twice = 0; twice < 2; twice++)
            add_event(&m.threads[0], names[i].name, 0, 100 * i, 100 * i + 50);
    add_event(&m.threads[0], "", 0, 5000, 5001);
    op_event *nul = add_event(&m.threads[0], "", 0, 5100, 5101);
    nul->name = op_names_intern("nul\0byte", 8);
    op_result *r = build(&m);
    op_result_name_thread(r, 0, "\"\\\n\xff");
    char *text = trace_of(r, "", names[0].name);
    for (uint32_t i = 0; i < NAMES; i++)
        check_has(text, names[i].escaped);
    check_has(text, "\"name\":\"nul\\u0000byte\"");
    check_has(text, "\"name\":\"\",");
    check_has(text, "(\\\"\\\\\\u000a\\ufffd)");
    check_has(text, "\"traceName\": \"a\\\"b\\\\c\"");
    free(text);
    op_result_free(r);
}

#define TOKEN(tag, dtype, length) ((uint32_t)(tag) | (uint32_t)(dtype) << 8 | (uint32_t)(length) << 16)

/* An op with every kind of input. */
static op_result *with_inputs(void) {
    double value = 0.5;
    uint32_t half[2];
    memcpy(half, &value, sizeof half);
    const uint32_t minus = UINT32_MAX;
    const uint32_t tokens[] = {0,
                               0,
                               0,
                               TOKEN(OP_INPUT_TENSOR, 6, 2),
                               2,
                               3,
                               3,
                               1,
                               TOKEN(OP_INPUT_TENSOR_WIDE, 4, 1),
                               0,
                               1,
                               minus,
                               minus,
                               TOKEN(OP_INPUT_TENSOR_LIST, 0, 2),
                               TOKEN(OP_INPUT_TENSOR, 6, 1),
                               4,
                               1,
                               TOKEN(OP_INPUT_UNDEFINED, 0, 0),
                               TOKEN(OP_INPUT_INT, 0, 0),
                               minus,
                               minus,
                               TOKEN(OP_INPUT_DOUBLE, 0, 0),
                               half[0],
                               half[1],
                               TOKEN(OP_INPUT_BOOL, 0, 1),
                               TOKEN(OP_INPUT_INT_LIST, 0, 2),
                               1,
                               0,
                               2,
                               0,
                               TOKEN(OP_INPUT_DOUBLE_LIST, 0, 2),
                               half[0],
                               half[1],
                               0,
                               1u << 31,
                               TOKEN(OP_INPUT_BOOL_LIST, 0, 2),
                               1,
                               0,
                               TOKEN(OP_INPUT_TEXT, 0, 5),
                               0x62225c61,
                               0x0a, /* a\"b and a newline */
                               TOKEN(OP_INPUT_NONE, 0, 0),
                               TOKEN(OP_INPUT_OTHER, 0, 0)};
    enum { COUNT_OF_WORDS = sizeof tokens / sizeof *tokens };
    uint32_t words[COUNT_OF_WORDS];
    memcpy(words, tokens, sizeof tokens);
    words[0] = OP_ARGS_HEADER(OP_ARGS_TORCH, COUNT_OF_WORDS - 1);
    start_over();
    add_block(&m.threads[0], add_event(&m.threads[0], "op", 0, 10, 20), words, COUNT_OF_WORDS);
    return build(&m);
}

static void inputs_stand_as_kineto_writes_them(void) {
    op_result *r = with_inputs();
    char *text = trace_of(r, "", "t");
    check_has(text, "\"Input Dims\":[[2,3],[4294967296],[[4],[]],[],[],[],[],[],[],[],[],[]]");
    check_has(text, ",\"Input Strides\":[[3,1],[-1],[[1],[]],[],[],[],[],[],[],[],[],[]]");
    check_has(text,
              ",\"Input type\":[\"float\",\"long int\",\"TensorList\",\"Scalar\",\"Scalar\",\"Scalar\","
              "\"ScalarList\",\"ScalarList\",\"ScalarList\",\"\",\"\",\"\"]");
    check_has(text, "\"Concrete Inputs\":[\"\",\"\",\"\",\"-1\",\"0.5\",\"True\",\"[1, "
                    "2]\",\"[0.5, -0.]\",\"[True, False]\","
                    "\"a\\\\\\\"b\\u000a\",\"\",\"\"]");
    free(text);
    op_result_free(r);
}

static void text_arguments_are_shown(void) {
    start_over();
    made_thread *t = &m.threads[0];
    add_block(t, add_event(t, "cut", 0, 10, 20), (uint32_t[]){OP_ARGS_HEADER(OP_ARGS_TEXT, 1)}, 1);
    add_block(t, add_event(t, "lied", 0, 30, 40), (uint32_t[]){OP_ARGS_HEADER(OP_ARGS_TEXT, 1), 99999},
              2);
    add_block(t, add_event(t, "said", 0, 50, 60),
              (uint32_t[]){OP_ARGS_HEADER(OP_ARGS_TEXT, 2), 3, 0x005c2261}, 3);
    op_result *r = build(&m);
    char *text = trace_of(r, "", "t");
    check_has(text, "\"args\":\"a\\\"\\\\\"");
    free(text);
    op_result_free(r);
}

static void memory_stands_as_kineto_writes_it(void) {
    start_over();
    made_thread *t = &m.threads[0];
    t->os_tid = 71;
    const uint32_t minus = UINT32_MAX;
    uint32_t words[] = {OP_ARGS_HEADER(OP_ARGS_MEMORY, OP_ARGS_MEMORY_WORDS),
                        0x1000,
                        1,
                        64,
                        0,
                        128,
                        0,
                        256,
                        0,
                        0,
                        minus};
    op_event *e = add_event(t, "[memory]", 0, 1000, 1000);
    e->kind = OP_MEMORY;
    add_block(t, e, words, 1 + OP_ARGS_MEMORY_WORDS);
    e = add_event(t, "[memory]", 0, 2000, 2000);
    e->kind = OP_MEMORY;
    words[3] = (uint32_t)-64;
    words[4] = words[5] = words[6] = words[7] = words[8] = minus;
    add_block(t, e, words, 1 + OP_ARGS_MEMORY_WORDS);
    add_event(t, "[memory]", 0, 3000, 0)->kind = OP_MEMORY;
    op_result *r = build(&m);
    char *text = trace_of(r, "", "t");
    check_event(
        text,
        "{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"cpu_instant_event\",\"name\":\"[memory]\",\"pid\":%d,"
        "\"tid\":71,\"ts\":5000001.000,\"args\":{\"Total Reserved\":256,\"Total "
        "Allocated\":128,\"Bytes\":64,\"Device Id\":-1,\"Device Type\":0,\"Addr\":4294971392,"
        "\"Ev Idx\":0}}",
        (int)getpid());
    check_has(text, "\"args\":{\"Bytes\":-64,\"Device Id\":-1,\"Device Type\":0,\"Addr\":4294971392,"
                    "\"Ev Idx\":1}}");
    check_has(text, "\"ts\":5000003.000,\"args\":{\"Ev Idx\":2}}");
    free(text);
    op_result_free(r);
}

/* Larger than all buffers on the way, so that every piece is at some buffer's end. */
static void large_traces_are_whole(void) {
    enum { MANY = 6000 };
    static op_event events[MANY];
    for (uint32_t i = 0; i < MANY; i++) {
        char name[600];
        memset(name, '"', sizeof name);
        snprintf(name, 16, "%u", i);
        name[strlen(name)] = '\n';
        events[i] = (op_event){.start = MADE_START + i,
                               .end = MADE_START + i + 1,
                               .kind = OP_RANGE,
                               .name = op_names_intern(name, 300 + i % 300)};
    }
    const op_raw raw = {.count = MANY, .events = events};
    const op_steps none = {0};
    op_result *r = build_from(&raw, 1, &none);
    char *first = trace_of(r, "", "t"), *again = trace_of(r, "", "t");
    CHECK(strlen(first) > 3u << 20);
    CHECK_TEXT(again, first);
    free(first);
    free(again);
    op_result_free(r);
}

static void a_full_disk_is_said(void) {
    start_over();
    add_event(&m.threads[0], "mm", 0, 10, 20);
    op_result *r = build(&m);
    int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    CHECK_FAILS(op_result_write_trace(r, fd, "", "t"), OP_EIO, "No space left");
    close(fd);
    CHECK_FAILS(op_result_write_trace(r, -1, "", "t"), OP_EIO, "Bad file descriptor");
    op_result_free(r);
}

/* The ranges between two calls form a cycle, which no recording has. Visiting each row once terminates;
 * walking from call to enclosing call does not. */
static void nobody_walks_from_call_to_call(void) {
    start_over();
    made_thread *t = &m.threads[0];
    add_event(t, "outer", 0, 1000, 1900)->kind = OP_PYTHON_CALL;
    add_event(t, "range", 1, 1100, 1800);
    add_event(t, "range", 2, 1200, 1700);
    add_event(t, "inner", 3, 1300, 1400)->kind = OP_PYTHON_CALL;
    op_result *r = build(&m);
    char *text = trace_of(r, "", "t");
    check_has(text, "\"Python id\":4,\"Python parent id\":1,");
    free(text);
    ((int32_t *)r->columns.parent)[1] = 2; /* its storage belongs to the result */
    alarm(10);
    text = trace_of(r, "", "t");
    alarm(0);
    check_has(text, "\"Python id\":4,");
    free(text);
    op_result_free(r);
}

int main(void) {
    RUN(checker_knows_json);
    RUN(empty_result_is_a_trace);
    RUN(events_stand_as_kineto_writes_them);
    RUN(async_events_are_a_pair);
    RUN(open_events_last_to_the_end);
    RUN(any_name_is_valid_json);
    RUN(inputs_stand_as_kineto_writes_them);
    RUN(text_arguments_are_shown);
    RUN(memory_stands_as_kineto_writes_it);
    RUN(nobody_walks_from_call_to_call);
    RUN(large_traces_are_whole);
    RUN(a_full_disk_is_said);
    return 0;
}
