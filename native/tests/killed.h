/* A process that dies while it records, and what it leaves behind. */
#ifndef KILLED_H
#define KILLED_H

#include "core/collector.h"
#include "core/record.h"
#include "fixture.h"
#include "others.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

enum { EVENTS = 6000 };

static inline void *record_on_a_thread(void *unused) {
    (void)unused;
    record_numbered(name_id("on a thread"), 0, 300);
    op_slot never_ended = begin("never ended");
    (void)never_ended;
    return NULL;
}

/* Numbered events, every other with an argument block, some in the spill file, some in the pool. */
static inline void record_and_spill(void) {
    char text[32];
    snprintf(text, sizeof text, "of process %d",
             (int)getpid()); /* otherwise the ids would match the reader's */
    name_id(text);
    op_slot a = begin("a \"quoted\" name"), b = begin("b");
    op_end(&a); /* out of order */
    op_end(&b);
    for (uint32_t i = 0; i < EVENTS; i++) {
        uint32_t words[5] = {OP_ARGS_HEADER(OP_ARGS_TORCH, 4), 7, 0,
                             OP_INPUT_TENSOR | 6u << 8 | 0u << 16, OP_INPUT_NONE};
        op_slot slot = op_begin(name_id("numbered"), OP_TORCH, 0, i, words, i % 2 ? 5 : 0);
        op_end(&slot);
    }
    on_another_thread(record_on_a_thread, NULL);
}

static inline void wait_for_the_drain(void) {
    for (bool idle = false; !idle; sched_yield()) {
        pthread_mutex_lock(&op_the_collector.lock);
        idle = op_the_collector.spill.count > 2 && !op_the_collector.spill.writer;
        pthread_mutex_unlock(&op_the_collector.lock);
    }
}

typedef struct remains {
    char pool[1024], names[1024], spill[1024];
    pid_t pid;
} remains;

static inline void die_while_recording(int signal_number, const folder *here, int pipe_end) {
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    signal(signal_number, SIG_DFL); /* sanitizers catch it */
    open_session(here);
    op_window_sample(0.25);
    CHECK_OK(op_window_start());
    record_and_spill();
    wait_for_the_drain();
    remains left = {.pid = getpid()};
    memcpy(left.pool, op_the_collector.pool.path, sizeof left.pool);
    memcpy(left.names, op_the_collector.pool.names_path, sizeof left.names);
    memcpy(left.spill, op_the_collector.spill.path, sizeof left.spill);
    CHECK_EQ(write(pipe_end, &left, sizeof left), sizeof left);
    kill(getpid(), signal_number);
    pause();
}

static inline remains killed_by(int signal_number, const folder *here) {
    int ends[2], status;
    remains left;
    CHECK_EQ(pipe(ends), 0);
    fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0)
        die_while_recording(signal_number, here, ends[1]);
    CHECK_EQ(read(ends[0], &left, sizeof left), sizeof left);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status));
    close(ends[0]);
    close(ends[1]);
    return left;
}

static inline void remove_remains(const remains *left) {
    CHECK_EQ(unlink(left->pool), 0);
    CHECK_EQ(unlink(left->names), 0);
    CHECK_EQ(unlink(left->spill), 0);
}

/* Checks that everything from record_and_spill() is there, unchanged. */
static inline void check_whole(const op_result *r, pid_t pid) {
    op_columns c = columns_of(r);
    op_stats s = stats_of(r);
    uint32_t threads, next = 0;
    const op_thread_info *info = op_result_threads(r, &threads);
    check_sound(r);
    CHECK_EQ(c.count, EVENTS + 2 + 301);
    CHECK_EQ(threads, 2);
    CHECK_EQ(info[0].os_tid, pid);
    CHECK_EQ(s.truncated, 0);
    CHECK_EQ(s.crash_recovery, 1);
    CHECK(s.sampling == 0.25);
    CHECK_EQ(s.counted, 0);
    CHECK(s.spilled_bytes > 0);
    CHECK_EQ(c.flags[row_of(r, "a \"quoted\" name")], OP_FLAG_ASYNC);
    CHECK_EQ(c.flags[row_of(r, "never ended")], OP_FLAG_UNFINISHED);
    for (uint64_t row = 0; row < c.count; row++)
        if (c.name[row] == name_id("numbered")) {
            CHECK_EQ(c.args[row] != 0, next % 2);
            CHECK_EQ(c.sequence_nr[row], next++);
            CHECK(c.duration_ns[row] >= 0 &&
                  c.start_ns[row] + c.duration_ns[row] <= op_result_trace_duration(r));
        }
    CHECK_EQ(next, EVENTS);
    int64_t age = (int64_t)op_clock_now(CLOCK_REALTIME) - op_result_trace_start(r);
    CHECK(age > 0 && age < 60000000000);
}

static inline void copy_file(const char *from, const char *to) {
    char buffer[65536];
    int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(in >= 0 && out >= 0);
    for (ssize_t n; (n = read(in, buffer, sizeof buffer)) > 0;)
        CHECK_EQ(write(out, buffer, (size_t)n), n);
    close(in);
    close(out);
}

/* Saves the old bytes to `before` unless it is NULL. */
static inline void overwrite(const char *path, size_t at, const void *bytes, size_t count,
                             void *before) {
    int fd = open(path, O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0);
    if (before)
        CHECK_EQ(pread(fd, before, count, (off_t)at), count);
    CHECK_EQ(pwrite(fd, bytes, count, (off_t)at), count);
    close(fd);
}

#endif
