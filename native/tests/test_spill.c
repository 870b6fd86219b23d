#include "core/record.h"
#include "core/spill.h"

#include "core/collector.h"
#include "fixture.h"
#include "others.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define FITS_NOT 200000u /* six times the most the pool can hold */

static folder here;

static void record_argued(uint32_t name, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        uint32_t words[4] = {OP_ARGS_HEADER(OP_ARGS_TEXT, 3), 8, i, ~i};
        op_slot slot = op_begin(name, OP_TORCH, 0, i, words, i % 2 ? 4 : 0);
        op_end(&slot);
    }
}

static void pool_wraps_and_nothing_is_lost(void) {
    open_session(&here);
    CHECK_OK(op_window_start());
    record_argued(name_id("argued"), FITS_NOT);
    op_result *r = stop_window();
    CHECK(stats_of(r).spilled_bytes > 4 * OP_CHUNK_MAX);
    CHECK_EQ(stats_of(r).truncated, 0);
    CHECK_EQ(stats_of(r).dropped, 0);
    check_numbered(r, 0, FITS_NOT);
    check_sound(r);
    op_columns c = columns_of(r);
    uint64_t words;
    const uint32_t *args = op_result_args(r, &words);
    for (uint32_t i = 0; i < FITS_NOT; i++) {
        CHECK_EQ(c.args[i] != 0, i % 2);
        if (i % 2)
            CHECK(args[c.args[i] + 1] == i && args[c.args[i] + 2] == ~i);
    }
    op_result_free(r);
    op_session_close();
}

/* An open record stays in memory and gets its end there, whatever is written meanwhile. */
static void open_records_are_not_spilled(void) {
    open_session(&here);
    CHECK_OK(op_window_start());
    op_slot outermost = begin("outermost");
    record_argued(name_id("argued"), FITS_NOT / 2);
    op_slot inner = begin("inner");
    record_argued(name_id("argued"), FITS_NOT / 2);
    op_end(&inner);
    op_end(&outermost);
    op_result *r = stop_window();
    check_sound(r);
    op_columns c = columns_of(r);
    CHECK_EQ(c.count, FITS_NOT + 2);
    CHECK_EQ(c.flags[row_of(r, "outermost")], 0);
    CHECK_EQ(c.flags[row_of(r, "inner")], 0);
    CHECK_EQ(c.parent[row_of(r, "inner")], 0);
    CHECK_EQ(c.parent[c.count - 1], row_of(r, "inner"));
    CHECK(stats_of(r).spilled_bytes > 0);
    op_result_free(r);
    op_session_close();
}

static void *record_much(void *name) {
    record_argued(*(uint32_t *)name, FITS_NOT / 4);
    return NULL;
}

static void threads_spill_at_once(void) {
    open_session(&here);
    uint32_t name = name_id("argued");
    int before = count_tasks();
    CHECK_OK(op_window_start());
    on_threads(4, record_much, &name, 0);
    op_result *r = stop_window();
    check_tasks_go(before);
    CHECK_EQ(stats_of(r).truncated, 0);
    CHECK_EQ(stats_of(r).threads, 4);
    for (uint32_t i = 0; i < 4; i++)
        check_numbered(r, i, FITS_NOT / 4);
    check_sound(r);
    op_result_free(r);
    op_session_close();
}

static void drain_lives_in_the_window_only(void) {
    open_session(&here);
    int before = count_tasks();
    CHECK_OK(op_window_start());
    CHECK_EQ(count_tasks(), before);
    record_argued(name_id("argued"), FITS_NOT);
    CHECK_EQ(count_tasks(), before + 1);
    op_result_free(stop_window());
    CHECK_EQ(count_tasks(), before);
    op_session_close();
}

/* Whatever ends the recording early: what was recorded before is complete, the rest is counted. */
static void check_cut_short(op_result *r, uint32_t begun) {
    op_stats s = stats_of(r);
    CHECK(s.truncated);
    CHECK(s.events > 0 && s.dropped > 0);
    CHECK_EQ(s.events + s.dropped, begun);
    check_numbered(r, 0, s.events);
    check_sound(r);
    op_result_free(r);
}

static void check_healthy(void) {
    CHECK_OK(op_window_start());
    record_numbered(name_id("healthy"), 0, 20000);
    op_result *r = stop_window();
    CHECK_EQ(stats_of(r).truncated, 0);
    check_numbered(r, 0, 20000);
    op_result_free(r);
}

