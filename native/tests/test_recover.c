#include "collector.h"
#include "fixture.h"
#include "others.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { EVENTS = 6000 };

static folder here;

/* ---- a process that dies ---------------------------------------------------------------------- */

static void *record_on_a_thread(void *unused) {
    (void)unused;
    record_numbered(name_id("on a thread"), 0, 300);
    op_slot never_ended = begin("never ended");
    (void)never_ended;
    return NULL;
}

/* Numbered events, every other with an argument block; some in the spill file, some in the pool. */
static void record_and_spill(void) {
    char text[32];
    snprintf(text, sizeof text, "of process %d",
             (int)getpid()); /* else ids would be the reader's too */
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

static void wait_for_the_drain(void) {
    for (bool idle = false; !idle; sched_yield()) {
        pthread_mutex_lock(&op_the_collector.lock);
        idle = op_the_collector.spill.count > 2 && !op_the_collector.spill.writing;
        pthread_mutex_unlock(&op_the_collector.lock);
    }
}

typedef struct remains {
    char pool[1024], names[1024], spill[1024];
    pid_t pid;
} remains;

static void die_while_recording(int signal_number, int pipe_end) {
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    signal(signal_number, SIG_DFL); /* sanitizers catch it */
    open_session(&here);
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

static remains killed_by(int signal_number) {
    int ends[2], status;
    remains left;
    CHECK_EQ(pipe(ends), 0);
    fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0)
        die_while_recording(signal_number, ends[1]);
    CHECK_EQ(read(ends[0], &left, sizeof left), sizeof left);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status));
    close(ends[0]);
    close(ends[1]);
    return left;
}

static void remove_remains(const remains *left) {
    CHECK_EQ(unlink(left->pool), 0);
    CHECK_EQ(unlink(left->names), 0);
    CHECK_EQ(unlink(left->spill), 0);
}

/* ---- whole recordings --------------------------------------------------------------------------- */

