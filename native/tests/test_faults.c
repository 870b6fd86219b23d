/* Every system request fails in turn: the n-th of each kind, until there is no n-th. Each run has its
 * own process, where no name is known yet and leaks are reported at the end. Whatever fails, nothing
 * crashes, the failure is reported, and the next session works. */
#include "core/fault.h"

#include "core/collector.h"
#include "core/record.h"
#include "fixture.h"
#include "json.h"
#include "others.h"

#include <sys/syscall.h>

enum {
    THREADS = 3,
    EVENTS = 2000,
    MEMORY = 2 * (THREADS + 1),
    BEGUN = (THREADS + 1) * EVENTS + MEMORY
};

static folder here;
static bool faults_are_armed;

/* A call may fail while faults are armed, with a message. */
static bool worked(int rc) {
    CHECK(rc == OP_OK ||
          (faults_are_armed && rc <= OP_ENOMEM && rc >= OP_EFORMAT && op_last_error()[0]));
    return rc == OP_OK;
}

static void *record_here(void *unused) {
    (void)unused;
    char text[32];
    snprintf(text, sizeof text, "of thread %lx", (unsigned long)pthread_self());
    uint32_t mine = name_id(text), shared = name_id("of all");
    op_slot outer = begin_numbered(mine, 0);
    op_memory_change change = {.address = (uintptr_t)&outer, .bytes = 64, .device_index = -1};
    op_memory_changed(name_id("[memory]"), &change);
    change.bytes = OP_BYTES_UNKNOWN;
    op_memory_changed(name_id("[memory]"), &change);
    for (uint32_t i = 1; i < EVENTS; i++) {
        uint32_t words[3] = {OP_ARGS_HEADER(OP_ARGS_TEXT, 2), 4, i};
        op_slot slot = op_begin(shared, OP_TORCH, 0, i, words, i % 2 ? 3 : 0);
        op_end(&slot);
    }
    op_end(&outer);
    return NULL;
}

static void record_everywhere(void) {
    pthread_t threads[THREADS];
    start_threads(threads, THREADS, record_here, NULL, 0);
    record_here(NULL);
    join_threads(threads, THREADS);
}

/* Every event that began is there, or the result says that it is not. */
static void check_accounts(const op_result *r) {
    op_columns c = columns_of(r);
    op_stats s = stats_of(r);
    CHECK_EQ(c.count + s.dropped, BEGUN);
    CHECK(s.dropped == 0 || faults_are_armed);
    uint32_t unnamed = 0;
    for (uint64_t row = 0; row < c.count; row++)
        unnamed += c.name[row] == OP_NAME_OVERFLOW;
    CHECK_EQ(s.names_overflowed, unnamed);
    check_sound(r);
}

static void write_trace(const op_result *r) {
    FILE *file = tmpfile();
    CHECK(file != NULL);
    if (worked(op_result_write_trace(r, fileno(file), "", "t"))) {
        size_t size = (size_t)lseek(fileno(file), 0, SEEK_CUR);
        char *text = calloc(size + 1, 1);
        CHECK(text && pread(fileno(file), text, size, 0) == (ssize_t)size);
        CHECK(is_json(text));
        free(text);
    }
    fclose(file);
}

static void count_flops(op_result *r, uint64_t rows) {
    int64_t *per_row = calloc(rows + 1, sizeof *per_row);
    CHECK(per_row != NULL);
    for (uint64_t i = 0; i < rows; i++)
        per_row[i] = 7;
    if (worked(op_result_count_flops(r, per_row, rows)) && columns_of(r).count)
        CHECK_EQ(op_result_flops(r)[0], 7);
    free(per_row);
}

static void read_result(op_result *r) {
    const op_group *rows;
    const int64_t *samples;
    const op_path *nodes;
    uint64_t count, counted = 0, shown = 0;
    for (uint64_t row = 0; row < columns_of(r).count; row++)
        shown += (columns_of(r).flags[row] & OP_FLAG_CREDITED) == 0;
    for (int by_inputs = OP_GROUP_BY_NAME; by_inputs <= OP_GROUP_BY_INPUTS; by_inputs++)
        if (worked(op_result_groups(r, by_inputs, 0, &rows, &count, &samples))) {
            counted = 0;
            for (uint64_t i = 0; i < count; i++)
                counted += rows[i].count;
            CHECK_EQ(counted, shown);
            if (by_inputs == OP_GROUP_BY_INPUTS)
                count_flops(r, count);
        }
    if (worked(op_result_groups(r, OP_GROUP_BY_OVERLOAD, 2, &rows, &count, &samples)))
        CHECK(count <= shown);
    op_memory_columns memory;
    if (worked(op_result_memory_columns(r, &memory)))
        CHECK_EQ(memory.device[0], 0);
    const op_memory_use *use;
    if (worked(op_result_memory_use(r, 0, &use)))
        CHECK_EQ(use->freed, use->allocated);
    if (worked(op_result_paths(r, 3, &nodes, &count)))
        CHECK(count <= 3);
    write_trace(r);
}

