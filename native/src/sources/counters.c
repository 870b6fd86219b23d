#include "sources/counters.h"

#include "core/collector.h"
#include "core/error.h"
#include "core/fault.h"
#include "core/fields.h"
#include "core/names.h"
#include "core/record.h"

#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>

static op_collector *const self = &op_the_collector;

typedef struct definition {
    const char *name;
    uint32_t type, config;
    bool in_kernel; /* counts only in the kernel, where not every user may count */
} definition;

/* Torch's names (torch/csrc/profiler/perf.cpp), or else those of perf(1). */
static const definition definitions[] = {
    {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, false},
    {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, false},
    {"backend-stall-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND, false},
    {"frontend-stall-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND, false},
    {"cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES, false},
    {"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, false},
    {"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, false},
    {"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, false},
    {"pagefaults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, false},
    {"task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, false},
    {"context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, true},
    {"cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, true}};
#define DEFINITIONS (sizeof definitions / sizeof *definitions)

typedef struct start {
    const op_event *event; /* NULL: reading failed */
    uint64_t values[OP_COUNTERS_MAX];
} start;

/* All counters share one inode: only the kernel's number tells them apart. */
typedef struct opened {
    int fd;
    uint64_t id;
} opened;

struct op_counters {
    pthread_mutex_t lock; /* of `open` and `count` */
    opened open[OP_COUNTERS_MAX];
    uint32_t count; /* of the open ones; 0: closed, or refused */
    uint32_t keys[OP_COUNTERS_MAX];
    uint32_t capacity; /* of `starts` */
    start *starts;     /* one per place in the thread's stack of open records */
};

uint32_t op_counted;
static uint32_t chosen[OP_COUNTERS_MAX], keys[OP_COUNTERS_MAX]; /* keys: ids of the counters' names */

const char *op_counter_name(uint32_t counter) {
    return counter < DEFINITIONS ? definitions[counter].name : NULL;
}

/* Whoever may profile at all may count what happens outside the kernel. Each counter stands alone,
 * because Linux 6.18 counts only the clock of a group that contains one. A pinned counter either counts
 * all the time or reads as nothing; a multiplexed one would be an estimate. */
static int open_counter(uint32_t counter) {
    const definition *d = &definitions[counter];
    struct perf_event_attr attributes = {.type = d->type,
                                         .size = sizeof attributes,
                                         .config = d->config,
                                         .pinned = 1,
                                         .exclude_kernel = !d->in_kernel,
                                         .exclude_hv = 1};
    return op_perf_event_open(&attributes, PERF_FLAG_FD_CLOEXEC);
}

/* The program may have closed the descriptor, and its own file may have the number since. */
static bool is_ours(const opened *o) {
    uint64_t id;
    return ioctl(o->fd, PERF_EVENT_IOC_ID, &id) == 0 && id == o->id;
}

/* Whether all were still there. */
static bool close_all(const opened *open, uint32_t count) {
    bool are_ours = true;
    while (count--) {
        if (is_ours(&open[count]))
            close(open[count].fd);
        else
            are_ours = false;
    }
    return are_ours;
}

static bool open_all(opened *open, const uint32_t *counters, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        open[i] = (opened){.fd = open_counter(counters[i])};
        if (open[i].fd < 0 || ioctl(open[i].fd, PERF_EVENT_IOC_ID, &open[i].id) != 0) {
            int error = errno;
            if (open[i].fd >= 0)
                close(open[i].fd);
            close_all(open, i);
            errno = error;
            return false;
        }
    }
    return true;
}

static bool read_all(const opened *open, uint32_t count, uint64_t *values) {
    for (uint32_t i = 0; i < count; i++)
        if (!is_ours(&open[i]) || read(open[i].fd, &values[i], sizeof *values) != sizeof *values)
            return false;
    return true;
}

int op_counter_refusal(uint32_t counter) {
    if (counter >= DEFINITIONS)
        return EINVAL;
    opened open;
    if (!open_all(&open, &counter, 1))
        return errno;
    uint64_t value;
    bool counts = read_all(&open, 1, &value);
    close_all(&open, 1);
    return counts ? 0 : EBUSY;
}

static int choose(const uint32_t *counters, uint32_t count) {
    opened open[OP_COUNTERS_MAX];
    uint64_t values[OP_COUNTERS_MAX];
    if (op_open_window())
        return op_error_set(OP_EBUSY, "a window is open: its counters cannot change");
    __atomic_store_n(&op_counted, 0, __ATOMIC_RELAXED);
    if (count > OP_COUNTERS_MAX)
        return op_error_set(OP_EIO, "%u counters: at most %d are counted at once", count,
                            OP_COUNTERS_MAX);
    for (uint32_t i = 0; i < count; i++)
        if (counters[i] >= DEFINITIONS)
            return op_error_set(OP_EIO, "counter %u does not exist", counters[i]);
    if (count && !open_all(open, counters, count))
        return op_error_errno("%u counters at once", count);
    bool counts = count == 0 || read_all(open, count, values);
    if (count)
        close_all(open, count);
    if (!counts)
        return op_error_set(OP_EIO, "%u counters at once: the processor has no room for them", count);
    for (uint32_t i = 0; i < count; i++) {
        chosen[i] = counters[i];
        keys[i] = op_names_intern(definitions[counters[i]].name, strlen(definitions[counters[i]].name));
    }
    __atomic_store_n(&op_counted, count, __ATOMIC_RELAXED);
    return OP_OK;
}

int op_window_count(const uint32_t *counters, uint32_t count) {
    pthread_mutex_lock(&self->lock);
    int rc = choose(counters, count);
    pthread_mutex_unlock(&self->lock);
    return rc;
}

uint32_t op_counters_chosen(uint32_t out[OP_COUNTERS_MAX]) {
    memcpy(out, chosen, sizeof chosen);
    return op_counts();
}

/* ---- of one thread -------------------------------------------------------------------------- */

static op_counters *create(void) {
    op_counters *c = op_calloc(1, sizeof *c);
    if (c)
        pthread_mutex_init(&c->lock, NULL);
    return c;
}

static void be_open(op_counters *c) {
    pthread_mutex_lock(&c->lock);
    c->count = op_counts();
    memcpy(c->keys, keys, sizeof keys);
    pthread_mutex_unlock(&c->lock);
}

/* Once per thread and window, under the collector's lock: the window's end must miss no counter. */
static void enter_window(op_thread *t, uint32_t window) {
    pthread_mutex_lock(&self->lock);
    if (op_open_window() == window) {
        t->counted_window = window;
        if (!t->counters)
            t->counters = create();
        op_counters *c = t->counters;
        if (c && open_all(c->open, chosen, op_counts()))
            be_open(c);
        else
            self->uncounted++;
    }
    pthread_mutex_unlock(&self->lock);
}

/* Returns how many counters it read; 0: closed, refused or failed. */
static uint32_t read_here(op_counters *c, uint64_t *values) {
    pthread_mutex_lock(&c->lock);
    uint32_t count = c->count && read_all(c->open, c->count, values) ? c->count : 0;
    pthread_mutex_unlock(&c->lock);
    return count;
}

static bool make_room(op_counters *c, const op_thread *t) {
    if (t->depth <= c->capacity)
        return true;
    start *more = op_realloc(c->starts, t->capacity * sizeof *more);
    if (!more)
        return false;
    c->starts = more;
    c->capacity = t->capacity;
    return true;
}

void op_count_begin(const op_slot *slot) {
    if (!op_is_innermost(slot))
        return;
    op_thread *t = op_self;
    if (t->counted_window != slot->window)
        enter_window(t, slot->window);
    op_counters *c = t->counters;
    if (!c || !make_room(c, t))
        return;
    start *s = &c->starts[t->depth - 1];
    s->event = read_here(c, s->values) ? slot->event : NULL;
}

void op_count_end(const op_slot *slot) {
    op_thread *t = op_self;
    if (!slot->event || t != slot->thread || t->window != slot->window)
        return;
    op_thread_trim(t); /* records that other threads ended may lie above it */
    op_counters *c = t->counters;
    if (!op_is_innermost(slot) || !c || t->depth > c->capacity ||
        c->starts[t->depth - 1].event != slot->event ||
        __atomic_load_n(&slot->event->flags, __ATOMIC_RELAXED) & OP_FLAG_ASYNC)
        return;
    const uint64_t *before = c->starts[t->depth - 1].values;
    uint64_t values[OP_COUNTERS_MAX];
    uint32_t count = read_here(c, values);
    if (!count)
        return;
    op_fields fields;
    op_fields_clear(&fields);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t counted = values[i] - before[i];
        op_fields_put_numbers(&fields, c->keys[i], OP_FIELD_UNSIGNED, &counted, 1);
    }
    op_instant(OP_NAME_NONE, OP_COUNTERS, 0, fields.words, op_fields_close(&fields));
}

void op_counters_close(op_counters *c) {
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    if (!close_all(c->open, c->count))
        self->uncounted++;
    c->count = 0;
    pthread_mutex_unlock(&c->lock);
}

void op_counters_free(op_counters *c) {
    if (!c)
        return;
    op_counters_close(c);
    pthread_mutex_destroy(&c->lock);
    free(c->starts);
    free(c);
}

void op_counters_abandon(op_counters *c) {
    if (!c)
        return;
    close_all(c->open, c->count);
    free(c->starts);
    free(c);
}
