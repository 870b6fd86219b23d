/* Device work as rows: per stream, in order of begin. Work belongs to the call that launched it, and so
 * to that call's step, however late it ran. */
#include "cuda/cuda_rows.h"

#include "core/error.h"
#include "core/fault.h"
#include "core/prefault.h"
#include "cuda/cuda_args.h"
#include "cuda/cuda_lanes.h"
#include "cuda/cuda_ranges.h"
#include "cuda/cuda_waits.h"
#include "cuda/cuda_window.h"

#include <string.h>

typedef struct item {
    uint64_t start, end; /* ticks; end 0: unknown */
    uint32_t lane;
    uint32_t launcher; /* row; OP_CUDA_OUTSIDE: unknown */
    uint32_t place;    /* index of the work record, or of the extent */
    bool is_range;
} item;

typedef struct adding {
    const op_cuda_rows *rows;
    const op_cuda_work *work;
    op_cuda_lanes lanes;
    bool knows_contexts; /* the lanes have learned all contexts */
    op_cuda_ranges ranges;
    op_cuda_waits waits;
    item *items;
    uint32_t *order; /* items by lane, then by begin */
    uint64_t count;  /* ranges come last */
} adding;

static int no_memory(void) { return op_error_set(OP_ENOMEM, "no memory for what ran on devices"); }

/* ---- selecting items ---------------------------------------------------------------------------- */

/* The launching row, OP_CUDA_OUTSIDE if it was not recorded. False: the work is not of this window. */
static bool launcher_of(const adding *a, const op_cuda_work *w, uint32_t *launcher) {
    op_cuda_window *window = a->rows->window;
    uint32_t call = op_cuda_index_find(&window->index, w->work.correlation);
    *launcher = OP_CUDA_OUTSIDE;
    if (call == OP_CUDA_OUTSIDE)
        return false;
    if (call) {
        *launcher = window->row_of[call - 1];
    } else if (w->kind != OP_SYNC) {
        a->rows->result->stats.device_unlaunched++;
    }
    return true;
}

static uint64_t launched_at(const adding *a, const op_cuda_work *w) {
    const op_cuda_window *window = a->rows->window;
    uint32_t call = op_cuda_index_find(&window->index, w->work.correlation);
    return call ? window->records->calls[call - 1].start : 0;
}

static void note_on_lane(op_cuda_lane *lane, uint64_t start) {
    lane->is_unsorted |= lane->work && start <= lane->last_start;
    lane->last_start = start;
    lane->work++;
}

/* The device of a synchronization is only known from other work of its context, before or after it. */
static bool learn_contexts(adding *a) {
    uint64_t n = a->knows_contexts ? 0 : a->rows->window->records->work_count;
    for (uint64_t i = 0; i < n; i++)
        if (a->work[i].kind != OP_SYNC && !op_cuda_lanes_learn(&a->lanes, &a->work[i]))
            return false;
    a->knows_contexts = true;
    return true;
}

static bool put_args(adding *a, const op_cuda_work *w, uint32_t place) {
    op_device_work said = w->work;
    if (w->kind == OP_SYNC && !op_cuda_waits_tell(&a->waits, a->rows->window, &said))
        return false;
    op_cuda_put_work_args(&said, a->rows->result->args + a->rows->work_args +
                                     (uint64_t)place * OP_CUDA_WORK_WORDS);
    return true;
}

static int add_work(adding *a, uint32_t place) {
    const op_cuda_work *w = &a->work[place];
    item *i = &a->items[a->count];
    *i = (item){.start = w->start, .end = w->end, .place = place};
    if (!put_args(a, w, place))
        return no_memory();
    if (!launcher_of(a, w, &i->launcher))
        return OP_OK;
    if (!w->end) /* it is placed at its launch */
        i->start = launched_at(a, w);
    if (w->kind == OP_SYNC && !learn_contexts(a))
        return no_memory();
    int64_t lane = op_cuda_lanes_find(&a->lanes, w);
    if (lane < 0)
        return no_memory();
    i->lane = (uint32_t)lane;
    note_on_lane(&a->lanes.lanes[lane], i->start);
    a->count++;
    if (w->kind == OP_SYNC || i->launcher == OP_CUDA_OUTSIDE || !w->end)
        return OP_OK;
    return op_cuda_ranges_extend(&a->ranges, i->launcher, i->lane, i->start, i->end);
}