static void check_whole(const op_result *r, pid_t pid) {
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

static void killed_recordings_are_read_back(void) {
    const int signals[] = {SIGKILL, SIGSEGV, SIGABRT};
    for (int i = 0; i < 3; i++) {
        remains left = killed_by(signals[i]);
        op_result *r;
        CHECK_OK(op_recover(left.pool, &r));
        check_whole(r, left.pid);
        op_result_free(r);
        remove_remains(&left);
    }
}

static void copy_file(const char *from, const char *to) {
    char buffer[65536];
    int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(in >= 0 && out >= 0);
    for (ssize_t n; (n = read(in, buffer, sizeof buffer)) > 0;)
        CHECK_EQ(write(out, buffer, (size_t)n), n);
    close(in);
    close(out);
}

static void living_recordings_are_read_from_a_copy(void) {
    char copy[sizeof here.path + 8];
    snprintf(copy, sizeof copy, "%s/copy", here.path);
    open_session(&here);
    op_window_sample(0.25);
    CHECK_OK(op_window_start());
    op_window_sample(1); /* of windows to come */
    record_and_spill();
    wait_for_the_drain();
    op_result *r;
    CHECK_FAILS(op_recover(op_session_path(), &r), OP_EBUSY, "still runs");
    CHECK(r == NULL);
    copy_file(op_session_path(), copy);
    CHECK_OK(op_recover(copy, &r));
    check_whole(r, getpid());
    op_result_free(r);
    record_numbered(name_id("goes on"), 0, 10);
    r = stop_window();
    CHECK_EQ(columns_of(r).count, EVENTS + 2 + 301 + 10);
    op_result_free(r);
    CHECK_EQ(unlink(copy), 0);
    copy_file(op_session_path(), copy);
    CHECK_FAILS(op_recover(copy, &r), OP_EFORMAT, "nothing was being recorded");
    CHECK_EQ(unlink(copy), 0);
    op_session_close();
}

/* ---- files that are none ------------------------------------------------------------------------- */

static void other_files_are_refused(void) {
    char path[sizeof here.path + 8];
    op_result *r;
    snprintf(path, sizeof path, "%s/other", here.path);
    CHECK_FAILS(op_recover(path, &r), OP_EIO, "No such file");
    CHECK_FAILS(op_recover(here.path, &r), OP_EFORMAT, "not a regular file");
    CHECK_EQ(symlink("/etc/passwd", path), 0);
    CHECK_FAILS(op_recover(path, &r), OP_EIO, path);
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(mkfifo(path, 0600), 0);
    CHECK_FAILS(op_recover(path, &r), OP_EFORMAT, "not a regular file"); /* and waits for no writer */
    CHECK_EQ(unlink(path), 0);
    for (off_t size = 0; size < 2 * OP_HEADER_BYTES; size += OP_HEADER_BYTES - 1) {
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        CHECK_EQ(ftruncate(fd, size), 0);
        close(fd);
        CHECK_FAILS(op_recover(path, &r), OP_EFORMAT, "not a session file");
    }
    CHECK(r == NULL);
    CHECK_EQ(unlink(path), 0);
}

static void overwrite(const char *path, size_t at, const void *bytes, size_t count, void *before) {
    int fd = open(path, O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0);
    if (before)
        CHECK_EQ(pread(fd, before, count, (off_t)at), count);
    CHECK_EQ(pwrite(fd, bytes, count, (off_t)at), count);
    close(fd);
}

static void newer_versions_are_refused(void) {
    remains left = killed_by(SIGKILL);
    op_result *r;
    overwrite(left.pool, offsetof(op_file_header, version), &(uint32_t){OP_FILE_VERSION + 1}, 4, NULL);
    CHECK_FAILS(op_recover(left.pool, &r), OP_EFORMAT, "version 4; this release reads 3");
    overwrite(left.pool, offsetof(op_file_header, version), &(uint32_t){OP_FILE_VERSION}, 4, NULL);
    overwrite(left.pool, offsetof(op_file_header, segments), &(uint32_t){4}, 4, NULL);
    CHECK_FAILS(op_recover(left.pool, &r), OP_EFORMAT, "does not fit its size");
    remove_remains(&left);
}

static op_stats stats_with(const remains *left, double sampling, uint32_t counted,
                           const uint32_t *counters) {
    op_result *r;
    overwrite(left->pool, offsetof(op_file_header, sampling), &sampling, sizeof sampling, NULL);
    overwrite(left->pool, offsetof(op_file_header, counted), &counted, sizeof counted, NULL);
    overwrite(left->pool, offsetof(op_file_header, counters), counters,
              OP_COUNTERS_MAX * sizeof *counters, NULL);
    CHECK_OK(op_recover(left->pool, &r));
    op_stats s = stats_of(r);
    op_result_free(r);
    return s;
}

static void what_was_looked_at_is_read_back(void) {
    remains left = killed_by(SIGKILL);
    op_stats s = stats_with(&left, 0.01, 2, (const uint32_t[OP_COUNTERS_MAX]){8, 9});
    CHECK(s.sampling == 0.01);
    CHECK_EQ(s.counted, 2);
    CHECK_EQ(s.counters[0], 8);
    CHECK_EQ(s.counters[1], 9);
    s = stats_with(&left, 0.0 / 0.0, UINT32_MAX, (const uint32_t[OP_COUNTERS_MAX]){999, 1, 77, 2});
    CHECK(s.sampling == 1);
    CHECK_EQ(s.counted, 2);
    CHECK_EQ(s.counters[0], 1);
    CHECK_EQ(s.counters[1], 2);
    s = stats_with(&left, -1, 0, (const uint32_t[OP_COUNTERS_MAX]){0});
    CHECK(s.sampling == 1);
    CHECK_EQ(s.counted, 0);
    remove_remains(&left);
}

/* ---- damaged recordings ----------------------------------------------------------------------------
 */

/* Everything that reads a result, of whatever quality. */
static void use(op_result *r, bool with_trace) {
    op_columns c = columns_of(r);
    uint64_t words, count;
    uint32_t length, threads;
    op_result_args(r, &words);
    op_result_threads(r, &threads);
    for (uint64_t row = 0; row < c.count; row++) {
        CHECK(c.parent[row] < (int64_t)row && c.thread[row] < threads && c.args[row] <= words);
        CHECK(c.parent[row] < 0 || c.thread[c.parent[row]] == c.thread[row]);
        op_name_text(c.name[row], &length);
    }
    const op_group *rows;
    const int64_t *samples;
    const op_path *nodes;
    CHECK_OK(op_result_groups(r, 1, 0, &rows, &count, &samples));
    CHECK_OK(op_result_paths(r, 50, &nodes, &count));
    if (!with_trace)
        return;
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    CHECK_OK(op_result_write_trace(r, fd, "", "damaged"));
    close(fd);
}

/* True: something came back. */
static bool survives(const remains *left, bool with_trace) {
    op_result *r;
    int rc = op_recover(left->pool, &r);
    if (rc != OP_OK) {
        CHECK(r == NULL && op_last_error()[0] != 0);
        return false;
    }
    use(r, with_trace);
    op_result_free(r);
    return true;
}

static off_t size_of(const char *path) {
    struct stat info;
    CHECK_EQ(stat(path, &info), 0);
    return info.st_size;
}

/* Each file cut at many lengths; what was cut away is put back in the end. */
static void cut_files_do_no_harm(void) {
    remains left = killed_by(SIGKILL);
    char copy[sizeof here.path + 8];
    snprintf(copy, sizeof copy, "%s/whole", here.path);
    const char *const files[] = {left.names, left.spill, left.pool};
    uint32_t recovered = 0;
    for (int i = 0; i < 3; i++) {
        off_t size = size_of(files[i]), step = size / COUNT(150) + 1;
        copy_file(files[i], copy);
        for (off_t cut = size; cut >= 0; cut -= cut > size - 40 ? 1 : step) {
            CHECK_EQ(truncate(files[i], cut), 0);
            recovered += survives(&left, false);
        }
        CHECK_EQ(unlink(files[i]), 0);
        CHECK_EQ(rename(copy, files[i]), 0);
    }
    CHECK(recovered > COUNT(150)); /* but for the pool, a cut file costs its end and no more */
    CHECK(survives(&left, true));
    remove_remains(&left);
}

static void missing_files_are_named(void) {
    remains left = killed_by(SIGKILL);
    op_result *r;
    CHECK_EQ(unlink(left.spill), 0);
    CHECK_FAILS(op_recover(left.pool, &r), OP_EIO, left.spill);
    CHECK_EQ(unlink(left.names), 0);
    CHECK_FAILS(op_recover(left.pool, &r), OP_EIO, left.names);
    CHECK_EQ(unlink(left.pool), 0);
}

/* ---- random damage: the same numbers each time ------------------------------------------------------
 */

static uint64_t seed = 20240607;

static uint32_t random_below(uint32_t n) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((seed >> 33) % n);
}

