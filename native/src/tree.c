/* Events to columns: times in nanoseconds, parents, self time, steps. One pass over each thread,
 * whose events stand in preorder, and one over all for what crosses threads. */
#include "result.h"

#include "backward.h"
#include "error.h"
#include "fault.h"
#include "fields.h"
#include "inputs.h"
#include "names.h"
#include "nest.h"

#include <stdbool.h>
#include <string.h>

int op_raw_order(const void *a, const void *b) {
    const op_raw *x = a, *y = b;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    return (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

/* ---- time ------------------------------------------------------------------------------- */

typedef struct timeline {
    op_clock_line *lines; /* one between each two pairs; the last also beyond */
    uint32_t count;
} timeline;

static int make_lines(const op_timeline *pairs, timeline *out) {
    out->count = pairs->count - 1;
    out->lines = op_malloc(out->count * sizeof *out->lines);
    if (!out->lines)
        return OP_ENOMEM;
    const op_clock_pair *first = &pairs->pairs[0];
    for (uint32_t i = 0; i < out->count; i++) {
        out->lines[i] = op_clock_through(&pairs->pairs[i], &pairs->pairs[i + 1]);
        /* Joined end to end: wall-clock steps inside the window move nothing. */
        out->lines[i].base_ns = (int64_t)(pairs->pairs[i].monotonic_ns - first->monotonic_ns);
    }
    return OP_OK;
}

static int64_t to_ns(const timeline *t, uint32_t *at, uint64_t ticks) {
    while (*at + 1 < t->count && ticks >= t->lines[*at + 1].from_ticks)
        ++*at;
    return op_clock_ns(&t->lines[*at], ticks);
}

/* ---- storage ---------------------------------------------------------------------------- */

static int copy_args(const op_source *s, op_result *r) {
    uint64_t words = 0;
    for (uint32_t i = 0; i < s->raw_count; i++)
        words += s->raw[i].arg_words;
    r->args = op_malloc(words * sizeof(uint32_t) + 1);
    if (!r->args)
        return op_error_set(OP_ENOMEM, "no memory for %llu argument words", (unsigned long long)words);
    r->arg_words = words;
    words = 0;
    for (uint32_t i = 0; i < s->raw_count; i++) {
        if (s->raw[i].arg_words)
            memcpy(r->args + words, s->raw[i].args, s->raw[i].arg_words * sizeof(uint32_t));
        words += s->raw[i].arg_words;
    }
    return OP_OK;
}

static int list_threads(const op_source *s, op_result *r) {
    r->threads = op_calloc(s->raw_count + 1, sizeof *r->threads);
    if (!r->threads)
        return op_error_set(OP_ENOMEM, "no memory for the list of threads");
    for (uint32_t i = 0; i < s->raw_count; i++) {
        const op_raw *raw = &s->raw[i];
        if (i == 0 || raw->thread != s->raw[i - 1].thread)
            r->threads[r->thread_count++] =
                (op_thread_info){.index = raw->thread, .os_tid = raw->os_tid, .device_index = -1};
        if (raw->torch_thread)
            r->threads[r->thread_count - 1].torch_thread = raw->torch_thread;
    }
    return OP_OK;
}

/* ---- one thread ------------------------------------------------------------------------- */

typedef struct walk {
    const op_source *source;
    op_result *result;
    op_writable w;
    timeline time;
    uint32_t line;
    uint32_t arg_base;
    uint64_t row;
    uint32_t *nearest; /* by depth: row of what may be a parent, there or below; UINT32_MAX: none */
    uint32_t step;     /* the last that began before the event, + 1 */
    bool takes_part;
    bool no_memory;
    op_nest calls;
} walk;

/* The record below it, or the nearest further down where that one is async. */
static int32_t parent_of(const walk *k, uint32_t depth, uint64_t first_row) {
    uint32_t row = depth ? k->nearest[depth - 1] : UINT32_MAX;
    return row != UINT32_MAX && row >= first_row ? (int32_t)row : -1;
}

static void place_in_step(walk *k, uint32_t os_tid, uint64_t start, uint64_t row) {
    const op_steps *steps = k->source->steps;
    uint32_t before = k->step;
    while (k->step < steps->count && steps->marks[k->step].start <= start)
        k->step++;
    k->w.step[row] = -1;
    if (k->step == 0)
        return;
    const op_step_mark *mark = &steps->marks[k->step - 1];
    if (k->step != before)
        k->takes_part = op_step_has_thread(mark, os_tid);
    if (mark->end && start >= mark->end)
        return;
    if (k->takes_part)
        k->w.step[row] = (int32_t)k->step - 1;
    else
        k->w.flags[row] |= OP_FLAG_BACKGROUND;
}

static void read_torch_args(walk *k, uint64_t row) {
    const op_result *r = k->result;
    op_inputs inputs;
    if (!op_inputs_of(r->args + k->w.args[row] - 1, r->args + r->arg_words, &inputs))
        return;
    if (k->w.sequence_nr[row] >= 0) /* a node without a forward (AccumulateGrad) names a thread too */
        k->w.forward_thread[row] = r->args[k->w.args[row]];
}

/* Blocks read from a file hold the file's ids; the copy that the result owns gets ours. */
static void rename_args(const walk *k, uint32_t args) {
    const op_source *s = k->source;
    uint32_t *block = k->result->args + args - 1;
    const uint32_t *limit = k->result->args + k->result->arg_words;
    if (s->names) {
        op_fields_rename(block, limit, s->names, s->name_count);
        op_inputs_rename(block, limit, s->names, s->name_count);
    }
}

static uint32_t name_here(const op_source *s, uint32_t name) {
    if (!s->names)
        return name;
    return name < s->name_count ? s->names[name] : OP_NAME_NONE;
}

/* No event: where it began is not known, only what it is around. */
static void add_open_call(walk *k, const op_raw *raw, const op_event *e) {
    uint64_t end = __atomic_load_n(&e->end, __ATOMIC_RELAXED);
    uint32_t line = k->line;
    op_nest_before(&k->calls, e->depth,
                   (op_open_call){.thread = raw->thread,
                                  .name = name_here(k->source, e->name),
                                  .line = e->line,
                                  .end_ns = end ? to_ns(&k->time, &line, end) : -1});
}

/* No event either: its block belongs to the op around it, in a column of which most results need none.
 */
static void add_to_op(walk *k, uint32_t **column, const op_raw *raw, const op_event *e,
                      uint64_t first_row) {
    int32_t op = parent_of(k, e->depth, first_row);
    if (op < 0 || e->args < raw->args_at || e->args >= raw->args_at + raw->arg_words)
        return;
    if (!*column)
        *column = op_calloc(k->result->columns.count, sizeof **column);
    if (!*column) {
        k->no_memory = true;
        return;
    }
    (*column)[op] = 1 + k->arg_base + (e->args - raw->args_at);
    if (e->kind == OP_COUNTERS)
        rename_args(k, (*column)[op]);
}

static void add_event(walk *k, const op_raw *raw, const op_event *e, uint64_t first_row) {
    op_writable *w = &k->w;
    if (e->kind == OP_OUTPUTS || e->kind == OP_COUNTERS) {
        op_result *r = k->result;
        add_to_op(k, e->kind == OP_OUTPUTS ? &r->outputs : &r->counters, raw, e, first_row);
        return;
    }
    bool is_call = e->kind == OP_PYTHON_CALL || e->kind == OP_C_CALL;
    if (is_call && e->flags & OP_FLAG_BEFORE) {
        add_open_call(k, raw, e);
        return;
    }
    uint64_t row = k->row++;
    uint64_t end = __atomic_load_n(&e->end, __ATOMIC_RELAXED);
    uint8_t flags = __atomic_load_n(&e->flags, __ATOMIC_RELAXED);
    uint32_t ends_on = k->line;
    w->start_ns[row] = to_ns(&k->time, &k->line, e->start);
    w->duration_ns[row] = end ? to_ns(&k->time, &ends_on, end) - w->start_ns[row] : -1;
    if (end && w->duration_ns[row] < 0)
        w->duration_ns[row] = 0;
    w->self_ns[row] = end && !(flags & OP_FLAG_ASYNC) ? w->duration_ns[row] : 0;
    w->name[row] = name_here(k->source, e->name);
    w->thread[row] = raw->thread;
    w->kind[row] = e->kind;
    w->scope[row] = flags & OP_SCOPE_MASK;
    w->flags[row] = (uint8_t)((flags & OP_FLAG_ASYNC) | (end ? 0 : OP_FLAG_UNFINISHED));
    bool numbered = e->kind == OP_TORCH && e->aux != OP_NO_SEQUENCE;
    w->sequence_nr[row] = numbered ? (int64_t)e->aux : -1;
    w->forward_thread[row] = 0;
    w->launcher[row] = -1;
    w->args[row] = 0;
    if (e->args >= raw->args_at && e->args < raw->args_at + raw->arg_words) {
        w->args[row] = 1 + k->arg_base + (e->args - raw->args_at);
        read_torch_args(k, row);
        rename_args(k, w->args[row]);
    }
    w->line[row] = e->line;
    w->parent[row] =
        is_call ? op_nest_call(&k->calls, e->depth, row, first_row) : parent_of(k, e->depth, first_row);
    if (e->kind == OP_MEMORY) /* around nothing */
        w->flags[row] |= op_memory_note(k->result, row);
    else if (!is_call)
        k->nearest[e->depth] = flags & OP_FLAG_ASYNC ? (uint32_t)w->parent[row] : (uint32_t)row;
    if (w->parent[row] >= 0 && !(flags & OP_FLAG_ASYNC) && end)
        w->self_ns[w->parent[row]] -= w->duration_ns[row];
    place_in_step(k, raw->os_tid, e->start, row);
}

static void walk_threads(walk *k) {
    const op_source *s = k->source;
    uint32_t index = 0;
    uint64_t first_row = 0;
    for (uint32_t i = 0; i < s->raw_count; i++) {
        const op_raw *raw = &s->raw[i];
        if (i && raw->thread != s->raw[i - 1].thread) {
            index++;
            k->line = 0;
            k->step = 0;
            first_row = k->row;
        }
        op_raw numbered = *raw;
        numbered.thread = index;
        for (uint32_t j = 0; j < raw->count; j++)
            add_event(k, &numbered, &raw->events[j], first_row);
        k->arg_base += raw->arg_words;
    }
    /* A parent without an end has no duration for its children to leave. */
    for (uint64_t row = 0; row < k->row; row++)
        if (k->w.flags[row] & (OP_FLAG_UNFINISHED | OP_FLAG_ASYNC))
            k->w.self_ns[row] = 0;
}

/* ---- all of it -------------------------------------------------------------------------- */

static int convert_steps(const op_source *s, op_result *r, const timeline *time) {
    r->steps = op_calloc(s->steps->count + 1, sizeof *r->steps);
    if (!r->steps)
        return op_error_set(OP_ENOMEM, "no memory for the list of steps");
    r->step_count = s->steps->count;
    uint32_t line = 0;
    for (uint32_t i = 0; i < s->steps->count; i++) {
        const op_step_mark *m = &s->steps->marks[i];
        r->steps[i].number = m->number;
        r->steps[i].start_ns = to_ns(time, &line, m->start);
        uint32_t ends_on = line;
        r->steps[i].end_ns = m->end ? to_ns(time, &ends_on, m->end) : -1;
    }
    return OP_OK;
}

static int build(const op_source *s, op_result *r, walk *k) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < s->raw_count; i++)
        n += s->raw[i].count;
    if (n > INT32_MAX)
        return op_error_set(OP_ENOMEM, "%llu events: more than a result can hold (2^31)",
                            (unsigned long long)n);
    int rc = make_lines(s->timeline, &k->time);
    if (rc != OP_OK)
        return op_error_set(rc, "no memory for the clock's lines");
    r->trace_start = (int64_t)s->timeline->pairs[0].realtime_ns;
    r->trace_duration = (int64_t)(s->timeline->pairs[s->timeline->count - 1].monotonic_ns -
                                  s->timeline->pairs[0].monotonic_ns);
    k->nearest = op_malloc((UINT16_MAX + 1) * sizeof *k->nearest);
    if (!k->nearest)
        return op_error_set(OP_ENOMEM, "no memory for the stack of open events");
    memset(k->nearest, 0xff, (UINT16_MAX + 1) * sizeof *k->nearest);
    if ((rc = op_columns_allocate(r, &k->w, n)) || (rc = copy_args(s, r)) ||
        (rc = list_threads(s, r)) || (rc = convert_steps(s, r, &k->time)))
        return rc;
    walk_threads(k);
    r->columns.count = k->row;
    r->stats.events = k->row;
    r->stats.threads = r->thread_count;
    if (k->no_memory)
        return op_error_set(OP_ENOMEM, "no memory for what ops gave back or counted");
    rc = op_nest_finish(&k->calls, r, &k->w);
    if (rc == OP_OK)
        rc = op_memory_settle(r, k->w.flags);
    return rc == OP_OK ? op_backward_settle(r, &k->w) : rc;
}

int op_tree_build(const op_source *source, op_result *result) {
    walk k = {.source = source, .result = result};
    int rc = build(source, result, &k);
    op_nest_release(&k.calls);
    free(k.nearest);
    free(k.time.lines);
    return rc;
}
