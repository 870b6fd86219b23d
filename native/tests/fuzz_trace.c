/* Fuzzes the reader of traces. What is read without an error must be consistent, must not depend on the
 * pieces it came in, and must be the same after writing and reading it again. */
#include "chance.h"
#include "check.h"
#include "fuzz.h"
#include "json.h"
#include "result/result.h"

#include <sys/mman.h>
#include <unistd.h>

const bool fuzz_is_json = true;
uint64_t fuzz_accepted;

/* Each piece in its own memory, so that a sanitizer detects reads beyond it. */
static int read_pieces(const char *text, size_t length, uint32_t piece, op_result **out) {
    op_trace_reader *reader;
    *out = NULL;
    CHECK_OK(op_trace_open(&reader, 0, 0));
    int rc = OP_OK;
    for (size_t at = 0; rc == OP_OK && at < length;) {
        size_t count = piece == UINT32_MAX ? length : 1 + below(piece);
        count = length - at < count ? length - at : count;
        char *copy = malloc(count);
        CHECK(copy != NULL);
        memcpy(copy, text + at, count);
        rc = op_trace_feed(reader, copy, count);
        free(copy);
        at += count;
    }
    if (rc == OP_OK)
        rc = op_trace_finish(reader, out);
    op_trace_close(reader);
    CHECK((rc == OP_OK) == (*out != NULL));
    CHECK(rc == OP_OK || op_last_error()[0]);
    return rc;
}

static void check_columns(const op_result *r) {
    op_columns c;
    uint32_t threads, steps;
    op_result_columns(r, &c);
    op_result_threads(r, &threads);
    op_result_steps(r, &steps);
    for (uint64_t row = 0; row < c.count; row++) {
        CHECK(c.start_ns[row] >= 0 && c.start_ns[row] <= op_result_trace_duration(r));
        CHECK(c.duration_ns[row] >= -1);
        CHECK(c.duration_ns[row] <= op_result_trace_duration(r) - c.start_ns[row]);
        CHECK(c.parent[row] >= -1 && c.parent[row] < (int64_t)row);
        CHECK(c.launcher[row] >= -1 && c.launcher[row] < (int64_t)c.count);
        CHECK(c.launcher[row] < 0 || c.kind[c.launcher[row]] < OP_KERNEL);
        CHECK(c.step[row] >= -1 && c.step[row] < (int64_t)steps);
        CHECK(c.thread[row] < threads);
        CHECK(row == 0 || c.thread[row] >= c.thread[row - 1]);
        const char *text;
        uint64_t length;
        CHECK_OK(op_result_event_args((op_result *)(uintptr_t)r, row, &text, &length));
    }
}

static void check_sums(op_result *r) {
    const op_group *rows;
    const op_path *paths;
    const int64_t *samples;
    op_memory_columns memory;
    op_columns c;
    op_result_columns(r, &c);
    CHECK_OK(op_result_memory_columns(r, &memory));
    uint64_t shown = 0; /* memory credited to an event is in that event's row */
    for (uint64_t row = 0; row < c.count; row++)
        shown += !(c.flags[row] & OP_FLAG_CREDITED);
    for (int by_inputs = 0; by_inputs < 2; by_inputs++) {
        uint64_t count, events = 0;
        uint32_t stack_depth = by_inputs ? 3 : 0;
        CHECK_OK(op_result_groups(r, by_inputs, stack_depth, &rows, &count, &samples));
        for (uint64_t i = 0; i < count; i++)
            events += rows[i].count;
        CHECK_EQ(events, shown);
        op_device_use use;
        CHECK_OK(op_result_device_use(r, &use));
        for (uint64_t i = 0; i < count && use.count; i++)
            CHECK(use.of_group[i] < use.count);
    }
    uint64_t nodes;
    CHECK_OK(op_result_paths(r, 100, &paths, &nodes));
}