typedef struct damage {
    const char *path;
    size_t at;
    uint32_t before;
} damage;

/* Where a reader is most easily misled: headers of the file, of chunks; else anywhere. */
static size_t place_to_damage(const remains *left, const char *path) {
    uint32_t words = (uint32_t)(size_of(path) / 4 - 1);
    if (path == left->pool && random_below(3) == 0)
        return 4 * (random_below(4) ? random_below(24) : random_below(OP_HEADER_BYTES / 4));
    if (path == left->pool && random_below(2) == 0)
        return OP_HEADER_BYTES + (size_t)random_below(OP_CHUNK_MAX / OP_UNIT_BYTES) * OP_UNIT_BYTES +
               4 * random_below(sizeof(op_chunk) / 4);
    if (path == left->spill && random_below(3) == 0)
        return 4 * random_below(sizeof(op_chunk) / 4);
    return 4 * (size_t)random_below(words);
}

static damage damage_something(const remains *left) {
    static const uint32_t extremes[] = {
        0, 1, 0x7fffffff, 0x80000000, 0xffffffff, OP_CHUNK_MAGIC, OP_CHUNK_MAX};
    const char *const files[] = {left->pool, left->pool, left->names, left->spill};
    damage d = {.path = files[random_below(4)]};
    d.at = place_to_damage(left, d.path);
    uint32_t word = extremes[random_below(7)];
    overwrite(d.path, d.at, &word, 4, &d.before);
    if (random_below(3)) { /* a flipped bit instead */
        word = d.before ^ 1u << random_below(32);
        overwrite(d.path, d.at, &word, 4, NULL);
    }
    return d;
}

static void random_damage_does_no_harm(void) {
    remains left = killed_by(SIGKILL);
    damage done[6];
    uint32_t recovered = 0;
    for (uint32_t i = 0; i < COUNT(2000); i++) {
        uint32_t n = 1 + random_below(6);
        for (uint32_t j = 0; j < n; j++)
            done[j] = damage_something(&left);
        recovered += survives(&left, i % 8 == 0);
        while (n-- > 0)
            overwrite(done[n].path, done[n].at, &done[n].before, 4, NULL);
    }
    CHECK(recovered > COUNT(200));
    op_result *r;
    CHECK_OK(op_recover(left.pool, &r));
    check_whole(r, left.pid);
    op_result_free(r);
    remove_remains(&left);
}

int main(void) {
    here = make_folder();
    RUN(killed_recordings_are_read_back);
    RUN(living_recordings_are_read_from_a_copy);
    RUN(other_files_are_refused);
    RUN(newer_versions_are_refused);
    RUN(what_was_looked_at_is_read_back);
    RUN(cut_files_do_no_harm);
    RUN(missing_files_are_named);
    RUN(random_damage_does_no_harm);
    remove_folder(&here);
    return 0;
}