static int list_items(adding *a) {
    uint64_t n = a->rows->window->records->work_count;
    a->items = op_malloc(n * sizeof *a->items + 1);
    if (!a->items)
        return no_memory();
    op_prefault_expect(a->items, n * sizeof *a->items);
    for (uint64_t i = 0; i < n; i++) {
        int rc = add_work(a, (uint32_t)i);
        if (rc != OP_OK)
            return rc;
    }
    item *all = op_realloc(a->items, (a->count + a->ranges.count) * sizeof *all + 1);
    if (!all)
        return no_memory();
    a->items = all;
    a->rows->result->stats.device_events = a->count;
    for (uint32_t i = 0; i < a->ranges.count; i++) {
        const op_cuda_extent *e = &a->ranges.extents[i];
        a->lanes.lanes[e->lane].ranges++;
        all[a->count++] = (item){.start = e->start,
                                 .end = e->end,
                                 .lane = e->lane,
                                 .launcher = e->row,
                                 .place = i,
                                 .is_range = true};
    }
    return OP_OK;
}

/* ---- sorting ------------------------------------------------------------------------------------ */

static int in_order(const void *a, const void *b, void *items) {
    const item *x = (const item *)items + *(const uint32_t *)a;
    const item *y = (const item *)items + *(const uint32_t *)b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    if (x->end != y->end)
        return x->end > y->end ? -1 : 1;
    if (x->is_range != y->is_range)
        return x->is_range ? -1 : 1;
    return (x->launcher > y->launcher) - (x->launcher < y->launcher);
}

static void sort(const adding *a, uint32_t *order, uint64_t count) {
    for (uint64_t i = 1; i < count; i++)
        if (in_order(&order[i - 1], &order[i], a->items) > 0) {
            qsort_r(order, count, sizeof *order, in_order, a->items);
            return;
        }
}

/* Work is plentiful and nearly always in order; the ranges after it are few. */
static void sort_lane(const adding *a, const op_cuda_lane *lane, uint32_t *order, uint32_t *spare) {
    uint64_t work = lane->work, ranges = lane->ranges, at = work + ranges;
    if (lane->is_unsorted)
        sort(a, order, work);
    sort(a, order + work, ranges);
    memcpy(spare, order + work, ranges * sizeof *spare);
    while (ranges)
        if (work && in_order(&order[work - 1], &spare[ranges - 1], a->items) > 0)
            order[--at] = order[--work];
        else
            order[--at] = spare[--ranges];
}

static int order_items(adding *a) {
    a->order = op_malloc(a->count * sizeof *a->order + 1);
    uint64_t *from = op_calloc((size_t)a->lanes.count + 1, sizeof *from);
    uint32_t *spare = op_malloc(a->ranges.count * sizeof *spare + 1);
    if (!a->order || !from || !spare) {
        free(from);
        free(spare);
        return no_memory();
    }
    const op_cuda_lane *lanes = a->lanes.lanes;
    for (uint32_t lane = 0; lane + 1 < a->lanes.count; lane++)
        from[lane + 1] = from[lane] + lanes[lane].work + lanes[lane].ranges;
    for (uint64_t i = 0; i < a->count; i++)
        a->order[from[a->items[i].lane]++] = (uint32_t)i;
    for (uint32_t lane = 0; lane < a->lanes.count; lane++)
        sort_lane(a, &lanes[lane], a->order + from[lane] - lanes[lane].work - lanes[lane].ranges,
                  spare);
    free(spare);
    free(from);
    return OP_OK;
}

/* ---- rows ----------------------------------------------------------------------------------- */

static int add_lanes(const adding *a) {
    op_result *r = a->rows->result;
    op_thread_info *all =
        op_realloc(r->threads, ((size_t)r->thread_count + a->lanes.count + 1) * sizeof *all);
    if (!all)
        return no_memory();
    r->threads = all;
    for (uint32_t i = 0; i < a->lanes.count; i++) {
        const op_cuda_lane *lane = &a->lanes.lanes[i];
        all[r->thread_count + i] = (op_thread_info){
            .index = UINT32_MAX,
            .device_type = OP_CUDA_DEVICE_TYPE,
            .device_index = (int32_t)lane->device,
            .resource = lane->stream == OP_CUPTI_NO_STREAM ? -1 : (int64_t)lane->stream};
    }
    return OP_OK;
}

/* The last step that had begun, unless it had ended. For work without a recorded launch. */
static int32_t step_at(const op_result *r, int64_t at_ns) {
    uint32_t step = r->step_count;
    while (step > 0 && r->steps[step - 1].start_ns > at_ns)
        step--;
    bool ended = step > 0 && r->steps[step - 1].end_ns >= 0 && at_ns >= r->steps[step - 1].end_ns;
    return step == 0 || ended ? -1 : (int32_t)step - 1;
}