static void budget_ends_the_recording(void) {
    open_session_with((op_config){.pool_dir = here.path,
                                  .spill_dir = here.path,
                                  .pool_bytes = OP_CHUNK_MAX,
                                  .max_bytes = 3u << 20});
    CHECK_OK(op_window_start());
    record_numbered(name_id("much"), 0, FITS_NOT);
    CHECK(op_window_dropped() > 0);
    op_result *r = stop_window();
    CHECK(stats_of(r).events * sizeof(op_event) <= 3u << 20);
    CHECK(stats_of(r).events * sizeof(op_event) >= 2u << 20);
    check_cut_short(r, FITS_NOT);
    check_healthy();
    op_session_close();
}

static void full_pool_without_a_disk_ends_the_recording(void) {
    open_session_with((op_config){.pool_dir = here.path, .pool_bytes = OP_CHUNK_MAX});
    int before = count_tasks();
    CHECK_OK(op_window_start());
    record_numbered(name_id("much"), 0, FITS_NOT);
    op_result *r = stop_window();
    CHECK_EQ(stats_of(r).spilled_bytes, 0);
    check_cut_short(r, FITS_NOT);
    CHECK_EQ(count_tasks(), before);
    check_healthy();
    op_session_close();
}

static void missing_spill_folder_is_no_disk(void) {
    open_session_with((op_config){.spill_dir = "/nowhere", .pool_bytes = OP_CHUNK_MAX});
    CHECK_OK(op_window_start());
    record_numbered(name_id("much"), 0, FITS_NOT);
    op_result *r = stop_window();
    CHECK_EQ(stats_of(r).spilled_bytes, 0);
    CHECK_EQ(stats_of(r).crash_recovery, 0);
    check_cut_short(r, FITS_NOT);
    check_healthy();
    op_session_close();
}

static void limit_file_size(rlim_t bytes) {
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes;
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* The disk fills up in the middle of a chunk: the chunk stays in memory. With the smallest limit the
 * pool cannot grow either. */
static void full_disk_ends_the_recording(void) {
    const rlim_t limits[] = {OP_HEADER_BYTES + OP_CHUNK_MAX, 3 * OP_CHUNK_MAX, 5 * OP_CHUNK_MAX,
                             5 * OP_CHUNK_MAX + 1001};
    signal(SIGXFSZ, SIG_IGN);
    for (int i = 0; i < 4; i++) {
        open_session(&here);
        limit_file_size(limits[i]);
        CHECK_OK(op_window_start());
        record_argued(name_id("argued"), FITS_NOT);
        op_result *r = stop_window();
        CHECK(stats_of(r).spilled_bytes <= limits[i]);
        check_cut_short(r, FITS_NOT);
        limit_file_size(RLIM_INFINITY);
        check_healthy();
        op_session_close();
    }
}

static void spill_file_is_private_and_goes_with_the_session(void) {
    open_session(&here);
    CHECK_OK(op_window_start());
    record_numbered(name_id("much"), 0, FITS_NOT);
    struct stat info;
    CHECK_EQ(stat(op_the_collector.spill.path, &info), 0);
    CHECK_EQ(info.st_mode & 0777, 0600);
    CHECK(strncmp(op_the_collector.pool.header->spill_path, here.path, strlen(here.path)) == 0);
    op_result_free(stop_window());
    CHECK_EQ(stat(op_the_collector.spill.path, &info), 0);
    CHECK_EQ(info.st_size, 0);
    CHECK_OK(op_window_start());
    record_numbered(name_id("much"), 0, FITS_NOT);
    op_session_close(); /* with the window open */
}

static void closing_twice_is_harmless(void) {
    op_session_close();
    op_session_close();
    CHECK_FAILS(op_window_start(), OP_ESTATE, "no session is open");
    CHECK_TEXT(op_session_path(), "");
}

static void too_long_spill_path_is_refused(void) {
    static char path[1100];
    memset(path, 'x', sizeof path - 1);
    const op_config config = {.pool_dir = here.path, .spill_dir = path, .pool_bytes = OP_CHUNK_MAX};
    CHECK_FAILS(op_session_open(&config), OP_EIO, "too long");
    CHECK(!op_session_is_open());
    CHECK_TEXT(op_the_collector.spill.path, "");
}

int main(void) {
    here = make_folder();
    RUN(pool_wraps_and_nothing_is_lost);
    RUN(open_records_are_not_spilled);
    RUN(threads_spill_at_once);
    RUN(drain_lives_in_the_window_only);
    RUN(budget_ends_the_recording);
    RUN(full_pool_without_a_disk_ends_the_recording);
    RUN(missing_spill_folder_is_no_disk);
    RUN(full_disk_ends_the_recording);
    RUN(spill_file_is_private_and_goes_with_the_session);
    RUN(closing_twice_is_harmless);
    RUN(too_long_spill_path_is_refused);
    remove_folder(&here);
    return 0;
}
