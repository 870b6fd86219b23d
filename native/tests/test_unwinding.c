#include "chain.h"
#include "core/fault.h"
#include "json.h"

#include <pthread.h>
#include <sys/wait.h>

static void callers_are_named_in_order(void) {
    open_session(&here);
    start(OP_STACK_FRAMES);
    outer(record_named, "in the chain");
    op_result *r = stop_window();
    CHECK_EQ(columns_of(r).count, 1);
    stack s = stack_of(r, "in the chain");
    check_chain(&s);
    CHECK_TEXT(s.symbols[4], "callers_are_named_in_order");
    CHECK(has_symbol(&s, "main"));
    CHECK_EQ(s.end, OP_CPP_BOTTOM);
    finish(r);
}

static void nothing_is_unwound_unless_asked(void) {
    open_session(&here);
    CHECK_OK(op_window_start());
    outer(record_named, "in the chain");
    CHECK_FAILS(op_window_unwind(8), OP_EBUSY, "open");
    op_result *r = stop_window();
    CHECK_EQ(op_result_cpp_stack(r, 0), 0);
    CHECK_EQ(stack_of_row(r, 0).count, 0);
    CHECK_FAILS(op_window_unwind(OP_STACK_FRAMES + 1), OP_ELIMIT, "at most 256");
    finish(r);
}

static void record_both(void *unused) {
    (void)unused;
    record_named("first");
    record_named("second");
}

/* Including stacks that differ only in their innermost frames, which first appear in the second. */
static void equal_stacks_are_kept_once(void) {
    open_session(&here);
    start(OP_STACK_FRAMES);
    op_slot around = begin("not unwound");
    outer(record_both, NULL);
    inner(record_named, "shorter");
    op_end(&around);
    op_result *r = stop_window();
    const op_cpp_frame *frames;
    uint64_t count;
    CHECK_OK(op_result_cpp_frames(r, &frames, &count));
    stack first = stack_of(r, "first"), second = stack_of(r, "second"),
          shorter = stack_of(r, "shorter");
    CHECK_EQ(first.count, second.count);
    for (uint32_t i = 0; i < first.count; i++)
        CHECK_EQ(first.frames[i].address, second.frames[i].address);
    CHECK_EQ(shorter.count, first.count - 2);
    CHECK_TEXT(shorter.symbols[1], "chain_inner");
    CHECK_EQ(count, first.count + 3); /* hidden and inner again, and this function's second call */
    CHECK_EQ(op_result_cpp_stack(r, (uint64_t)row_of(r, "not unwound")), 0);
    finish(r);
}

static void a_deeper_stack_keeps_its_innermost(void) {
    static const unsigned depths[] = {3, 300, 5000};
    for (int i = 0; i < 3; i++) {
        open_roomy_session(&here);
        start(i == 0 ? 5 : OP_STACK_FRAMES);
        deep(record_named, "deep", depths[i]);
        outer(record_named, "after it");
        op_result *r = stop_window();
        stack s = stack_of(r, "deep"), after = stack_of(r, "after it");
        CHECK_EQ(s.count, i == 0 ? 5 : OP_STACK_FRAMES);
        CHECK_EQ(s.end, OP_CPP_BEYOND);
        CHECK_TEXT(s.symbols[0], "chain_deep");
        check_chain(&after);
        finish(r);
    }
}

static void an_async_event_keeps_its_own(void) {
    open_session(&here);
    start(OP_STACK_FRAMES);
    op_slot around = op_begin_unwound(name_id("around"), OP_RANGE, OP_SCOPE_USER, 0, NULL, 0);
    outer(record_named, "inside");
    op_slot async = op_begin_unwound(name_id("async"), OP_NVTX, OP_FLAG_ASYNC, 0, NULL, 0);
    op_end(&async);
    op_end(&around);
    op_result *r = stop_window();
    stack s = stack_of(r, "inside"), outside = stack_of(r, "around");
    check_chain(&s);
    CHECK(!has_symbol(&outside, "chain_outer"));
    CHECK(op_result_cpp_stack(r, (uint64_t)row_of(r, "async")) != 0);
    finish(r);
}

static void the_trace_tells_them(void) {
    open_session(&here);
    start(OP_STACK_FRAMES);
    outer(record_named, "in the chain");
    op_result *r = stop_window();
    FILE *file = tmpfile();
    CHECK(file != NULL);
    CHECK_OK(op_result_write_trace(r, fileno(file), "", "t"));
    static char text[1 << 16];
    CHECK(pread(fileno(file), text, sizeof text - 1, 0) > 0);
    CHECK(strstr(text, "\"C++ stack\":\"chain_hidden;chain_inner;") != NULL);
    CHECK(is_json(text));
    fclose(file);
    finish(r);
}

