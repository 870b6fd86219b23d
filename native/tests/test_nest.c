#include "made.h"
#include "sources/call.h"

#include <signal.h>
#include <sys/wait.h>

static made m;
static made_thread *const first = &m.threads[0];

static void check_tree(const op_result *r, const int32_t *parents, const int64_t *selves) {
    for (uint64_t row = 0; row < r->columns.count; row++) {
        CHECK_EQ(r->columns.parent[row], parents[row]);
        CHECK_EQ(r->columns.self_ns[row], selves[row]);
    }
}

/* forward() { addmm { hook() { mul } }  len() } */
static void ops_and_calls_nest_in_one_tree(void) {
    memset(&m, 0, sizeof m);
    add_kind(first, "forward", 0, 10, 500, OP_PYTHON_CALL);
    add_kind(first, "addmm", 0, 100, 400, OP_TORCH);
    add_kind(first, "hook", 1, 150, 300, OP_PYTHON_CALL);
    add_kind(first, "mul", 1, 200, 250, OP_TORCH);
    add_kind(first, "len", 1, 420, 430, OP_C_CALL);
    op_result *r = build(&m);
    check_tree(r, (int32_t[]){-1, 0, 1, 2, 0}, (int64_t[]){180, 150, 100, 50, 10});
    op_result_free(r);
}

/* with outer: with manager(): mul; manager()'s range outlives the call that began it, and ends in
 * another call that lasts longer. Lines: enter at 7 of the caller, the range at 70 of enter. */
static void a_range_that_outlives_its_call_lies_further_out(void) {
    memset(&m, 0, sizeof m);
    add_kind(first, "main", 0, 10, 1000, OP_PYTHON_CALL);
    add_kind(first, "outer", 0, 20, 900, OP_RANGE)->line = 5;
    add_kind(first, "enter", 1, 100, 200, OP_PYTHON_CALL)->line = 7;
    add_kind(first, "next", 2, 110, 190, OP_C_CALL)->line = 60;
    add_kind(first, "managed", 1, 150, 600, OP_RANGE)->line = 70;
    add_kind(first, "mul", 2, 300, 400, OP_TORCH)->line = 8;
    add_kind(first, "exit", 1, 500, 700, OP_PYTHON_CALL)->line = 7;
    add_kind(first, "div", 2, 550, 560, OP_TORCH)->line = 75;
    add_kind(first, "sub", 1, 650, 660, OP_TORCH)->line = 76;
    op_result *r = build(&m);
    check_tree(r, (int32_t[]){-1, 0, 1, 2, 1, 4, 1, 4, 6},
               (int64_t[]){110, 880 - (700 - 100), 20, 80, 340, 100, 190, 10, 10});
    static const uint16_t lines[] = {0, 5, 7, 60, 7, 8, 7, 7, 76};
    static const bool crosses[] = {false, false, true, true, false, false, true, false, false};
    for (int row = 0; row < 9; row++) {
        CHECK_EQ(r->columns.line[row], lines[row]);
        CHECK_EQ(r->columns.flags[row] & OP_FLAG_CROSSING ? 1 : 0, crosses[row]);
    }
    op_result_free(r);
}

static void open_calls_are_no_rows(void) {
    memset(&m, 0, sizeof m);
    add_kind(first, "module", 0, 0, 0, OP_PYTHON_CALL)->flags = OP_FLAG_BEFORE;
    op_event *test = add_kind(first, "test", 1, 0, 800, OP_PYTHON_CALL);
    test->flags = OP_FLAG_BEFORE;
    test->line = 12;
    add_kind(first, "f", 2, 100, 200, OP_PYTHON_CALL);
    add_kind(first, "mul", 0, 300, 400, OP_TORCH);
    op_result *r = build(&m);
    CHECK_EQ(r->columns.count, 2);
    CHECK_EQ(r->stats.events, 2);
    check_tree(r, (int32_t[]){-1, -1}, (int64_t[]){100, 100});
    uint32_t count;
    const op_open_call *calls = op_result_open_calls(r, &count);
    CHECK_EQ(count, 2);
    CHECK_EQ(calls[0].name, name_id("module"));
    CHECK_EQ(calls[0].end_ns, -1);
    CHECK_EQ(calls[1].line, 12);
    CHECK_EQ(calls[1].end_ns, 800);
    op_result_free(r);
}

static void an_async_range_is_nobodys_parent(void) {
    memset(&m, 0, sizeof m);
    add_kind(first, "task", 0, 10, 300, OP_RANGE)->flags = OP_SCOPE_USER | OP_FLAG_ASYNC;
    add_kind(first, "f", 0, 100, 200, OP_PYTHON_CALL);
    op_result *r = build(&m);
    check_tree(r, (int32_t[]){-1, -1}, (int64_t[]){0, 100});
    op_result_free(r);
}

/* ---- recording -------------------------------------------------------------------------- */

