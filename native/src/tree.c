/* Events to columns: times in nanoseconds, parents, self time, steps. One pass over each thread,
 * whose events stand in preorder, and one over all for what crosses threads. */
#include "result.h"

#include "backward.h"
#include "cpp_stacks.h"
#include "cuda_window.h"
#include "error.h"
#include "fault.h"
#include "fields.h"
#include "fold.h"
#include "inputs.h"
#include "names.h"
#include "nest.h"
#include "pages.h"
#include "views.h"

#include <stdbool.h>
#include <string.h>

int op_raw_order(const void *a, const void *b) {
    const op_raw *x = a, *y = b;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    return (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

/* ---- one thread ------------------------------------------------------------------------- */

typedef struct walk {
    const op_source *source;
    op_result *result;
    op_writable w;
    op_lines time;
    uint32_t line;
    uint32_t arg_base;
    uint64_t row;
    uint64_t last;     /* 1 + row of the last event that is no call of CUDA */
    uint16_t depth;    /* and its depth */
    uint32_t *nearest; /* by depth: 1 + row of what may be a parent, there or below; 0: none */
    uint32_t step;     /* the last that began before the event, + 1 */
    bool takes_part;
    bool no_memory;
    op_nest calls;
    uint64_t cuda_row, cuda_end; /* the last call of CUDA on the thread, and its end in ticks */
    uint64_t cuda_args;          /* word offset of CUDA's argument blocks */
    op_fold *fold;               /* NULL: all rows are kept */
    bool cannot_fold;            /* there are records that rows of others follow from */
} walk;

/* The record below it, or the nearest further down where that one is async. */
static int32_t parent_of(const walk *k, uint32_t depth, uint64_t first_row) {
    uint32_t row = depth ? k->nearest[depth - 1] : 0;
    return row > first_row ? (int32_t)(row - 1) : -1;
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

static void read_torch_args(walk *k, const op_raw *raw, const uint32_t *block, uint64_t row) {
    op_inputs inputs;
    if (!op_inputs_of(block, raw->args + raw->arg_words, &inputs))
        return;
    if (k->w.sequence_nr[row] >= 0) /* a node without a forward (AccumulateGrad) names a thread too */
        k->w.forward_thread[row] = block[1];
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
                                  .end_ns = end ? op_lines_ns(&k->time, &line, end) : -1});
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

static void put_record(walk *k, const op_raw *raw, const op_event *e, uint64_t row) {
    op_writable *w = &k->w;
    uint64_t end = __atomic_load_n(&e->end, __ATOMIC_RELAXED);
    uint8_t flags = __atomic_load_n(&e->flags, __ATOMIC_RELAXED);
    uint32_t ends_on = k->line;
    w->start_ns[row] = op_lines_ns(&k->time, &k->line, e->start);
    w->duration_ns[row] = end ? op_lines_ns(&k->time, &ends_on, end) - w->start_ns[row] : -1;
    if (end && w->duration_ns[row] < 0)
        w->duration_ns[row] = 0;
    w->self_ns[row] = end && !(flags & OP_FLAG_ASYNC) ? w->duration_ns[row] : 0;
    w->name[row] = name_here(k->source, e->name);
    w->thread[row] = raw->thread;
    /* What else stands in a damaged session file no reader knows. */
    w->kind[row] = e->kind >= OP_RANGE && e->kind <= OP_DEVICE_RANGE ? e->kind : OP_RANGE;
    w->scope[row] = flags & OP_SCOPE_MASK;
    w->flags[row] = (uint8_t)((flags & OP_FLAG_ASYNC) | (end ? 0 : OP_FLAG_UNFINISHED));
    if (e->kind == OP_TORCH && w->scope[row] != OP_SCOPE_USER && flags & OP_FLAG_ALIASES)
        w->flags[row] |= OP_FLAG_VIEW; /* unless something else runs in it */
    bool numbered = e->kind == OP_TORCH && e->aux != OP_NO_SEQUENCE;
    w->sequence_nr[row] = numbered ? (int64_t)e->aux : -1;
    w->forward_thread[row] = 0;
    w->launcher[row] = -1;
    w->args[row] = 0;
    w->line[row] = e->line;
}

static void take_self_time(walk *k, uint64_t row) {
    const op_writable *w = &k->w;
    if (w->parent[row] >= 0 && !(w->flags[row] & (OP_FLAG_ASYNC | OP_FLAG_UNFINISHED)))
        w->self_ns[w->parent[row]] -= w->duration_ns[row];
}

/* A call of CUDA, put among the events by cuda_calls.c: around nothing but calls of its own kind. */
static void add_cuda_call(walk *k, const op_raw *raw, const op_event *e, uint64_t first_row) {
    uint64_t row = k->row++;
    put_record(k, raw, e, row);
    bool nested = k->cuda_row >= first_row && e->end <= k->cuda_end;
    k->w.parent[row] = nested ? (int32_t)k->cuda_row : parent_of(k, e->depth, first_row);
    k->w.args[row] = (uint32_t)(1 + k->cuda_args + (uint64_t)e->aux * OP_CUDA_CALL_WORDS);
    k->source->cuda->row_of[e->aux] = (uint32_t)row;
    if (!nested) {
        k->cuda_row = row;
        k->cuda_end = e->end;
    }
    take_self_time(k, row);
    place_in_step(k, raw->os_tid, e->start, row);
}

/* It belongs to the op around its call, and to that call's step. */
static void add_device_memory(walk *k, const op_raw *raw, const op_event *e, uint64_t first_row) {
    const op_cuda_window *cuda = k->source->cuda;
    op_writable *w = &k->w;
    uint64_t row = k->row++, call = cuda->row_of[cuda->memory.caller[e->aux]];
    put_record(k, raw, e, row);
    w->kind[row] = OP_MEMORY;
    w->parent[row] = parent_of(k, e->depth, first_row);
    w->args[row] = (uint32_t)(1 + k->cuda_args + op_cuda_words_before_memory(cuda) +
                              (uint64_t)e->aux * OP_CUDA_MEMORY_WORDS);
    w->step[row] = w->step[call];
    w->flags[row] |= (w->flags[call] & OP_FLAG_BACKGROUND) | op_memory_note(k->result, row);
}

/* The stack of the event just before it. */
static void add_stack(walk *k, const op_raw *raw, const op_event *e, uint64_t first_row) {
    bool has_args = e->args >= raw->args_at && e->args < raw->args_at + raw->arg_words;
    const uint32_t *block = has_args ? k->result->args + k->arg_base + (e->args - raw->args_at) : NULL;
    int rc = OP_OK;
    if (e->kind == OP_MODULE)
        rc = op_cpp_stacks_file(k->result, name_here(k->source, e->name), block);
    else if (k->last > first_row && e->depth == k->depth + 1)
        rc = op_cpp_stacks_read(k->result, e, raw->thread, k->last - 1, block);
    k->no_memory = k->no_memory || rc != OP_OK;
}

static bool follows_alone(uint8_t kind) {
    return kind == OP_RANGE || kind == OP_TORCH || kind == OP_ITT || kind == OP_NVTX || kind == OP_MARK;
}

static void add_event(walk *k, const op_raw *raw, const op_event *e, uint64_t first_row) {
    op_writable *w = &k->w;
    if (k->fold && !follows_alone(e->kind)) {
        k->cannot_fold = true;
        return;
    }
    if (e->kind == OP_STACK || e->kind == OP_MODULE) {
        add_stack(k, raw, e, first_row);
        return;
    }
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
    if (k->source->cuda && (e->kind == OP_RUNTIME || e->kind == OP_DRIVER)) {
        add_cuda_call(k, raw, e, first_row);
        return;
    }
    if (k->source->cuda && e->kind == OP_DEVICE_MEMORY) {
        add_device_memory(k, raw, e, first_row);
        return;
    }
    uint64_t row = k->row++;
    k->last = row + 1;
    k->depth = e->depth;
    put_record(k, raw, e, row);
    if (e->args >= raw->args_at && e->args < raw->args_at + raw->arg_words) {
        read_torch_args(k, raw, raw->args + (e->args - raw->args_at), row);
        if (!k->fold) {
            w->args[row] = 1 + k->arg_base + (e->args - raw->args_at);
            rename_args(k, w->args[row]);
        }
    }
    w->parent[row] =
        is_call ? op_nest_call(&k->calls, e->depth, row, first_row) : parent_of(k, e->depth, first_row);
    if (e->kind == OP_MEMORY) /* around nothing */
        w->flags[row] |= op_memory_note(k->result, row);
    else if (!is_call)
        k->nearest[e->depth] =
            1 + (w->flags[row] & OP_FLAG_ASYNC ? (uint32_t)w->parent[row] : (uint32_t)row);
    take_self_time(k, row);
    place_in_step(k, raw->os_tid, e->start, row);
}

/* Chunks before this one are not there: a flight recorder forgot them, or they were torn. What had
 * ended by then is around nothing that follows. */
static void skip_gap(walk *k, const op_raw *raw) {
    if (!raw->count)
        return;
    const op_event *first = &raw->events[0];
    uint32_t line = k->line;
    int64_t at_ns = op_lines_ns(&k->time, &line, first->start);
    for (uint32_t depth = 0; depth < first->depth; depth++) {
        uint32_t row = k->nearest[depth];
        if (row && k->w.duration_ns[row - 1] >= 0 &&
            k->w.start_ns[row - 1] + k->w.duration_ns[row - 1] <= at_ns)
            k->nearest[depth] = 0;
    }
    op_nest_skip_gap(&k->calls, &k->w, first->depth, at_ns);
}

static void begin_thread(walk *k) {
    k->line = 0;
    k->step = 0;
    k->cuda_end = 0;
}

static int walk_chunk(walk *k, const op_raw *raw, uint64_t first_row) {
    for (uint32_t j = 0; j < raw->count; j++) {
        int rc = k->fold ? op_fold_rows(k->fold, &k->row, k->nearest, raw->events[j].depth) : OP_OK;
        if (rc == OP_OK && k->row == k->w.room) {
            k->result->columns.count = k->row;
            rc = op_columns_extend(k->result, &k->w, k->row);
        }
        if (rc != OP_OK)
            return rc;
        add_event(k, raw, &raw->events[j], first_row);
    }
    return OP_OK;
}

static int walk_threads(walk *k) {
    const op_source *s = k->source;
    uint32_t index = 0;
    uint64_t first_row = 0;
    int rc = OP_OK;
    begin_thread(k);
    for (uint32_t i = 0; rc == OP_OK && i < s->raw_count; i++) {
        const op_raw *raw = &s->raw[i];
        if (i && raw->thread != s->raw[i - 1].thread) {
            if (k->fold && (rc = op_fold_thread(k->fold, &k->row, k->nearest)) != OP_OK)
                return rc;
            index++;
            begin_thread(k);
            first_row = k->row;
        } else if (i && raw->sequence > s->raw[i - 1].sequence + 1) {
            skip_gap(k, raw);
        }
        op_raw numbered = *raw;
        numbered.thread = index;
        rc = walk_chunk(k, &numbered, first_row);
        k->arg_base += raw->arg_words;
        if (k->fold)
            op_pages_forget(s->mapping, s->mapping_bytes);
    }
    if (rc == OP_OK && k->fold)
        rc = op_fold_thread(k->fold, &k->row, k->nearest);
    /* A parent without an end has no duration for its children to leave. */
    for (uint64_t row = 0; row < k->row; row++)
        if (k->w.flags[row] & (OP_FLAG_UNFINISHED | OP_FLAG_ASYNC))
            k->w.self_ns[row] = 0;
    return rc;
}

/* ---- all of it -------------------------------------------------------------------------- */

#define MOST_ROWS (256u << 10) /* of a fold, at a time: some 18 MB */

static int convert_steps(const op_source *s, op_result *r, const op_lines *time) {
    r->steps = op_calloc(s->steps->count + 1, sizeof *r->steps);
    if (!r->steps)
        return op_error_set(OP_ENOMEM, "no memory for the list of steps");
    r->step_count = s->steps->count;
    uint32_t line = 0;
    for (uint32_t i = 0; i < s->steps->count; i++) {
        const op_step_mark *m = &s->steps->marks[i];
        r->steps[i].number = m->number;
        r->steps[i].start_ns = op_lines_ns(time, &line, m->start);
        uint32_t ends_on = line;
        r->steps[i].end_ns = m->end ? op_lines_ns(time, &ends_on, m->end) : -1;
    }
    return OP_OK;
}

/* About so many will follow: what ran, and the ranges that it was launched in. */
static uint64_t rows_of_devices(const op_source *s) {
    uint64_t work = s->cuda ? s->cuda->records->work_count : 0;
    return work + work / 4;
}

static int settle(op_result *r, walk *k) {
    uint64_t n = r->columns.count;
    op_numbers numbers = {0};
    op_segment rows = {.r = r, .w = &k->w, .count = n, .state = op_calloc(n + 1, 1)};
    int rc = rows.state
                 ? OP_OK
                 : op_error_set(OP_ENOMEM, "no memory to settle %llu events", (unsigned long long)n);
    if (rc == OP_OK && op_backward_number(&rows) && r->step_count) {
        rc = op_numbers_take(&numbers, &rows);
        op_numbers_sort(&numbers);
        if (rc == OP_OK)
            op_backward_move(&rows, &numbers);
    }
    if (rc == OP_OK)
        op_views_settle(&rows);
    op_numbers_free(&numbers);
    free(rows.state);
    return rc;
}

static int build_rows(const op_source *s, op_result *r, walk *k, uint64_t n) {
    int rc = op_columns_reserve(r, &k->w, n, rows_of_devices(s));
    if (rc == OP_OK)
        rc = op_source_copy_args(s, r);
    if (rc != OP_OK)
        return rc;
    k->cuda_args = r->arg_words - (s->cuda ? op_cuda_arg_words(s->cuda) : 0);
    if ((rc = walk_threads(k)) != OP_OK)
        return rc;
    r->columns.count = k->row;
    r->stats.events = k->row;
    if (k->no_memory)
        return op_error_set(OP_ENOMEM, "no memory for what ops gave back, counted or were called by");
    rc = op_nest_finish(&k->calls, r, &k->w);
    if (rc == OP_OK)
        rc = op_memory_settle(r, k->w.flags);
    return rc == OP_OK ? settle(r, k) : rc;
}

/* Sums alone. Not done where records are met that it takes rows for. */
static int build_sums(const op_source *s, op_result *r, walk *k, bool *done) {
    op_fold fold;
    uint64_t most = s->most_events < MOST_ROWS ? s->most_events : MOST_ROWS;
    int rc = op_columns_allocate(r, &k->w, most + 1);
    if (rc != OP_OK)
        return rc;
    op_fold_open(&fold, r, &k->w, most);
    k->fold = &fold;
    rc = walk_threads(k);
    if (rc == OP_OK && !k->cannot_fold) {
        op_fold_begin_counting(&fold);
        if ((rc = walk_threads(k)) == OP_OK && (rc = op_fold_finish(&fold)) == OP_OK)
            *done = true;
    }
    op_fold_release(&fold);
    k->fold = NULL;
    k->row = 0;
    k->arg_base = 0;
    op_columns_free(r);
    return rc;
}

static int build(const op_source *s, op_result *r, walk *k) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < s->raw_count; i++)
        n += s->raw[i].count;
    int rc = op_lines_make(&k->time, s->timeline);
    if (rc != OP_OK)
        return rc;
    r->trace_start = (int64_t)s->timeline->pairs[0].realtime_ns;
    r->trace_duration = (int64_t)(s->timeline->pairs[s->timeline->count - 1].monotonic_ns -
                                  s->timeline->pairs[0].monotonic_ns);
    k->nearest = op_calloc(UINT16_MAX + 1, sizeof *k->nearest);
    if (!k->nearest)
        return op_error_set(OP_ENOMEM, "no memory for the stack of open events");
    if ((rc = op_source_list_threads(s, r)) || (rc = convert_steps(s, r, &k->time)))
        return rc;
    r->stats.threads = r->thread_count;
    bool done = false;
    if (s->most_events && n > s->most_events && !s->cuda && !s->names)
        rc = build_sums(s, r, k, &done);
    if (rc != OP_OK || done)
        return rc;
    if (n > INT32_MAX)
        return op_error_set(OP_ENOMEM, "%llu events: more than a result can hold (2^31)",
                            (unsigned long long)n);
    return build_rows(s, r, k, n);
}