/* Reads the session file as if this process had died here. */
static void recover_copy(void) {
    char copy[sizeof here.path + 8], buffer[4096];
    snprintf(copy, sizeof copy, "%s/copy", here.path);
    FILE *in = fopen(op_session_path(), "rb"), *out = fopen(copy, "wb");
    CHECK(in && out);
    for (size_t n; (n = fread(buffer, 1, sizeof buffer, in)) > 0;)
        CHECK_EQ(fwrite(buffer, 1, n, out), n);
    fclose(in);
    fclose(out);
    op_result *r;
    if (worked(op_recover(copy, &r))) {
        CHECK(columns_of(r).count <= BEGUN);
        check_sound(r);
        op_result_free(r);
    }
    CHECK_EQ(unlink(copy), 0);
}

static void record_a_window(void) {
    op_result *r;
    if (!worked(op_window_start()))
        return;
    worked(op_step_begin(1));
    record_everywhere();
    worked(op_step_begin(2));
    worked(op_step_end());
    if (worked(op_window_peek(&r))) {
        check_accounts(r);
        op_result_free(r);
    }
    recover_copy();
    if (worked(op_window_stop(&r))) {
        check_accounts(r);
        read_result(r);
        op_result_free(r);
    }
    CHECK(!op_window_is_open());
}

static void run_session(int windows) {
    const op_config config = {
        .pool_dir = here.path, .spill_dir = here.path, .pool_bytes = 2 * OP_CHUNK_MAX};
    int before = count_tasks();
    if (worked(op_session_open(&config))) {
        while (windows-- > 0)
            record_a_window();
        check_tasks_go(before);
    }
    op_session_close();
}

static void *tell_tid(void *tid) {
    *(long *)tid = syscall(SYS_gettid);
    return NULL;
}

/* TSan starts its own thread with a process's first one, which must not count as ours. Nor must that
 * first one, which stays listed for an instant after it was joined. */
static void start_a_first_thread(void) {
    long tid = 0;
    char path[64];
    on_another_thread(tell_tid, &tid);
    snprintf(path, sizeof path, "/proc/self/task/%ld", tid);
    for (int tries = 0; tries < 100000 && access(path, F_OK) == 0; tries++)
        sched_yield();
    CHECK(access(path, F_OK) != 0);
}

/* In a child: whether there was an n-th request of this kind to fail. */
static bool fails_at(enum op_fault_kind kind, unsigned nth) {
    fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        here = make_folder();
        start_a_first_thread();
        faults_are_armed = true;
        op_fault_arm(kind, nth);
        run_session(2);
        bool fired = op_fault_fired() > 0;
        op_fault_arm(kind, 0);
        faults_are_armed = false;
        run_session(1);
        remove_folder(&here);
        exit(fired ? 0 : 42);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 42))
        fprintf(stderr, "with failure %u of kind %d: status %x\n", nth, (int)kind, (unsigned)status);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 42);
    return WEXITSTATUS(status) == 0;
}

static void each_fails(enum op_fault_kind kind, unsigned at_least) {
    unsigned n = 1;
    while (fails_at(kind, n))
        n++;
    printf("   %u places\n", n - 1);
    CHECK(n > at_least);
}

static void every_allocation_fails(void) { each_fails(OP_FAULT_MEMORY, 40); }
static void every_mapping_fails(void) { each_fails(OP_FAULT_MAP, 8); }
static void every_file_allocation_fails(void) { each_fails(OP_FAULT_FALLOCATE, 2); }
static void every_write_fails(void) { each_fails(OP_FAULT_WRITE, 8); }
static void every_open_fails(void) { each_fails(OP_FAULT_OPEN, 6); }
static void every_thread_fails(void) { each_fails(OP_FAULT_THREAD, 1); }

int main(void) {
    RUN(every_allocation_fails);
    RUN(every_mapping_fails);
    RUN(every_file_allocation_fails);
    RUN(every_write_fails);
    RUN(every_open_fails);
    RUN(every_thread_fails);
    return 0;
}
