#include "chain.h"

#include <signal.h>
#include <sys/wait.h>

static void copy_file(const char *from, const char *to) {
    static char bytes[1 << 20];
    FILE *source = fopen(from, "rb"), *sink = fopen(to, "wb");
    CHECK(source && sink);
    size_t size = fread(bytes, 1, sizeof bytes, source);
    CHECK(size > 0 && size < sizeof bytes);
    CHECK_EQ(fwrite(bytes, 1, size, sink), size);
    fclose(source);
    fclose(sink);
}

/* A later reader finds names in the file, unless it has been replaced. */
static void only_the_file_that_was_mapped_has_names(void) {
    static const struct {
        const char *replaced_by;
        bool is_named;
    } cases[] = {{CHAIN1, true}, {CHAIN2, false}, {NULL, false}, {"/proc/self/stat", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[sizeof here.path + 32];
        void *kept = library;
        folder other = make_folder();
        snprintf(path, sizeof path, "%s/libchain1.so", other.path);
        copy_file(CHAIN1, path);
        load(path);
        open_session(&here);
        start(OP_STACK_FRAMES);
        outer(record_named, "in the copy");
        op_result *r = stop_window();
        dlclose(library);
        unlink(path);
        if (cases[i].replaced_by)
            copy_file(cases[i].replaced_by, path);
        stack s = stack_of(r, "in the copy");
        CHECK(s.count > 4);
        CHECK_TEXT(s.symbols[0], cases[i].is_named ? "chain_hidden" : "");
        CHECK_TEXT(s.modules[0], path);
        CHECK(s.frames[0].offset > 0);
        CHECK(has_symbol(&s, "main"));
        finish(r);
        unlink(path);
        remove_folder(&other);
        library = kept;
        load(CHAIN1);
    }
}

static void die_in_the_chain(void *pipe_end) {
    record_named("before the end");
    int fd = *(int *)pipe_end;
    CHECK_EQ(write(fd, op_session_path(), strlen(op_session_path())),
             (ssize_t)strlen(op_session_path()));
    kill(getpid(), SIGKILL);
}

static void a_dead_process_is_symbolized_too(void) {
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        name_id("a name that only the child has"); /* otherwise the ids would match the reader's */
        open_session(&here);
        start(OP_STACK_FRAMES);
        outer(die_in_the_chain, &ends[1]);
        _exit(1);
    }
    int status;
    char path[1024] = "", names[1100];
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status));
    CHECK(read(ends[0], path, sizeof path - 1) > 0);
    close(ends[0]);
    close(ends[1]);
    op_result *r = NULL;
    CHECK_OK(op_recover(path, &r));
    stack s = stack_of(r, "before the end");
    check_chain(&s);
    CHECK(has_symbol(&s, "main"));
    op_result_free(r);
    snprintf(names, sizeof names, "%s.names", path);
    unlink(names);
    unlink(path);
}

/* ---- damage ------------------------------------------------------------------------------- */

/* Numbers from a file are not trusted: results are missing or right, and no read is out of bounds. */
static void damaged_records_are_left_out(void) {
    static const uint32_t blocks[][6] = {{0},
                                         {OP_ARGS_HEADER(OP_ARGS_STACK, 0)},
                                         {OP_ARGS_HEADER(OP_ARGS_STACK, 1), 0},
                                         {OP_ARGS_HEADER(OP_ARGS_STACK, 3), 7, 1, 1},
                                         {OP_ARGS_HEADER(OP_ARGS_STACK, 3), UINT32_MAX, 1, 1},
                                         {OP_ARGS_HEADER(OP_ARGS_STACK, 1023), 0, 1, 1},
                                         {OP_ARGS_HEADER(OP_ARGS_MODULE, 3), 0, 1, 1}};
    static const uint32_t numbers[] = {0, 1, 2, 5, 900, UINT32_MAX};
    open_session(&here);
    CHECK_OK(op_window_start());
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        for (size_t j = 0; j < sizeof numbers / sizeof *numbers; j++) {
            op_slot slot = begin("range");
            op_instant_numbered(OP_NAME_NONE, OP_STACK, 0, numbers[j], blocks[i], i ? 4 : 0);
            op_instant_numbered(name_id("/dev/null"), OP_MODULE, 0, numbers[j], blocks[i], i ? 4 : 0);
            op_end(&slot);
        }
    op_result *r = stop_window();
    for (uint64_t row = 0; row < columns_of(r).count; row++)
        CHECK_EQ(stack_of_row(r, row).count, 0);
    finish(r);
}

int main(void) {
    here = make_folder();
    load(CHAIN1);
    RUN(only_the_file_that_was_mapped_has_names);
    RUN(a_dead_process_is_symbolized_too);
    RUN(damaged_records_are_left_out);
    remove_folder(&here);
    return 0;
}
