#include "core/fault.h"
#include "fixture.h"
#include "result/string_table.h"

#include <stdarg.h>

/* ---- traces of autograd's ops ------------------------------------------------------------- */

static op_buffer text;

static void add(const char *format, ...) {
    char line[256];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    CHECK(length > 0 && length < (int)sizeof line);
    CHECK_EQ(op_buffer_add(&text, line, (size_t)length), 0);
}

static void op(int tid, int at, int sequence, unsigned forward_thread) {
    add("%s{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"op\",\"pid\":1,\"tid\":%d,\"ts\":%d,\"dur\":1,"
        "\"args\":{\"Sequence number\":%d,\"Fwd thread id\":%u}}",
        text.used ? "," : "[", tid, at, sequence, forward_thread);
}

static int read_text(op_result **out) {
    op_trace_reader *reader;
    *out = NULL;
    int rc = op_trace_open(&reader, 0, 0);
    if (rc == OP_OK)
        rc = op_trace_feed(reader, text.bytes, text.used);
    if (rc == OP_OK)
        rc = op_trace_feed(reader, "]", 1);
    if (rc == OP_OK)
        rc = op_trace_finish(reader, out);
    op_trace_close(reader);
    return rc;
}

static uint64_t number_of(const op_result *r, uint32_t tid) {
    uint32_t count;
    const op_thread_info *threads = op_result_threads(r, &count);
    for (uint32_t i = 0; i < count; i++)
        if (threads[i].os_tid == tid)
            return threads[i].torch_thread;
    CHECK(false && "a thread of the trace");
    return 0;
}

/* Reads the ops added so far, and checks the numbers of threads 10, 20, ... */
static void check_numbers(int count, const uint64_t *numbers) {
    op_result *r;
    CHECK_OK(read_text(&r));
    for (int i = 0; i < count; i++)
        CHECK_EQ(number_of(r, 10 * ((uint32_t)i + 1)), numbers[i]);
    op_result_free(r);
    op_buffer_free(&text);
}
#define NUMBERS(...)                                                                                   \
    check_numbers(sizeof((uint64_t[]){__VA_ARGS__}) / 8, (const uint64_t[]){__VA_ARGS__})

/* ---- the tests ---------------------------------------------------------------------------- */

static void the_thread_of_the_forward_ops_is_found(void) {
    op(10, 0, 5, 0);
    op(10, 2, 6, 0);
    op(20, 10, 6, 3);
    op(20, 12, 5, 3);
    NUMBERS(3, 0);
}

static void two_threads_keep_their_own(void) {
    for (int i = 0; i < 5; i++)
        op(10, 2 * i, i, 0);
    for (int i = 3; i < 9; i++)
        op(20, 2 * i, i, 0);
    for (int i = 0; i < 5; i++)
        op(30, 100 + 2 * i, i, 1);
    for (int i = 3; i < 9; i++)
        op(30, 200 + 2 * i, i, 2);
    NUMBERS(1, 2, 0);
}

static void threads_that_cannot_be_told_apart_have_none(void) {
    for (int tid = 10; tid <= 20; tid += 10)
        for (int i = 0; i < 3; i++)
            op(tid, 2 * i, i, 0);
    for (int i = 0; i < 3; i++)
        op(30, 100 + 2 * i, i, 1);
    NUMBERS(0, 0, 0);
}

/* Alone, number 1 fits either thread; number 2 only fits the other. */
static void a_thread_that_is_taken_is_no_candidate(void) {
    for (int i = 0; i < 2; i++)
        op(10, 2 * i, i, 0);
    for (int i = 0; i < 4; i++)
        op(20, 2 * i, i, 0);
    for (int i = 0; i < 2; i++)
        op(30, 100 + 2 * i, i, 1);
    for (int i = 0; i < 4; i++)
        op(30, 200 + 2 * i, i, 2);
    NUMBERS(1, 2, 0);
}

static void two_numbers_do_not_share_a_thread(void) {
    for (int i = 0; i < 4; i++)
        op(10, 2 * i, i, 0);
    for (int i = 0; i < 3; i++)
        op(20, 100 + 2 * i, i, 1);
    for (int i = 0; i < 3; i++)
        op(20, 200 + 2 * i, i, 2);
    NUMBERS(0, 0);
    for (int i = 0; i < 4; i++)
        op(10, 2 * i, i, 0);
    for (int i = 0; i < 3; i++)
        op(20, 100 + 2 * i, i, 1);
    for (int i = 0; i < 4; i++)
        op(20, 200 + 2 * i, i, 2);
    NUMBERS(2, 0);
}

/* Each of autograd's nodes is an op in an op, both with one number. */
static void repeats_are_one_vote(void) {
    op(10, 0, 1, 0);
    op(10, 0, 1, 0);
    op(10, 0, 1, 0);
    op(20, 0, 1, 0);
    op(20, 2, 2, 0);
    op(30, 100, 1, 4);
    op(30, 100, 1, 4);
    op(30, 102, 2, 4);
    NUMBERS(0, 4, 0);
}

static void what_began_later_is_no_forward_op(void) {
    op(10, 0, 1, 0);
    op(20, 200, 1, 0);
    op(30, 100, 1, 1);
    NUMBERS(1, 0, 0);
}

static void numbers_of_too_many_threads_tell_nothing(void) {
    for (int tid = 10; tid <= 650; tid += 10)
        op(tid, 0, 1, 0);
    op(10, 2, 2, 0);
    op(700, 100, 1, 1);
    op(700, 102, 2, 1);
    op(700, 104, 3, 2);
    NUMBERS(1, 0);
}

#ifdef OP_FAULTS
static void every_allocation_may_fail(void) {
    op(10, 0, 5, 0);
    op(20, 10, 5, 3);
    unsigned n = 0;
    for (bool fired = true; fired;) {
        op_result *r;
        op_fault_arm(OP_FAULT_MEMORY, ++n);
        int rc = read_text(&r);
        fired = op_fault_fired() > 0;
        op_fault_arm(OP_FAULT_MEMORY, 0);
        CHECK(rc == OP_OK || (fired && rc == OP_ENOMEM));
        if (rc == OP_OK)
            CHECK_EQ(number_of(r, 10), 3);
        op_result_free(r);
    }
    CHECK(n > 10);
    op_buffer_free(&text);
}
#endif

int main(void) {
    RUN(the_thread_of_the_forward_ops_is_found);
    RUN(two_threads_keep_their_own);
    RUN(threads_that_cannot_be_told_apart_have_none);
    RUN(a_thread_that_is_taken_is_no_candidate);
    RUN(two_numbers_do_not_share_a_thread);
    RUN(repeats_are_one_vote);
    RUN(what_began_later_is_no_forward_op);
    RUN(numbers_of_too_many_threads_tell_nothing);
#ifdef OP_FAULTS
    RUN(every_allocation_may_fail);
#endif
    return 0;
}
