#include "killed.h"

#include <sys/stat.h>

static folder here;

/* ---- whole recordings --------------------------------------------------------------------------- */

static void killed_recordings_are_read_back(void) {
    const int signals[] = {SIGKILL, SIGSEGV, SIGABRT};
    for (int i = 0; i < 3; i++) {
        remains left = killed_by(signals[i], &here);
        op_result *r;
        CHECK_OK(op_recover(left.pool, &r));
        check_whole(r, left.pid);
        op_result_free(r);
        remove_remains(&left);
    }
}

static void living_recordings_are_read_from_a_copy(void) {
    char copy[sizeof here.path + 8];
    snprintf(copy, sizeof copy, "%s/copy", here.path);
    open_session(&here);
    op_window_sample(0.25);
    CHECK_OK(op_window_start());
    op_window_sample(1); /* for later windows */
    record_and_spill();
    wait_for_the_drain();
    op_result *r;
    CHECK_FAILS(op_recover(op_session_path(), &r), OP_EBUSY, "still running");
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

/* Without a disk to spill to. */
static void a_recording_that_was_cut_short_says_so(void) {
    char copy[sizeof here.path + 8];
    snprintf(copy, sizeof copy, "%s/copy", here.path);
    open_session_with((op_config){.pool_dir = here.path, .pool_bytes = OP_CHUNK_MAX});
    CHECK_OK(op_window_start());
    for (uint32_t much = 0; much < 2; much++) {
        record_numbered(name_id("much"), 0, much ? 100000 : 10);
        copy_file(op_session_path(), copy);
        op_result *r;
        CHECK_OK(op_recover(copy, &r));
        CHECK_EQ(stats_of(r).truncated, much);
        uint64_t dropped = op_window_dropped(), told = stats_of(r).dropped;
        CHECK_EQ(dropped > OP_DROPS_TOLD, much);
        CHECK(told <= dropped && dropped - told < OP_DROPS_TOLD);
        op_result_free(r);
        CHECK_EQ(unlink(copy), 0);
    }
    op_session_close();
}

static void a_recording_of_too_deep_a_stack_says_what_it_lacks(void) {
    enum { DEEP = 65535, MORE = 7 };
    char copy[sizeof here.path + 8];
    snprintf(copy, sizeof copy, "%s/copy", here.path);
    open_session_with((op_config){.pool_dir = here.path, .pool_bytes = 4 * OP_CHUNK_MAX});
    for (int window = 0; window < 2; window++) {
        CHECK_OK(op_window_start());
        uint32_t name = name_id("deep");
        for (uint32_t i = 0; i < DEEP + MORE; i++)
            begin_numbered(name, i);
        copy_file(op_session_path(), copy);
        op_result *r;
        CHECK_OK(op_recover(copy, &r));
        CHECK_EQ(stats_of(r).dropped, MORE);
        CHECK(!stats_of(r).truncated);
        op_result_free(r);
        CHECK_EQ(unlink(copy), 0);
        op_result_free(stop_window());
    }
    op_session_close();
}

/* ---- other files
 * ---------------------------------------------------------------------------------- */

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
    CHECK_FAILS(op_recover(path, &r), OP_EFORMAT, "not a regular file"); /* nor waits for a writer */
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

static void newer_versions_are_refused(void) {
    remains left = killed_by(SIGKILL, &here);
    op_result *r;
    overwrite(left.pool, offsetof(op_file_header, version), &(uint32_t){OP_FILE_VERSION + 1}, 4, NULL);
    CHECK_FAILS(op_recover(left.pool, &r), OP_EFORMAT, "version 7; this release reads 6");
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
    remains left = killed_by(SIGKILL, &here);
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

static op_left look(const char *path) {
    op_left left;
    CHECK_OK(op_recover_look(path, &left));
    return left;
}

static bool notes(const op_left *left, const char *text) {
    return left->note_bytes == strlen(text) && memcmp(left->note, text, left->note_bytes) == 0;
}

static void notes_say_what_a_process_did(void) {
    op_session_note("nobody hears it", 15); /* no session */
    open_session(&here);
    const char *path = op_session_path();
    op_left left = look(path);
    CHECK(left.is_alive);
    CHECK_EQ(left.pid, getpid());
    CHECK_EQ(left.window, 0);
    CHECK_EQ(left.note_bytes, 0);
    CHECK(strcmp(left.names_path, op_the_collector.pool.names_path) == 0);
    op_session_note("test_a", 6);
    CHECK(notes((left = look(path), &left), "test_a"));
    op_session_note("b", 1);
    CHECK(notes((left = look(path), &left), "b"));
    char longest[OP_NOTE_BYTES + 1];
    memset(longest, 'x', sizeof longest);
    op_session_note(longest, sizeof longest);
    CHECK_EQ(look(path).note_bytes, OP_NOTE_BYTES);
    op_session_note(NULL, 0);
    CHECK_EQ(look(path).note_bytes, 0);
    op_session_close();
}

static void dead_processes_are_looked_at(void) {
    remains left = killed_by(SIGKILL, &here);
    op_left found = look(left.pool);
    CHECK(!found.is_alive);
    CHECK_EQ(found.pid, left.pid);
    CHECK(found.window != 0);
    CHECK(strcmp(found.spill_path, left.spill) == 0);
    const uint32_t beyond = OP_NOTE_BYTES + 1;
    overwrite(left.pool, offsetof(op_file_header, note_bytes), &beyond, 4, NULL);
    CHECK_EQ(look(left.pool).note_bytes, 0);
    overwrite(left.pool, offsetof(op_file_header, version), &(uint32_t){OP_FILE_VERSION + 1}, 4, NULL);
    CHECK_FAILS(op_recover_look(left.pool, &found), OP_EFORMAT, "version");
    remove_remains(&left);
}

static void missing_files_are_named(void) {
    remains left = killed_by(SIGKILL, &here);
    op_result *r;
    CHECK_EQ(unlink(left.spill), 0);
    CHECK_FAILS(op_recover(left.pool, &r), OP_EIO, left.spill);
    CHECK_EQ(unlink(left.names), 0);
    CHECK_FAILS(op_recover(left.pool, &r), OP_EIO, left.names);
    CHECK_EQ(unlink(left.pool), 0);
}

int main(void) {
    here = make_folder();
    RUN(killed_recordings_are_read_back);
    RUN(living_recordings_are_read_from_a_copy);
    RUN(a_recording_that_was_cut_short_says_so);
    RUN(a_recording_of_too_deep_a_stack_says_what_it_lacks);
    RUN(other_files_are_refused);
    RUN(newer_versions_are_refused);
    RUN(what_was_looked_at_is_read_back);
    RUN(notes_say_what_a_process_did);
    RUN(dead_processes_are_looked_at);
    RUN(missing_files_are_named);
    remove_folder(&here);
    return 0;
}