static char *written(const op_result *r, int fd, size_t *length) {
    CHECK(ftruncate(fd, 0) == 0 && lseek(fd, 0, SEEK_SET) == 0);
    CHECK_OK(op_result_write_trace(r, fd, "", ""));
    off_t size = lseek(fd, 0, SEEK_CUR);
    CHECK(size > 0);
    *length = (size_t)size;
    char *text = malloc(*length + 1);
    CHECK(text && pread(fd, text, *length, 0) == size);
    text[*length] = 0;
    return text;
}

/* Twice, side by side, with half of the names marked; time stands still and then jumps. */
static char *side_by_side(const op_result *r, int fd) {
    op_columns c;
    uint32_t threads;
    op_result_columns(r, &c);
    op_result_threads(r, &threads);
    const op_trace_mark mark = {
        .label = " [+1]", .category = ",more", .color = "bad", .args = "\"n\": 1"};
    const int64_t end = op_result_trace_duration(r), from[] = {0, end / 2}, to[] = {0, end};
    enum { SLOTS = 1 << 12 };
    static uint32_t mark_of[SLOTS];
    for (uint32_t i = 0; i < SLOTS; i++)
        mark_of[i] = i & 1;
    int64_t *numbers = calloc((size_t)threads + 1, sizeof *numbers);
    CHECK(numbers != NULL);
    const op_trace_side side = {r, mark_of, SLOTS, &mark, from, to, 2, numbers, numbers};
    const op_trace_side sides[] = {side, side};
    CHECK(ftruncate(fd, 0) == 0 && lseek(fd, 0, SEEK_SET) == 0);
    CHECK_OK(op_trace_write_sides(sides, 2, fd, "", ""));
    free(numbers);
    off_t size = lseek(fd, 0, SEEK_CUR);
    char *text = malloc((size_t)size + 1);
    CHECK(text && pread(fd, text, (size_t)size, 0) == size);
    text[size] = 0;
    return text;
}

static int deepest(const char *text) {
    int depth = 0, found = 0;
    for (; *text; text++) {
        depth += (*text == '[' || *text == '{') - (*text == ']' || *text == '}');
        found = depth > found ? depth : found;
    }
    return found;
}

static void check_same(const op_result *a, const op_result *b) {
    op_columns x, y;
    op_result_columns(a, &x);
    op_result_columns(b, &y);
    CHECK_EQ(x.count, y.count);
    CHECK_EQ(op_result_other_events(a), op_result_other_events(b));
    CHECK_EQ(op_result_trace_start(a), op_result_trace_start(b));
    for (uint64_t row = 0; row < x.count; row++) {
        CHECK_EQ(x.start_ns[row], y.start_ns[row]);
        CHECK_EQ(x.duration_ns[row], y.duration_ns[row]);
        CHECK_EQ(x.self_ns[row], y.self_ns[row]);
        CHECK_EQ(x.name[row], y.name[row]);
        CHECK_EQ(x.parent[row], y.parent[row]);
        CHECK_EQ(x.launcher[row], y.launcher[row]);
        CHECK_EQ(x.kind[row], y.kind[row]);
        CHECK_EQ(x.flags[row], y.flags[row]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static int fd = -1;
    if (fd < 0)
        fd = memfd_create("written", 0);
    CHECK(fd >= 0);
    random_state = 88172645463325252u ^ size; /* the same pieces whenever it gets this input */
    op_result *whole, *pieces, *again;
    const char *given = (const char *)data;
    int rc = read_pieces(given, size, UINT32_MAX, &whole);
    CHECK_EQ(read_pieces(given, size, 1 + below(64), &pieces), rc);
    if (rc != OP_OK)
        return 0;
    fuzz_accepted++;
    check_columns(whole);
    check_sums(whole);
    check_same(whole, pieces);
    size_t length;
    char *text = written(whole, fd, &length);
    CHECK(deepest(text) > 60 || is_json(text));
    CHECK_OK(read_pieces(text, length, UINT32_MAX, &again));
    check_same(whole, again);
    free(text);
    text = side_by_side(whole, fd);
    CHECK(deepest(text) > 60 || is_json(text));
    free(text);
    op_result_free(whole);
    op_result_free(pieces);
    op_result_free(again);
    return 0;
}
