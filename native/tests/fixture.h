/* Sessions in a folder of their own, and shortcuts to record and to find records. */
#ifndef FIXTURE_H
#define FIXTURE_H

#include "check.h"
#include "core/fields.h"
#include "core/names.h"
#include "core/pool.h"
#include "core/record.h"

#include <dirent.h>
#include <sched.h>
#include <stdbool.h>
#include <unistd.h>

/* ---- folders and sessions ----------------------------------------------------------------- */

typedef struct folder {
    char path[512];
} folder;

static inline folder make_folder(void) {
    folder f;
    const char *parent = getenv("TMPDIR");
    int length =
        snprintf(f.path, sizeof f.path, "%s/opprof-test-XXXXXX", parent && *parent ? parent : "/tmp");
    CHECK(length > 0 && (size_t)length < sizeof f.path);
    CHECK(mkdtemp(f.path) != NULL);
    return f;
}

/* The folder must be empty: closing a session leaves no file behind. */
static inline void remove_folder(const folder *f) { CHECK_EQ(rmdir(f->path), 0); }

static inline void open_session_with(op_config config) { CHECK_OK(op_session_open(&config)); }

/* A small pool, so that tests fill it quickly, with a spill file beside it. */
static inline void open_session(const folder *f) {
    open_session_with(
        (op_config){.pool_dir = f->path, .spill_dir = f->path, .pool_bytes = OP_CHUNK_MAX});
}

/* Room for a large chunk on each of a few threads. */
static inline void open_roomy_session(const folder *f) {
    open_session_with(
        (op_config){.pool_dir = f->path, .spill_dir = f->path, .pool_bytes = 8 * OP_CHUNK_MAX});
}

static inline void close_session(const folder *f) {
    op_session_close();
    CHECK(!op_session_is_open());
    remove_folder(f);
}

static inline op_result *stop_window(void) {
    op_result *r = NULL;
    CHECK_OK(op_window_stop(&r));
    CHECK(r != NULL);
    return r;
}

/* ---- recording ---------------------------------------------------------------------------- */

static inline uint32_t name_id(const char *text) { return op_names_intern(text, strlen(text)); }

static inline op_slot begin(const char *name) {
    return op_begin(name_id(name), OP_RANGE, OP_SCOPE_USER, 0, NULL, 0);
}

/* An event with a number that the columns show: a torch op's sequence number. */
static inline op_slot begin_numbered(uint32_t name, uint32_t number) {
    return op_begin(name, OP_TORCH, 0, number, NULL, 0);
}

static inline void record_numbered(uint32_t name, uint32_t from, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        op_slot slot = begin_numbered(name, from + i);
        op_end(&slot);
    }
}

/* ---- what was recorded -------------------------------------------------------------------- */

static inline op_columns columns_of(const op_result *r) {
    op_columns c;
    op_result_columns(r, &c);
    return c;
}

static inline op_stats stats_of(const op_result *r) {
    op_stats s;
    op_result_stats(r, &s);
    return s;
}

/* The only row of this name. */
static inline int64_t row_of(const op_result *r, const char *name) {
    op_columns c = columns_of(r);
    int64_t found = -1;
    for (uint64_t row = 0; row < c.count; row++)
        if (c.name[row] == name_id(name)) {
            CHECK_EQ(found, -1);
            found = (int64_t)row;
        }
    CHECK(found >= 0);
    return found;
}

typedef struct field_list {
    uint32_t count;
    op_field fields[OP_FIELDS_MAX_WORDS / 3];
} field_list;

/* The named values of a row. */
static inline field_list fields_of(const op_result *r, int64_t row) {
    field_list list = {0};
    uint64_t words;
    const uint32_t *args = op_result_args(r, &words), *at = NULL;
    uint32_t block = columns_of(r).args[row];
    while (block && op_fields_next(args + block - 1, args + words, &at, &list.fields[list.count]))
        list.count++;
    return list;
}

static inline int64_t field_number(const op_field *field, uint32_t at) {
    int64_t value;
    memcpy(&value, field->values + 2 * at, sizeof value);
    return value;
}

static inline double field_real(const op_field *field, uint32_t at) {
    double value;
    memcpy(&value, field->values + 2 * at, sizeof value);
    return value;
}

/* Numbers from 0 up without a gap, on a thread that recorded nothing else. */
static inline void check_numbered(const op_result *r, uint32_t thread, uint64_t count) {
    op_columns c = columns_of(r);
    int64_t next = 0;
    for (uint64_t row = 0; row < c.count; row++)
        if (c.thread[row] == thread)
            CHECK_EQ(c.sequence_nr[row], next++);
    CHECK_EQ(next, count);
}

/* Invariants of any result: parents before children and on the same thread, times in order. */
static inline void check_sound(const op_result *r) {
    op_columns c = columns_of(r);
    for (uint64_t row = 0; row < c.count; row++) {
        bool first = row == 0 || c.thread[row] != c.thread[row - 1];
        CHECK(c.parent[row] < (int64_t)row);
        if (c.parent[row] >= 0)
            CHECK_EQ(c.thread[c.parent[row]], c.thread[row]);
        CHECK(first || c.start_ns[row] >= c.start_ns[row - 1]);
        CHECK(c.duration_ns[row] >= -1);
        CHECK_EQ(c.duration_ns[row] < 0, (c.flags[row] & OP_FLAG_UNFINISHED) != 0);
        CHECK(c.self_ns[row] <= (c.duration_ns[row] < 0 ? 0 : c.duration_ns[row]));
    }
}

/* Threads of this process including the collector's own, as Python counts them at a fork. */
static inline int count_tasks(void) {
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    int n = 0;
    for (struct dirent *d = readdir(tasks); d; d = readdir(tasks))
        n += d->d_name[0] != '.';
    closedir(tasks);
    return n;
}

/* The same after joining threads of the test, which stay listed for an instant. */
static inline void check_tasks_go(int expected) {
    for (int tries = 0; tries < 100000 && count_tasks() != expected; tries++)
        sched_yield();
    CHECK_EQ(count_tasks(), expected);
}

#endif
