#include "core/steps.h"

#include "core/error.h"
#include "core/grow.h"
#include "opprof.h"

#include <dirent.h>
#include <string.h>
#include <sys/syscall.h>

static int by_value(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* If it fails, the mark has no list and every thread counts as part of the step. Counts that vary with
 * those threads are then reported as unstable, not hidden. */
static void list_threads(op_step_mark *mark) {
    DIR *tasks = opendir("/proc/self/task");
    if (!tasks)
        return;
    uint32_t capacity = 0, count = 0, *tids = NULL;
    for (struct dirent *d = readdir(tasks); d; d = readdir(tasks)) {
        if (d->d_name[0] < '0' || d->d_name[0] > '9')
            continue;
        if (!OP_HAS_ROOM(tids, count, capacity, 64)) {
            free(tids);
            closedir(tasks);
            return;
        }
        tids[count++] = (uint32_t)strtoul(d->d_name, NULL, 10);
    }
    closedir(tasks);
    if (count)
        qsort(tids, count, sizeof *tids, by_value);
    mark->tids = tids;
    mark->tid_count = count;
}

bool op_step_has_thread(const op_step_mark *mark, uint32_t os_tid) {
    if (os_tid == mark->stepper || !mark->tids)
        return true;
    return !bsearch(&os_tid, mark->tids, mark->tid_count, sizeof os_tid, by_value);
}

int op_steps_begin(op_steps *steps, int64_t number) {
    op_steps_end(steps);
    if (!OP_HAS_ROOM(steps->marks, steps->count, steps->capacity, 16))
        return op_error_set(OP_ENOMEM, "no memory to mark step %lld", (long long)number);
    op_step_mark *mark = &steps->marks[steps->count++];
    *mark = (op_step_mark){.number = number, .stepper = (uint32_t)syscall(SYS_gettid)};
    list_threads(mark);
    mark->start = op_ticks();
    return OP_OK;
}

void op_steps_end(op_steps *steps) {
    if (steps->count && steps->marks[steps->count - 1].end == 0)
        steps->marks[steps->count - 1].end = op_ticks();
}

void op_steps_clear(op_steps *steps) {
    for (uint32_t i = 0; i < steps->count; i++)
        free(steps->marks[i].tids);
    free(steps->marks);
    *steps = (op_steps){0};
}

int op_timeline_add(op_timeline *timeline) {
    if (!OP_HAS_ROOM(timeline->pairs, timeline->count, timeline->capacity, 8))
        return op_error_set(OP_ENOMEM, "no memory for a clock calibration");
    op_clock_calibrate(&timeline->pairs[timeline->count++]);
    return OP_OK;
}

void op_timeline_clear(op_timeline *timeline) {
    free(timeline->pairs);
    *timeline = (op_timeline){0};
}
