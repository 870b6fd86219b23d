/* When devices were busy, and how far the host was ahead of them. */
#include "core/fault.h"
#include "result/device_time.h"
#include "result/device_use.h"

typedef struct piece {
    int64_t start_ns, end_ns;
    int64_t before_ns; /* of a stretch: how long the device was busy before */
    uint32_t row;
    int32_t device_type, device_index;
} piece;

static bool is_op(uint8_t kind) {
    return kind == OP_TORCH || kind == OP_RANGE || kind == OP_ITT || kind == OP_NVTX;
}

static bool same_device(const piece *x, const piece *y) {
    return x->device_type == y->device_type && x->device_index == y->device_index;
}

static int by_device(const void *a, const void *b) {
    const piece *x = a, *y = b;
    if (x->device_type != y->device_type)
        return x->device_type < y->device_type ? -1 : 1;
    if (x->device_index != y->device_index)
        return x->device_index < y->device_index ? -1 : 1;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

/* ---- in order ---------------------------------------------------------------------------- */

/* A stream's work and a thread's launches are in order already, and most programs have one of each. */
static void sort(void *values, uint64_t count, size_t size, int (*order)(const void *, const void *)) {
    const char *at = values;
    for (uint64_t i = 1; i < count; i++)
        if (order(at + (i - 1) * size, at + i * size) > 0) {
            qsort(values, count, size, order);
            return;
        }
}

/* How many of these times, which are in order, are not later. Whoever asks comes by in some order too:
 * the answer is near the last one, `hint`, and is looked for in widening steps from there. */
static uint64_t count_until(const int64_t *times, uint64_t count, int64_t at, uint64_t *hint) {
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

/* ---- the union of intervals ------------------------------------------------------------- */

/* What of a piece no earlier piece has covered; pieces come in the order of their start. */
static int64_t uncovered(int64_t *until, const piece *p) {
    int64_t from = *until > p->start_ns ? *until : p->start_ns;
    if (p->end_ns <= from)
        return 0;
    *until = p->end_ns;
    return p->end_ns - from;
}

static void add_busy(op_device_sums *s, int64_t *until, const piece *p, uint32_t place) {
    int32_t step = op_device_step(&s->r->columns, p->row);
    uint64_t column = step < 0 ? s->columns - 1 : (uint32_t)step;
    *op_device_sums_at(s, place, OP_USE_BUSY, step) +=
        uncovered(&until[(uint64_t)place * s->columns + column], p);
}

/* A row that is around an event of the same row finds all covered. */
static void add_busy_around(op_device_sums *s, int64_t *until, const piece *p, int32_t row) {
    for (; row >= 0; row = s->r->columns.parent[row]) {
        uint32_t group = s->r->device_group[row];
        if (group != OP_NO_GROUP && s->of_group[group])
            add_busy(s, until, p, s->of_group[group]);
    }
}

static bool add_device(op_device_sums *s, const piece *pieces, uint64_t count) {
    uint64_t cells = (uint64_t)s->count * s->columns;
    int64_t *until = op_malloc(cells * sizeof *until);
    if (!until)
        return false;
    for (uint64_t i = 0; i < cells; i++)
        until[i] = INT64_MIN;
    for (uint64_t i = 0; i < count; i++) {
        add_busy(s, until, &pieces[i], 0);
        add_busy_around(s, until, &pieces[i], op_device_charged(&s->r->columns, pieces[i].row));
        add_busy_around(s, until, &pieces[i], (int32_t)pieces[i].row);
    }
    free(until);
    return true;
}

/* ---- what is left: idle ----------------------------------------------------------------- */

/* In which a device was busy. */
typedef struct stretches {
    const piece *pieces;
    int64_t *starts;
    uint64_t count;
    uint64_t at_start, at_end; /* where it was looked last */
} stretches;

/* Pieces of one device to the stretches in which it was busy; how many. */
static uint64_t join(piece *pieces, uint64_t count) {
    uint64_t last = 0;
    for (uint64_t i = 1; i < count; i++) {
        if (pieces[i].start_ns > pieces[last].end_ns) {
            int64_t busy = pieces[last].before_ns + pieces[last].end_ns - pieces[last].start_ns;
            pieces[++last] = pieces[i];
            pieces[last].before_ns = busy;
        } else if (pieces[i].end_ns > pieces[last].end_ns) {
            pieces[last].end_ns = pieces[i].end_ns;
        }
    }
    return last + 1;
}

static int64_t busy_before(const stretches *b, int64_t at, uint64_t *hint) {
    uint64_t begun = count_until(b->starts, b->count, at, hint);
    if (begun == 0)
        return 0;
    const piece *last = &b->pieces[begun - 1];
    return last->before_ns + (at < last->end_ns ? at : last->end_ns) - last->start_ns;
}

static void add_idle(op_device_sums *s, stretches *b, uint32_t place, int32_t step, int64_t from,
                     int64_t to) {
    int64_t busy = busy_before(b, to, &b->at_end) - busy_before(b, from, &b->at_start);
    *op_device_sums_at(s, place, OP_USE_SPAN, step) += to - from;
    *op_device_sums_at(s, place, OP_USE_IDLE, step) += to - from - busy;
}

/* The place of an op that launched something; 0: it did not, or it is none. */
static uint32_t place_of_op(const op_device_sums *s, uint64_t row) {
    uint32_t group = s->r->device_group[row];
    return is_op(s->r->columns.kind[row]) && group != OP_NO_GROUP ? s->of_group[group] : 0;
}

static void add_idle_of_rows(op_device_sums *s, stretches *b) {
    const op_result *r = s->r;
    const op_columns *c = &r->columns;
    for (uint64_t row = 0; row < c->count; row++) {
        uint32_t place = place_of_op(s, row);
        if (place && c->duration_ns[row] >= 0)
            add_idle(s, b, place, c->step[row], c->start_ns[row],
                     c->start_ns[row] + c->duration_ns[row]);
    }
    for (uint32_t i = 0; i < r->step_count; i++) {
        int64_t end = r->steps[i].end_ns < 0 ? r->trace_duration : r->steps[i].end_ns;
        add_idle(s, b, 0, (int32_t)i, r->steps[i].start_ns, end);
    }
    if (!r->step_count)
        add_idle(s, b, 0, -1, 0, r->trace_duration);
}

static bool add_idle_of_all(op_device_sums *s, piece *pieces, uint64_t count) {
    stretches b = {.pieces = pieces, .count = join(pieces, count)};
    b.starts = op_malloc(b.count * sizeof *b.starts);
    for (uint64_t i = 0; i < b.count && b.starts; i++)
        b.starts[i] = pieces[i].start_ns;
    if (b.starts)
        add_idle_of_rows(s, &b);
    free(b.starts);
    return b.starts != NULL;
}

int op_device_busy_add(op_device_sums *s) {
    const op_columns *c = &s->r->columns;
    uint64_t n = 0, count = 0;
    for (uint64_t row = 0; row < c->count; row++)
        n += op_is_device_work(c->kind[row]) && c->duration_ns[row] >= 0;
    if (!n)
        return OP_OK;
    piece *pieces = op_malloc(n * sizeof *pieces);
    if (!pieces)
        return OP_ENOMEM;
    for (uint64_t row = 0; row < c->count; row++) {
        const op_thread_info *stream = &s->r->threads[c->thread[row]];
        if (op_is_device_work(c->kind[row]) && c->duration_ns[row] >= 0)
            pieces[count++] = (piece){.start_ns = c->start_ns[row],
                                      .end_ns = c->start_ns[row] + c->duration_ns[row],
                                      .row = (uint32_t)row,
                                      .device_type = stream->device_type,
                                      .device_index = stream->device_index};
    }
    sort(pieces, n, sizeof *pieces, by_device);
    bool ok = true;
    for (uint64_t from = 0, to; from < n && ok; from = to) {
        for (to = from + 1; to < n && same_device(&pieces[from], &pieces[to]); to++)
            ;
        ok = add_device(s, pieces + from, to - from) && add_idle_of_all(s, pieces + from, to - from);
    }
    free(pieces);
    return ok ? OP_OK : OP_ENOMEM;
}

/* ---- the queue -------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

typedef struct queue {
    int64_t *launched, *begun; /* of all kernels, in order */
    uint64_t count;
    uint64_t at_launched, at_begun; /* where it was looked last */
} queue;

static void add_depth(op_device_sums *s, queue *q, uint32_t place, uint64_t row) {
    const op_columns *c = &s->r->columns;
    int64_t at = c->start_ns[row];
    *op_device_sums_at(s, place, OP_USE_DEPTH, c->step[row]) +=
        (int64_t)count_until(q->launched, q->count, at, &q->at_launched) -
        (int64_t)count_until(q->begun, q->count, at, &q->at_begun);
    *op_device_sums_at(s, place, OP_USE_DEPTHS, c->step[row]) += 1;
}

int op_device_queue_add(op_device_sums *s) {
    const op_columns *c = &s->r->columns;
    uint64_t n = 0;
    for (uint64_t row = 0; row < c->count; row++)
        n += c->kind[row] == OP_KERNEL && c->launcher[row] >= 0;
    queue q = {.launched = op_malloc((n + 1) * sizeof(int64_t)),
               .begun = op_malloc((n + 1) * sizeof(int64_t))};
    for (uint64_t row = 0; row < c->count && q.launched && q.begun; row++) {
        if (c->kind[row] != OP_KERNEL || c->launcher[row] < 0)
            continue;
        int64_t at = c->start_ns[op_device_outermost(s, c->launcher[row])];
        q.launched[q.count] = at;
        /* The clocks of both sides agree to some hundred nanoseconds; no kernel begins before its
         * launch. */
        q.begun[q.count++] = c->start_ns[row] > at ? c->start_ns[row] : at;
    }
    bool ok = q.launched && q.begun;
    if (ok) {
        sort(q.launched, q.count, sizeof *q.launched, by_value);
        sort(q.begun, q.count, sizeof *q.begun, by_value);
    }
    for (uint64_t row = 0; row < c->count && ok && q.count; row++) {
        uint32_t place = place_of_op(s, row);
        if (place)
            add_depth(s, &q, place, row);
        if (op_is_launch(s, row))
            add_depth(s, &q, 0, row);
    }
    free(q.launched);
    free(q.begun);
    return ok ? OP_OK : OP_ENOMEM;
}
