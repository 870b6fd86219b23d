/* Turns the events of a file into columns: lane by lane, in preorder. As in torch, only times decide
 * what is inside what: an event that begins inside another and ends later is beside it. */
#include "import/kineto_rows.h"

#include "core/error.h"
#include "core/event.h"
#include "core/fault.h"
#include "core/grow.h"
#include "core/json_scalar.h"
#include "core/names.h"
#include "import/correlate.h"
#include "import/forward_threads.h"
#include "result/imported.h"

#include <string.h>

enum { XPU = 12, PRIVATEUSE1 = 20, CUDA = 1 };

typedef struct building {
    op_read_events *read; /* sorted: an event's index is its row */
    op_result *result;
    op_writable w;
    uint32_t *stack; /* open rows of the lane */
    uint64_t stack_capacity, depth;
    uint64_t *steps_of; /* process << 32 | step, in ascending order */
} building;

static int no_memory(void) { return op_error_set(OP_ENOMEM, "no memory for the columns of the trace"); }

static int64_t end_of(const op_read_event *e) {
    return e->start_ns + (e->duration_ns > 0 ? e->duration_ns : 0);
}

/* Of events with equal times, the first in the file is the outer one. */
static int in_preorder(const void *a, const void *b, void *events) {
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    const op_read_event *x = (const op_read_event *)events + i, *y = (const op_read_event *)events + j;
    if (x->lane != y->lane)
        return x->lane < y->lane ? -1 : 1;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    if (end_of(x) != end_of(y))
        return end_of(x) > end_of(y) ? -1 : 1;
    return (i > j) - (i < j);
}

/* `order` is by row the event's index. Permutes cycle by cycle, without a second copy. */
static void reorder(op_read_event *events, uint32_t *order, uint64_t n) {
    for (uint64_t first = 0; first < n; first++) {
        if (order[first] == first)
            continue;
        const op_read_event moved = events[first];
        uint64_t row = first;
        for (uint32_t from; (from = order[row]) != first; row = from) {
            events[row] = events[from];
            order[row] = (uint32_t)row;
        }
        events[row] = moved;
        order[row] = (uint32_t)row;
    }
}

static int sort_events(op_read_events *read) {
    uint64_t n = read->count;
    uint32_t *order = op_malloc(n * sizeof *order + 1);
    if (!order)
        return no_memory();
    for (uint64_t i = 0; i < n; i++)
        order[i] = (uint32_t)i;
    if (n) {
        qsort_r(order, n, sizeof *order, in_preorder, read->events);
        reorder(read->events, order, n);
    }
    free(order);
    return OP_OK;
}

/* ---- threads ---------------------------------------------------------------------------- */

static int64_t number_in(const op_imported *i, uint32_t text, int64_t otherwise) {
    op_span span = {0};
    span.text = op_string_table_text(&i->texts, text, &span.length);
    int64_t number;
    return op_scan_integer(&span, &number) ? number : otherwise;
}

/* Kineto writes "thread 9611 (python)"; the name proper is in the parentheses. `args` is JSON. */
static void take_label(const op_imported *i, uint32_t text, char name[16]) {
    size_t length;
    const char *args = op_string_table_text(&i->texts, text, &length), *end = args + length;
    const char *from = memmem(args, length, "\"name\"", 6);
    if (from)
        from = memchr(from + 6, '"', (size_t)(end - from - 6));
    const char *until = from ? memchr(from + 1, '"', (size_t)(end - from - 1)) : NULL;
    if (!until || memchr(from, '\\', (size_t)(until - from)))
        return;
    from++;
    const char *open = memchr(from, '(', (size_t)(until - from));
    if (open && until[-1] == ')') {
        from = open + 1;
        until--;
    }
    size_t kept = (size_t)(until - from) < 15 ? (size_t)(until - from) : 15;
    while (kept && kept < (size_t)(until - from) && ((uint8_t)from[kept] & 0xc0) == 0x80)
        kept--;
    memcpy(name, from, kept);
}