/* With the calls of CUDA among the events, and after these what ran on devices. */
static int build_with_cuda(const op_source *s, op_result *r, walk *k) {
    op_cuda_window *cuda = s->cuda;
    int rc = op_cuda_place_calls(cuda, s->raw, s->raw_count);
    if (rc != OP_OK)
        return rc;
    op_source merged = *s;
    merged.raw = cuda->raw;
    merged.raw_count = cuda->raw_count;
    k->source = &merged;
    if ((rc = build(&merged, r, k)) != OP_OK)
        return rc;
    const op_cuda_rows rows = {.window = cuda,
                               .result = r,
                               .columns = &k->w,
                               .lines = &k->time,
                               .work_args = k->cuda_args + op_cuda_words_before_work(cuda)};
    rc = op_cuda_add_rows(&rows);
    r->stats.events = r->columns.count;
    op_cuda_count(cuda, &r->stats);
    return rc;
}

/* Those that began, whenever it was that their names found no room: who keeps an id begins many. */
static uint64_t count_overflowed(const op_columns *c) {
    uint64_t overflowed = 0;
    for (uint64_t row = 0; row < c->count; row++)
        overflowed += c->name[row] == OP_NAME_OVERFLOW;
    return overflowed;
}

int op_tree_build(const op_source *source, op_result *result) {
    walk k = {.source = source, .result = result};
    int rc = source->cuda ? build_with_cuda(source, result, &k) : build(source, result, &k);
    if (rc == OP_OK)
        result->stats.names_overflowed += count_overflowed(&result->columns);
    op_nest_release(&k.calls);
    free(k.nearest);
    op_lines_free(&k.time);
    return rc;
}
