/* Windows over the fake device, and shortcuts to look at its work. */
#ifndef DEVICE_H
#define DEVICE_H

#include "fake_cuda.h"
#include "fake_cupti.h"
#include "fixture.h"
#include "result/result.h"

/* A program that has started CUDA and opened a session. */
static inline folder start_device(void) {
    folder f = make_folder();
    fake_reset();
    fake_cuda_reset();
    fake_cuda_use(0);
    open_roomy_session(&f);
    CHECK_OK(op_cuda_open(NULL, NULL, 0));
    op_cuda_record(OP_CUDA_WORK | OP_CUDA_MEMORY);
    return f;
}

static inline void start_window(void) {
    CHECK_OK(op_window_start());
    CHECK_TEXT(op_cuda_problem(), "");
}

static inline const char *name_of(const op_result *r, int64_t row) {
    uint32_t length;
    return op_name_text(columns_of(r).name[row], &length);
}

/* The only row of this name that is not a device range. */
static inline int64_t the(const op_result *r, const char *name) {
    op_columns c = columns_of(r);
    int64_t found = -1;
    for (uint64_t row = 0; row < c.count; row++)
        if (c.name[row] == name_id(name) && c.kind[row] != OP_DEVICE_RANGE) {
            CHECK_EQ(found, -1);
            found = (int64_t)row;
        }
    if (found < 0)
        fprintf(stderr, "no row is called %s\n", name);
    CHECK(found >= 0);
    return found;
}

/* Number of rows of a kind. */
static inline uint64_t count_kind(const op_result *r, uint8_t kind) {
    op_columns c = columns_of(r);
    uint64_t count = 0;
    for (uint64_t row = 0; row < c.count; row++)
        count += c.kind[row] == kind;
    return count;
}

static inline int64_t nth_of(const op_result *r, uint8_t kind, uint64_t n) {
    op_columns c = columns_of(r);
    for (uint64_t row = 0; row < c.count; row++)
        if (c.kind[row] == kind && n-- == 0)
            return (int64_t)row;
    CHECK(!"there are so many rows of this kind");
    return -1;
}

static inline op_device_work work_of(const op_result *r, int64_t row) {
    op_device_work work;
    CHECK_EQ(op_result_device_work(r, (uint64_t)row, &work), 1);
    return work;
}

/* Launches without a recorded kernel. */
static inline uint64_t launches_unseen(op_result *r) {
    const op_group *groups;
    const int64_t *samples;
    uint64_t count;
    op_device_use use;
    CHECK_OK(op_result_groups(r, OP_GROUP_BY_NAME, 0, &groups, &count, &samples));
    CHECK_OK(op_result_device_use(r, &use));
    return use.unmatched_launches;
}

/* The row around the call that launched this one. */
static inline int64_t op_that_launched(const op_result *r, int64_t row) {
    op_columns c = columns_of(r);
    CHECK(c.launcher[row] >= 0);
    return c.parent[c.launcher[row]];
}

#endif
