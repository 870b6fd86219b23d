/* Runs every reader over a result, whatever its quality. */
#ifndef DAMAGED_H
#define DAMAGED_H

#include "fixture.h"

#include <fcntl.h>

static inline void use_damaged(op_result *r, bool with_trace) {
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

#endif
