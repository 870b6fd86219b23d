#include "result/stretches.h"

#include "core/fault.h"

#include <string.h>

static bool grow(op_stretches *s) {
    uint64_t room = s->room ? 2 * s->room : 64;
    int64_t *starts = op_malloc(3 * room * sizeof *starts);
    if (!starts)
        return false;
    op_stretches old = *s;
    s->starts = starts;
    s->ends = starts + room;
    s->before = starts + 2 * room;
    s->room = room;
    if (old.count) {
        memcpy(s->starts, old.starts, old.count * sizeof *starts);
        memcpy(s->ends, old.ends, old.count * sizeof *starts);
        memcpy(s->before, old.before, old.count * sizeof *starts);
    }
    free(old.starts);
    return true;
}

bool op_stretches_add(op_stretches *s, int64_t start_ns, int64_t end_ns) {
    uint64_t n = s->count;
    if (end_ns <= start_ns || (n && end_ns <= s->ends[n - 1]))
        return true;
    if (n && start_ns <= s->ends[n - 1]) {
        s->ends[n - 1] = end_ns;
        return true;
    }
    if (n == s->room && !grow(s))
        return false;
    s->starts[n] = start_ns;
    s->ends[n] = end_ns;
    s->before[n] = n ? s->before[n - 1] + s->ends[n - 1] - s->starts[n - 1] : 0;
    s->count++;
    return true;
}

static int64_t before(const op_stretches *s, int64_t at, uint64_t *hint) {
    uint64_t begun = op_count_until(s->starts, s->count, at, hint);
    if (begun == 0)
        return 0;
    int64_t end = s->ends[begun - 1];
    return s->before[begun - 1] + (at < end ? at : end) - s->starts[begun - 1];
}

int64_t op_stretches_within(op_stretches *s, int64_t from_ns, int64_t to_ns) {
    return from_ns < to_ns ? before(s, to_ns, &s->at_to) - before(s, from_ns, &s->at_from) : 0;
}

void op_stretches_free(op_stretches *s) {
    free(s->starts);
    *s = (op_stretches){0};
}

uint64_t op_count_until(const int64_t *times, uint64_t count, int64_t at, uint64_t *hint) {
    uint64_t low = *hint, high = *hint, width = 1;
    while (low > 0 && times[low - 1] > at) {
        high = low;
        low = low > width ? low - width : 0;
        width *= 2;
    }
    for (width = 1; high < count && times[high] <= at; width *= 2) {
        low = high + 1;
        high = count - high > width ? high + width : count;
    }
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (times[middle] <= at)
            low = middle + 1;
        else
            high = middle;
    }
    *hint = low;
    return low;
}

void op_sort(void *values, uint64_t count, size_t size, int (*order)(const void *, const void *)) {
    const char *at = values;
    for (uint64_t i = 1; i < count; i++)
        if (order(at + (i - 1) * size, at + i * size) > 0) {
            qsort(values, count, size, order);
            return;
        }
}
