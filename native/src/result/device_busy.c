/* When devices were busy, and how far the host ran ahead of them. */
#include "core/fault.h"
#include "result/device_spans.h"
#include "result/device_time.h"
#include "result/device_use.h"
#include "result/stretches.h"

static bool is_op(uint8_t kind) {
    return kind == OP_TORCH || kind == OP_RANGE || kind == OP_ITT || kind == OP_NVTX;
}

/* ---- the union of intervals ------------------------------------------------------------- */

/* The part of a piece that no earlier piece covered; pieces come in the order of their start. */
static int64_t uncovered(int64_t *until, const op_piece *p) {
    int64_t from = *until > p->start_ns ? *until : p->start_ns;
    if (p->end_ns <= from)
        return 0;
    *until = p->end_ns;
    return p->end_ns - from;
}

static void add_busy(op_device_sums *s, int64_t *until, const op_piece *p, uint32_t place) {
    int32_t step = op_device_step(&s->r->columns, p->row);
    uint64_t column = step < 0 ? s->columns - 1 : (uint32_t)step;
    *op_device_sums_at(s, place, OP_USE_BUSY, step) +=
        uncovered(&until[(uint64_t)place * s->columns + column], p);
}

/* A row inside an event of the same row adds nothing, because all is covered by then. */
static void add_busy_around(op_device_sums *s, int64_t *until, const op_piece *p, int32_t row) {
    for (; row >= 0; row = s->r->columns.parent[row]) {
        uint32_t group = s->r->device_group[row];
        if (group != OP_NO_GROUP && s->of_group[group])
            add_busy(s, until, p, s->of_group[group]);
    }
}

static bool add_device(op_device_sums *s, const op_piece *pieces, uint64_t count) {
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

static void add_idle(op_device_sums *s, op_stretches *busy, uint32_t place, int32_t step, int64_t from,
                     int64_t to) {
    *op_device_sums_at(s, place, OP_USE_SPAN, step) += to - from;
    *op_device_sums_at(s, place, OP_USE_IDLE, step) += to - from - op_stretches_within(busy, from, to);
}

/* The place of an op that launched something; 0: it is not an op or launched nothing. */
static uint32_t place_of_op(const op_device_sums *s, uint64_t row) {
    uint32_t group = s->r->device_group[row];
    return is_op(s->r->columns.kind[row]) && group != OP_NO_GROUP ? s->of_group[group] : 0;
}

static void add_idle_of_rows(op_device_sums *s, op_stretches *busy) {
    const op_result *r = s->r;
    const op_columns *c = &r->columns;
    for (uint64_t row = 0; row < c->count; row++) {
        uint32_t place = place_of_op(s, row);
        if (place && c->duration_ns[row] >= 0)
            add_idle(s, busy, place, c->step[row], c->start_ns[row],
                     c->start_ns[row] + c->duration_ns[row]);
    }
    for (uint32_t i = 0; i < r->step_count; i++) {
        int64_t end = r->steps[i].end_ns < 0 ? r->trace_duration : r->steps[i].end_ns;
        add_idle(s, busy, 0, (int32_t)i, r->steps[i].start_ns, end);
    }
    if (!r->step_count)
        add_idle(s, busy, 0, -1, 0, r->trace_duration);
}

static bool add_idle_of_all(op_device_sums *s, const op_piece *pieces, uint64_t count) {
    op_stretches busy = {0};
    bool ok = true;
    for (uint64_t i = 0; i < count && ok; i++)
        ok = op_stretches_add(&busy, pieces[i].start_ns, pieces[i].end_ns);
    if (ok)
        add_idle_of_rows(s, &busy);
    op_stretches_free(&busy);
    return ok;
}

int op_device_busy_add(op_device_sums *s) {
    op_piece *pieces;
    uint64_t n;
    bool ok = op_pieces_list(s->r, &pieces, &n) == OP_OK;
    for (uint64_t from = 0, count; from < n && ok; from += count) {
        count = op_pieces_of_device(pieces + from, n - from);
        ok = add_device(s, pieces + from, count) && add_idle_of_all(s, pieces + from, count);
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
    int64_t *launched, *begun; /* of all kernels, sorted */
    uint64_t count;
    uint64_t at_launched, at_begun; /* hints for the next lookup */
} queue;

static void add_depth(op_device_sums *s, queue *q, uint32_t place, uint64_t row) {
    const op_columns *c = &s->r->columns;
    int64_t at = c->start_ns[row];
    *op_device_sums_at(s, place, OP_USE_DEPTH, c->step[row]) +=
        (int64_t)op_count_until(q->launched, q->count, at, &q->at_launched) -
        (int64_t)op_count_until(q->begun, q->count, at, &q->at_begun);
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
        /* The two clocks agree to some hundred nanoseconds, but no kernel begins before its launch. */
        q.begun[q.count++] = c->start_ns[row] > at ? c->start_ns[row] : at;
    }
    bool ok = q.launched && q.begun;
    if (ok) {
        op_sort(q.launched, q.count, sizeof *q.launched, by_value);
        op_sort(q.begun, q.count, sizeof *q.begun, by_value);
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