static const char f_code, g_code, h_code;

static op_result *record_calls(void (*program)(op_thread *t)) {
    folder f = make_folder();
    open_roomy_session(&f);
    CHECK_OK(op_window_start());
    op_thread *t = op_thread_prepare(op_recording(), 0);
    CHECK(t && op_calls_grow(t, op_recording()));
    program(t);
    op_result *r = stop_window();
    close_session(&f);
    return r;
}

static void begin_call(op_thread *t, const char *name, const void *code) {
    op_call_begin(t, code, name_id(name), OP_PYTHON_CALL, 0, 0);
}

/* g and h end unseen, together with f; the end of a call that is not open is ignored. */
static void unseen_ends(op_thread *t) {
    begin_call(t, "f", &f_code);
    begin_call(t, "g", &g_code);
    op_call_pass(t, &m, false);
    begin_call(t, "h", &h_code);
    op_call_end(t, &f_code);
    op_call_end(t, &h_code);
    CHECK_EQ(t->call_depth, 0);
    begin_call(t, "h", &h_code);
    op_call_end(t, &h_code);
}

static void an_end_closes_what_it_finds_above(void) {
    op_result *r = record_calls(unseen_ends);
    static const int32_t parents[] = {-1, 0, 1, -1};
    CHECK_EQ(r->columns.count, 4);
    for (int row = 0; row < 4; row++) {
        CHECK_EQ(r->columns.parent[row], parents[row]);
        CHECK(r->columns.duration_ns[row] >= 0);
    }
    op_result_free(r);
}

static void many(op_thread *t) {
    for (int i = 0; i < 70000; i++)
        begin_call(t, "deep", &f_code);
    for (int i = 0; i < 70000; i++)
        op_call_end(t, &f_code);
    CHECK_EQ(t->call_depth, 0);
}

static void calls_past_the_deepest_are_counted(void) {
    op_result *r = record_calls(many);
    CHECK_EQ(r->columns.count, 65536);
    CHECK_EQ(r->columns.parent[65535], 65534);
    CHECK_EQ(stats_of(r).dropped, 70000 - 65536);
    for (uint64_t row = 0; row < r->columns.count; row++)
        CHECK(r->columns.duration_ns[row] >= 0);
    op_result_free(r);
}

static void calls_that_a_killed_process_was_in(op_thread *t) {
    op_call_begin(t, &f_code, name_id("open before"), OP_PYTHON_CALL, OP_FLAG_BEFORE, 5);
    op_call_begin(t, &g_code, name_id("ended"), OP_PYTHON_CALL, 0, 6);
    op_call_end(t, &g_code);
    op_call_begin(t, &g_code, name_id("open"), OP_PYTHON_CALL, 0, 7);
    op_call_begin(t, &h_code, name_id("inside"), OP_C_CALL, 0, 8);
}

static void check_recovered(const char *path) {
    op_result *r;
    CHECK_OK(op_recover(path, &r));
    CHECK_EQ(r->columns.count, 3);
    static const int32_t parents[] = {-1, -1, 1};
    for (int row = 0; row < 3; row++) {
        CHECK_EQ(r->columns.parent[row], parents[row]);
        CHECK_EQ(r->columns.line[row], 6 + row);
        CHECK_EQ(r->columns.duration_ns[row] >= 0, row == 0);
    }
    uint32_t count, length;
    const op_open_call *before = op_result_open_calls(r, &count);
    CHECK_EQ(count, 1);
    CHECK_TEXT(op_name_text(before->name, &length), "open before");
    op_result_free(r);
}

static void calls_outlive_a_kill(void) {
    folder f = make_folder();
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        open_roomy_session(&f);
        CHECK_OK(op_window_start());
        op_thread *t = op_thread_prepare(op_recording(), 0);
        CHECK(t && op_calls_grow(t, op_recording()));
        calls_that_a_killed_process_was_in(t);
        char path[1024] = {0};
        strncpy(path, op_session_path(), sizeof path - 1);
        CHECK_EQ(write(ends[1], path, sizeof path), sizeof path);
        kill(getpid(), SIGKILL);
    }
    char path[1024];
    CHECK_EQ(read(ends[0], path, sizeof path), sizeof path);
    CHECK_EQ(waitpid(child, NULL, 0), child);
    close(ends[0]);
    close(ends[1]);
    check_recovered(path);
    char command[sizeof f.path + 8];
    snprintf(command, sizeof command, "rm -r %s", f.path);
    CHECK_EQ(system(command), 0);
}

int main(void) {
    RUN(calls_outlive_a_kill);

    RUN(ops_and_calls_nest_in_one_tree);
    RUN(a_range_that_outlives_its_call_lies_further_out);
    RUN(open_calls_are_no_rows);
    RUN(an_async_range_is_nobodys_parent);
    RUN(an_end_closes_what_it_finds_above);
    RUN(calls_past_the_deepest_are_counted);
    return 0;
}