static int list_threads(building *b) {
    op_result *r = b->result;
    const op_imported *i = r->imported;
    r->threads = op_calloc((size_t)i->lane_count + 1, sizeof *r->threads);
    if (!r->threads)
        return no_memory();
    r->thread_count = i->lane_count;
    for (uint32_t lane = 0; lane < i->lane_count; lane++) {
        const op_lane *is = &i->lanes[lane];
        op_thread_info *t = &r->threads[lane];
        int64_t tid = number_in(i, is->tid, 0);
        *t = (op_thread_info){.index = lane, .os_tid = (uint32_t)tid, .device_index = -1};
        if (is->label)
            take_label(i, is->label, t->name);
        if (!is->device_type)
            continue;
        t->device_type = is->device_type;
        if (is->device_type == CUDA)
            t->device_type = b->read->has_privateuse1 ? PRIVATEUSE1 : b->read->has_xpu ? XPU : CUDA;
        t->device_index = (int32_t)number_in(i, is->pid, -1);
        t->resource = tid;
    }
    return OP_OK;
}

/* ---- steps ------------------------------------------------------------------------------ */

static bool step_number(uint32_t name, int64_t *number) {
    static const char prefix[] = "ProfilerStep#";
    uint32_t length;
    const char *text = op_names_text(name, &length);
    if (length < sizeof prefix || memcmp(text, prefix, sizeof prefix - 1) != 0)
        return false;
    const op_span digits = {.text = text + sizeof prefix - 1, .length = length - (sizeof prefix - 1)};
    return op_scan_integer(&digits, number);
}

/* A step and the process that it is of. */
typedef struct found_step {
    op_step step;
    uint32_t process;
} found_step;

static int earlier(const void *a, const void *b) {
    const found_step *x = a, *y = b;
    if (x->step.start_ns != y->step.start_ns)
        return x->step.start_ns < y->step.start_ns ? -1 : 1;
    return (x->step.number > y->step.number) - (x->step.number < y->step.number);
}