static void put_times(const adding *a, uint64_t row, const item *i, uint32_t *line) {
    op_writable *w = a->rows->columns;
    bool known = i->end != 0;
    uint32_t ends_on;
    if (known) {
        w->start_ns[row] = op_tick_map_ns(a->rows->lines, line, i->start);
        ends_on = *line;
        w->duration_ns[row] = op_tick_map_ns(a->rows->lines, &ends_on, i->end) - w->start_ns[row];
    } else {
        w->start_ns[row] = i->launcher == OP_CUDA_OUTSIDE ? 0 : w->start_ns[i->launcher];
        w->duration_ns[row] = -1;
    }
    w->flags[row] = known ? 0 : OP_FLAG_UNFINISHED;
}

static void put_launcher(const adding *a, uint64_t row, const item *i) {
    op_writable *w = a->rows->columns;
    w->launcher[row] = i->launcher == OP_CUDA_OUTSIDE ? -1 : (int32_t)i->launcher;
    if (i->launcher == OP_CUDA_OUTSIDE) {
        w->step[row] = step_at(a->rows->result, w->start_ns[row]);
        return;
    }
    w->step[row] = w->step[i->launcher];
    w->flags[row] |= w->flags[i->launcher] & OP_FLAG_BACKGROUND;
}

static void put_row(const adding *a, uint64_t row, const item *i, uint32_t *line) {
    op_writable *w = a->rows->columns;
    const op_cuda_work *work = i->is_range ? NULL : &a->work[i->place];
    w->kind[row] = work ? work->kind : OP_DEVICE_RANGE;
    w->scope[row] = work ? 0 : OP_SCOPE_USER;
    w->name[row] = work ? work->name : w->name[i->launcher];
    w->args[row] = work ? (uint32_t)(1 + a->rows->work_args + i->place * OP_CUDA_WORK_WORDS) : 0;
    w->thread[row] = a->rows->result->thread_count + i->lane;
    put_times(a, row, i, line);
    put_launcher(a, row, i);
}

/* The columns that are the same in all rows. */
static void put_constants(const adding *a, uint64_t first) {
    const op_writable *w = a->rows->columns;
    memset(w->self_ns + first, 0, a->count * sizeof *w->self_ns);
    memset(w->sequence_nr + first, 0xff, a->count * sizeof *w->sequence_nr);
    memset(w->forward_thread + first, 0, a->count * sizeof *w->forward_thread);
    memset(w->parent + first, 0xff, a->count * sizeof *w->parent);
}

static int add_rows(adding *a) {
    const op_cuda_rows *rows = a->rows;
    op_result *r = rows->result;
    uint64_t first = r->columns.count;
    uint32_t line = 0, lane = 0;
    int rc = op_cuda_ranges_open(&a->ranges, &r->columns);
    if (rc != OP_OK || (rc = list_items(a)) || (rc = order_items(a)))
        return rc;
    if (first + a->count > INT32_MAX)
        return op_error_set(OP_ENOMEM, "%llu events: more than a result can hold (2^31)",
                            (unsigned long long)(first + a->count));
    if ((rc = add_lanes(a)) || (rc = op_columns_extend(r, rows->columns, a->count)))
        return rc;
    put_constants(a, first);
    for (uint64_t k = 0; k < a->count; k++) {
        const item *i = &a->items[a->order[k]];
        if (i->lane != lane)
            line = 0;
        lane = i->lane;
        put_row(a, first + k, i, &line);
    }
    r->columns.count = first + a->count;
    r->thread_count += a->lanes.count;
    return OP_OK;
}

int op_cuda_add_rows(const op_cuda_rows *rows) {
    adding a = {.rows = rows, .work = rows->window->records->work};
    int rc = rows->window->records->work_count ? add_rows(&a) : OP_OK;
    op_cuda_lanes_free(&a.lanes);
    op_cuda_ranges_close(&a.ranges);
    op_cuda_waits_free(&a.waits);
    free(a.items);
    free(a.order);
    return rc;
}

void op_cuda_count(const op_cuda_window *w, op_stats *stats) {
    stats->device_dropped = w->records->dropped + w->memory.adrift;
    stats->device_untimed = w->records->untimed;
    stats->device_overhead_ns = w->records->overhead_ns;
}