/* ---- threads and windows ------------------------------------------------------------------ */

enum { THREADS = 3, EVENTS = 2000 };

static void record_in_turns(void *unused) {
    (void)unused;
    record_named("of a thread");
}

static void *record_on_a_thread(void *unused) {
    for (unsigned i = 0; i < EVENTS; i++) {
        if (i % 2)
            deep(record_in_turns, NULL, i % 50);
        else
            outer(record_in_turns, NULL);
    }
    return unused;
}

/* Enough to fill and spill chunks, in several windows: each records the frames of earlier ones
 * again. */
static void threads_have_stacks_of_their_own(void) {
    open_session(&here);
    for (int window = 0; window < 3; window++) {
        start(OP_STACK_FRAMES);
        pthread_t threads[THREADS];
        for (int i = 0; i < THREADS; i++)
            CHECK_EQ(pthread_create(&threads[i], NULL, record_on_a_thread, NULL), 0);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        op_result *r = stop_window();
        CHECK_EQ(columns_of(r).count, THREADS * EVENTS);
        CHECK_EQ(stats_of(r).dropped, 0);
        for (uint64_t row = 0; row < columns_of(r).count; row++) {
            stack s = stack_of_row(r, row);
            if (row % EVENTS % 2)
                CHECK_TEXT(s.symbols[row % EVENTS % 50], "chain_deep");
            else
                check_chain(&s);
            CHECK(has_symbol(&s, "record_on_a_thread"));
        }
        const op_cpp_frame *frames;
        uint64_t count;
        CHECK_OK(op_result_cpp_frames(r, &frames, &count));
        CHECK(count < 400); /* of all threads together */
        check_sound(r);
        op_result_free(r);
    }
    CHECK_OK(op_window_unwind(0));
    close_session(&here);
    here = make_folder();
}

static void be_a_child(void) {
    here = make_folder();
    open_session(&here);
    start(OP_STACK_FRAMES);
    outer(record_named, "in the child");
    op_result *r = stop_window();
    stack s = stack_of(r, "in the child");
    check_chain(&s);
    finish(r);
    remove_folder(&here);
}

static void fork_here(void *data) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        be_a_child();
        _exit(0);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
    record_named(data);
}

static void a_child_unwinds_for_itself(void) {
    open_session(&here);
    start(OP_STACK_FRAMES);
    record_named("before");
    outer(fork_here, "after the fork");
    op_result *r = stop_window();
    stack s = stack_of(r, "after the fork");
    check_chain(&s);
    finish(r);
}

#ifdef OP_FAULTS
/* The n-th request of a kind fails: no event is lost, and a stack is complete or missing. */
static void refusals_lose_no_event(enum op_fault_kind kind) {
    for (unsigned nth = 1;; nth++) {
        open_roomy_session(&here);
        start(OP_STACK_FRAMES);
        op_fault_arm(kind, nth);
        outer(record_both, NULL);
        op_result *r = NULL;
        int rc = op_window_stop(&r);
        const op_cpp_frame *frames;
        uint64_t count;
        if (rc == OP_OK)
            rc = op_result_cpp_frames(r, &frames, &count);
        bool fired = op_fault_fired() > 0;
        op_fault_arm(kind, 0);
        CHECK(rc == OP_OK || (fired && rc == OP_ENOMEM && op_last_error()[0]));
        if (r) {
            CHECK_EQ(columns_of(r).count + stats_of(r).dropped, 2);
            for (uint64_t row = 0; row < columns_of(r).count; row++) {
                stack s = stack_of_row(r, row);
                CHECK(s.count == 0 || s.count > 4);
            }
        }
        op_result_free(r);
        CHECK_OK(op_window_unwind(0));
        close_session(&here);
        here = make_folder();
        if (!fired) {
            CHECK(nth > 1);
            return;
        }
    }
}

static void a_refused_request_loses_no_event(void) {
    refusals_lose_no_event(OP_FAULT_MEMORY);
    refusals_lose_no_event(OP_FAULT_OPEN);
    refusals_lose_no_event(OP_FAULT_MAP);
}
#endif

int main(void) {
    here = make_folder();
    load(CHAIN1);
#ifdef OP_FAULTS
    RUN(a_refused_request_loses_no_event); /* first, while this thread knows no frames */
#endif
    RUN(nothing_is_unwound_unless_asked);
    RUN(callers_are_named_in_order);
    RUN(equal_stacks_are_kept_once);
    RUN(a_deeper_stack_keeps_its_innermost);
    RUN(an_async_event_keeps_its_own);
    RUN(the_trace_tells_them);
    RUN(threads_have_stacks_of_their_own);
    RUN(a_child_unwinds_for_itself);
    remove_folder(&here);
    return 0;
}