static int ascending(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static uint32_t process_of(const building *b, uint64_t row) {
    const op_lane *lanes = b->result->imported->lanes; /* NULL: there is one process */
    return lanes ? lanes[b->w.thread[row]].pid : 0;
}

static uint64_t place_of(uint32_t process, uint32_t step) { return (uint64_t)process << 32 | step; }

static int keep_steps(building *b, found_step *found, uint32_t count) {
    op_result *r = b->result;
    r->steps = op_malloc(count * sizeof *r->steps + 1);
    b->steps_of = op_malloc(count * sizeof *b->steps_of + 1);
    if (!r->steps || !b->steps_of)
        return no_memory();
    r->step_count = count;
    if (!count)
        return OP_OK;
    qsort(found, count, sizeof *found, earlier);
    for (uint32_t i = 0; i < count; i++) {
        r->steps[i] = found[i].step;
        b->steps_of[i] = place_of(found[i].process, i);
    }
    qsort(b->steps_of, count, sizeof *b->steps_of, ascending);
    return OP_OK;
}

static int list_steps(building *b) {
    op_buffer found = {0};
    int rc = OP_OK;
    for (uint64_t row = 0; rc == OP_OK && row < b->result->columns.count; row++) {
        found_step one = {.process = process_of(b, row)};
        if (b->w.scope[row] != OP_SCOPE_USER || b->w.kind[row] != OP_RANGE ||
            !step_number(b->w.name[row], &one.step.number))
            continue;
        one.step.start_ns = b->w.start_ns[row];
        one.step.end_ns = b->w.duration_ns[row] < 0 ? -1 : one.step.start_ns + b->w.duration_ns[row];
        rc = op_buffer_add(&found, &one, sizeof one) ? no_memory() : OP_OK;
    }
    if (rc == OP_OK)
        rc = keep_steps(b, (found_step *)(void *)found.bytes,
                        (uint32_t)(found.used / sizeof(found_step)));
    op_buffer_free(&found);
    return rc;
}

/* How many steps had begun. */
static uint32_t begun_at(const op_result *r, int64_t at) {
    uint32_t low = 0, high = r->step_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (r->steps[middle].start_ns <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The last step of a process among the first `count`; -1: it has none there. */
static int32_t last_of(const building *b, uint32_t process, uint32_t count) {
    uint32_t low = 0, high = b->result->step_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (b->steps_of[middle] < place_of(process, count))
            low = middle + 1;
        else
            high = middle;
    }
    return low && b->steps_of[low - 1] >> 32 == process ? (int32_t)(uint32_t)b->steps_of[low - 1] : -1;
}

/* The last step that had begun, unless it had ended. Processes step on their own: it is one of the
 * row's process, or of any if that has none, as a device. */
static int32_t step_at(const building *b, uint64_t row) {
    const op_result *r = b->result;
    int64_t at = r->columns.start_ns[row];
    uint32_t process = process_of(b, row), begun = begun_at(r, at);
    bool has_own = last_of(b, process, r->step_count) >= 0;
    int32_t last = has_own ? last_of(b, process, begun) : (int32_t)begun - 1;
    return last < 0 || (r->steps[last].end_ns >= 0 && at >= r->steps[last].end_ns) ? -1 : last;
}

/* Device work belongs to the step that launched it, however late it runs. */
static void place_in_steps(building *b) {
    const op_columns *c = &b->result->columns;
    for (uint64_t row = 0; row < c->count; row++)
        b->w.step[row] = c->kind[row] < OP_KERNEL ? step_at(b, row) : -1;
    for (uint64_t row = 0; row < c->count; row++)
        if (c->kind[row] >= OP_KERNEL)
            b->w.step[row] = c->launcher[row] >= 0 ? b->w.step[c->launcher[row]] : step_at(b, row);
}

/* ---- rows ------------------------------------------------------------------------------- */

static bool may_be_parent(const op_read_event *e) {
    return e->kind < OP_KERNEL && e->kind != OP_MEMORY && e->kind != OP_MARK &&
           !(e->flags & OP_FLAG_ASYNC);
}

/* 1 + the row of the event around it; 0: none. An event that ended before this one began contains no
 * later one either. An async event may outlive the event in which it began. */
static uint32_t parent_of(building *b, const op_read_event *e) {
    if (e->kind >= OP_KERNEL)
        return 0;
    for (; b->depth; b->depth--) {
        const op_read_event *top = &b->read->events[b->stack[b->depth - 1]];
        if (e->start_ns < end_of(top) && (e->flags & OP_FLAG_ASYNC || end_of(e) <= end_of(top)))
            return b->stack[b->depth - 1] + 1;
    }
    return 0;
}

static int push(building *b, uint32_t row) {
    if (!OP_HAS_ROOM(b->stack, b->depth, b->stack_capacity, 256))
        return no_memory();
    b->stack[b->depth++] = row;
    return OP_OK;
}

/* Afterwards the link of a host event is its parent. */
static int find_parents(building *b) {
    op_read_event *events = b->read->events;
    for (uint64_t row = 0; row < b->read->count; row++) {
        op_read_event *e = &events[row];
        if (row && e->lane != events[row - 1].lane)
            b->depth = 0;
        if (e->kind < OP_KERNEL)
            e->link = parent_of(b, e);
        if (may_be_parent(e) && push(b, (uint32_t)row))
            return OP_ENOMEM;
    }
    return OP_OK;
}

static void fill_in(building *b, uint64_t row, const op_read_event *e) {
    op_writable *w = &b->w;
    bool ended = !(e->flags & OP_FLAG_UNFINISHED) && e->duration_ns >= 0;
    bool at_end = b->read->are_open_at_end || end_of(e) >= b->read->last_ns || e->duration_ns < 0 ||
                  e->kind >= OP_KERNEL; /* work without a time; it has an end only to be drawn */
    int32_t link = (int32_t)e->link - 1;
    w->start_ns[row] = e->start_ns - b->read->first_ns;
    w->duration_ns[row] = ended || !at_end ? e->duration_ns : -1;
    w->self_ns[row] = ended && !(e->flags & OP_FLAG_ASYNC) && e->kind < OP_KERNEL ? e->duration_ns : 0;
    w->sequence_nr[row] = e->sequence_nr;
    w->name[row] = e->name;
    w->thread[row] = e->lane;
    w->forward_thread[row] = e->forward_thread;
    w->args[row] = e->args;
    w->kind[row] = e->kind;
    w->flags[row] = (uint8_t)(e->flags | (ended ? 0 : OP_FLAG_UNFINISHED));
    w->scope[row] = e->scope;
    w->launcher[row] = e->kind >= OP_KERNEL ? link : -1;
    w->parent[row] = e->kind >= OP_KERNEL ? -1 : link;
    b->result->imported->category[row] = e->category;
    b->result->imported->extras[row] = e->extras;
}

/* From the last row to the first, freeing converted events on the way to never hold both in full. */
static void fill_rows(building *b) {
    enum { AT_A_TIME = 1 << 16 };
    op_read_events *read = b->read;
    for (uint64_t row = read->count; row-- > 0;) {
        fill_in(b, row, &read->events[row]);
        if (row % AT_A_TIME == 0 && row) {
            op_read_event *fewer = op_realloc(read->events, row * sizeof *fewer);
            read->events = fewer ? fewer : read->events;
        }
    }
}

static void finish_rows(building *b) {
    op_writable *w = &b->w;
    uint64_t n = b->result->columns.count;
    for (uint64_t row = 0; row < n; row++) {
        bool ended = !(w->flags[row] & (OP_FLAG_UNFINISHED | OP_FLAG_ASYNC));
        if (w->parent[row] >= 0 && ended)
            w->self_ns[w->parent[row]] -= w->duration_ns[row];
        if (w->kind[row] == OP_MEMORY)
            w->flags[row] |= op_memory_note(b->result, row);
    }
    for (uint64_t row = 0; row < n; row++)
        if (w->flags[row] & (OP_FLAG_UNFINISHED | OP_FLAG_ASYNC))
            w->self_ns[row] = 0;
}

static int build(building *b) {
    op_result *r = b->result;
    uint64_t n = b->read->count;
    int rc;
    if ((rc = sort_events(b->read)) || (rc = op_correlate(b->read, r->imported->lanes)) ||
        (rc = find_parents(b)))
        return rc;
    r->imported->category = op_malloc(n + 1);
    r->imported->extras = op_malloc(n * sizeof *r->imported->extras + 1);
    if (!r->imported->category || !r->imported->extras)
        return no_memory();
    if ((rc = op_columns_allocate(r, &b->w, n)) || (!r->threads && (rc = list_threads(b))))
        return rc;
    fill_rows(b);
    finish_rows(b);
    if ((rc = op_forward_threads_find(r)) || (rc = list_steps(b)))
        return rc;
    place_in_steps(b);
    r->stats.events = n;
    r->stats.threads = r->thread_count;
    r->stats.names = op_names_count();
    return OP_OK;
}

int op_rows_build(op_read_events *read, op_result *result) {
    if (read->first_ns == INT64_MAX)
        read->first_ns = 0;
    if (read->last_ns < read->first_ns)
        read->last_ns = read->first_ns;
    result->trace_start = result->imported->base_ns + read->first_ns;
    result->trace_duration = read->last_ns - read->first_ns;
    building b = {.read = read, .result = result};
    int rc = build(&b);
    free(b.stack);
    free(b.steps_of);
    return rc;
}
