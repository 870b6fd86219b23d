/* Turns events into columns: one pass over each thread (walk.c), then one over all for what crosses
 * threads; or into sums (fold.c). */
#include "core/error.h"
#include "core/fault.h"
#include "core/names.h"
#include "cuda/cuda_args.h"
#include "cuda/cuda_calls.h"
#include "cuda/cuda_rows.h"
#include "cuda/cuda_window.h"
#include "result/called_from.h"
#include "result/views.h"
#include "result/work.h"
#include "session/walk.h"

#include <string.h>

int op_raw_order(const void *a, const void *b) {
    const op_raw *x = a, *y = b;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    return (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

#define MOST_ROWS (256u << 10) /* rows that a fold holds at a time: some 18 MB */

static int convert_steps(const op_source *s, op_result *r, const op_tick_map *time) {
    r->steps = op_calloc(s->steps->count + 1, sizeof *r->steps);
    if (!r->steps)
        return op_error_set(OP_ENOMEM, "no memory for the list of steps");
    r->step_count = s->steps->count;
    uint32_t line = 0;
    for (uint32_t i = 0; i < s->steps->count; i++) {
        const op_step_mark *m = &s->steps->marks[i];
        r->steps[i].number = m->number;
        r->steps[i].start_ns = op_tick_map_ns(time, &line, m->start);
        uint32_t ends_on = line;
        r->steps[i].end_ns = m->end ? op_tick_map_ns(time, &ends_on, m->end) : -1;
    }
    return OP_OK;
}

/* An estimate: device work, and the ranges it was launched in. */
static uint64_t rows_of_devices(const op_source *s) {
    uint64_t work = s->cuda ? s->cuda->records->work_count : 0;
    return work + work / 4;
}

/* A row's `line` is its site until the sites are summed up. */
static int settle_sites(op_result *r, const op_segment *rows) {
    op_calling calling = {0};
    bool ok = op_calling_note(&calling, rows);
    if (ok)
        op_calling_settle(&calling, rows);
    for (uint64_t row = 0; ok && row < rows->count; row++)
        ok = op_calling_add(&calling, r, row);
    op_calling_finish(&calling, r);
    op_calling_release(&calling);
    memset(rows->w->line, 0, rows->count * sizeof *rows->w->line);
    return ok ? OP_OK : op_error_set(OP_ENOMEM, "no memory for where ops were called from");
}

static int settle(op_result *r, op_walk *k) {
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
    if (rc == OP_OK) {
        op_views_settle(&rows);
        rc = op_memory_retain(r, k->w.room);
    }
    if (rc == OP_OK)
        op_work_settle(&rows);
    if (rc == OP_OK && r->sites)
        rc = settle_sites(r, &rows);
    op_numbers_free(&numbers);
    free(rows.state);
    return rc;
}

static int build_rows(const op_source *s, op_result *r, op_walk *k, uint64_t n) {
    int rc = op_columns_reserve(r, &k->w, n, rows_of_devices(s));
    if (rc == OP_OK)
        rc = op_source_copy_args(s, r);
    if (rc != OP_OK)
        return rc;
    k->cuda_args = r->arg_words - (s->cuda ? op_cuda_arg_words(s->cuda) : 0);
    if ((rc = op_walk_threads(k)) != OP_OK)
        return rc;
    r->columns.count = k->row;
    r->stats.events = k->row;
    rc = op_nest_finish(&k->calls, r, &k->w);
    if (rc == OP_OK)
        rc = op_memory_settle(r, k->w.flags);
    return rc == OP_OK ? settle(r, k) : rc;
}

/* Makes only sums. Leaves *done false if there are records that need rows. */
static int build_sums(const op_source *s, op_result *r, op_walk *k, bool *done) {
    op_fold fold;
    uint64_t most = s->most_events < MOST_ROWS ? s->most_events : MOST_ROWS;
    int rc = op_columns_allocate(r, &k->w, most + 1);
    if (rc != OP_OK)
        return rc;
    op_fold_open(&fold, r, &k->w, most);
    k->fold = &fold;
    rc = op_walk_threads(k);
    if (rc == OP_OK && !k->cannot_fold) {
        op_fold_begin_counting(&fold);
        if ((rc = op_walk_threads(k)) == OP_OK && (rc = op_fold_finish(&fold)) == OP_OK)
            *done = true;
    }
    op_fold_release(&fold);
    k->fold = NULL;
    k->row = 0;
    k->arg_base = 0;
    op_columns_free(r);
    return rc;
}

static int build(const op_source *s, op_result *r, op_walk *k) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < s->raw_count; i++)
        n += s->raw[i].count;
    int rc = op_tick_map_make(&k->time, s->timeline);
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

/* Merges CUDA calls into the events and appends what ran on devices. */
static int build_with_cuda(const op_source *s, op_result *r, op_walk *k) {
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

/* Counts events with that name, not names: a program that keeps an id uses it many times. */
static uint64_t count_overflowed(const op_columns *c) {
    uint64_t overflowed = 0;
    for (uint64_t row = 0; row < c->count; row++)
        overflowed += c->name[row] == OP_NAME_OVERFLOW;
    return overflowed;
}

int op_tree_build(const op_source *source, op_result *result) {
    op_walk k = {.source = source, .result = result};
    int rc = source->cuda ? build_with_cuda(source, result, &k) : build(source, result, &k);
    if (rc == OP_OK)
        result->stats.names_overflowed += count_overflowed(&result->columns);
    op_nest_release(&k.calls);
    free(k.nearest);
    op_tick_map_free(&k.time);
    return rc;
}
