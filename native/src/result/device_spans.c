#include "result/device_spans.h"

#include "core/error.h"
#include "core/fault.h"
#include "result/collectives.h"
#include "result/device_time.h"
#include "result/host_threads.h"
#include "result/result.h"
#include "result/stretches.h"

static int compared(int64_t x, int64_t y) { return (x > y) - (x < y); }

static int by_device(const void *a, const void *b) {
    const op_piece *x = a, *y = b;
    int order = compared(x->device_type, y->device_type);
    order = order ? order : compared(x->device_index, y->device_index);
    order = order ? order : compared(x->start_ns, y->start_ns);
    order = order ? order : compared(x->end_ns, y->end_ns);
    order = order ? order : compared(x->launcher, y->launcher);
    return order ? order : compared(x->row, y->row);
}

static bool has_time(const op_columns *c, uint64_t row) {
    return op_is_device_work(c->kind[row]) && c->duration_ns[row] >= 0;
}

int op_pieces_list(const op_result *r, op_piece **out, uint64_t *count) {
    const op_columns *c = &r->columns;
    uint64_t n = 0;
    for (uint64_t row = 0; row < c->count; row++)
        n += has_time(c, row);
    op_piece *pieces = op_malloc((n + 1) * sizeof *pieces);
    *out = pieces;
    *count = 0;
    if (!pieces)
        return OP_ENOMEM;
    for (uint64_t row = 0; row < c->count; row++) {
        if (!has_time(c, row))
            continue;
        const op_thread_info *stream = &r->threads[c->thread[row]];
        pieces[(*count)++] = (op_piece){.start_ns = c->start_ns[row],
                                        .end_ns = c->start_ns[row] + c->duration_ns[row],
                                        .row = (uint32_t)row,
                                        .launcher = c->launcher[row],
                                        .device_type = stream->device_type,
                                        .device_index = stream->device_index};
    }
    op_sort(pieces, n, sizeof *pieces, by_device);
    return OP_OK;
}

uint64_t op_pieces_of_device(const op_piece *pieces, uint64_t count) {
    uint64_t n = 0;
    while (n < count && pieces[n].device_type == pieces[0].device_type &&
           pieces[n].device_index == pieces[0].device_index)
        n++;
    return n;
}

/* ---- where the time went ---------------------------------------------------------------- */

enum { COMPUTE = 1, COMMUNICATION = 2, COPY = 4 };

/* The work of one device, and the requested windows. */
typedef struct device {
    const op_result *r;
    const op_piece *pieces;
    uint8_t *does;   /* by piece: what kind of work it is */
    int64_t *starts; /* by piece */
    uint64_t count, next;
    op_host_threads threads;
    op_device_span *spans; /* by window */
    const int64_t *bounds; /* start and end of each window */
    uint64_t windows;
} device;

static uint8_t does(const op_columns *c, uint64_t row) {
    if (c->kind[row] != OP_KERNEL)
        return COPY;
    return op_is_collective_row(c, row) ? COMMUNICATION : COMPUTE;
}

static bool join(const device *d, uint8_t what, op_stretches *out) {
    bool ok = true;
    for (uint64_t i = 0; i < d->count && ok; i++)
        if (d->does[i] & what)
            ok = op_stretches_add(out, d->pieces[i].start_ns, d->pieces[i].end_ns);
    return ok;
}

static bool add_idle(device *d, int64_t from, int64_t to, op_device_span *out) {
    uint64_t next = op_count_until(d->starts, d->count, from, &d->next);
    int32_t launcher = next < d->count ? d->pieces[next].launcher : -1;
    return op_host_threads_add_idle(&d->threads, launcher, from, to, out);
}

/* Attributes the parts of a window without any work. */
static bool add_gaps(device *d, const op_stretches *busy, uint64_t window) {
    int64_t from = d->bounds[2 * window], to = d->bounds[2 * window + 1];
    uint64_t hint = 0, at = op_count_until(busy->ends, busy->count, from, &hint);
    bool ok = true;
    for (; at < busy->count && busy->starts[at] < to && ok; from = busy->ends[at++])
        ok = from >= busy->starts[at] || add_idle(d, from, busy->starts[at], &d->spans[window]);
    return ok && (from >= to || add_idle(d, from, to, &d->spans[window]));
}

/* Stores how much of each window is covered by work of kind `what` in a member of its span. */
static bool add_covered(device *d, uint8_t what, size_t member) {
    op_stretches found = {0};
    bool ok = join(d, what, &found);
    for (uint64_t i = 0; i < d->windows && ok; i++) {
        int64_t *to = (int64_t *)((char *)&d->spans[i] + member);
        *to = op_stretches_within(&found, d->bounds[2 * i], d->bounds[2 * i + 1]);
        ok = what != (COMPUTE | COMMUNICATION | COPY) || add_gaps(d, &found, i);
    }
    op_stretches_free(&found);
    return ok;
}

static bool fill(device *d) {
    for (uint64_t i = 0; i < d->count; i++) {
        d->does[i] = does(&d->r->columns, d->pieces[i].row);
        d->starts[i] = d->pieces[i].start_ns;
    }
    bool ok =
        add_covered(d, COMPUTE, offsetof(op_device_span, compute_ns)) &&
        add_covered(d, COMMUNICATION, offsetof(op_device_span, communication_ns)) &&
        add_covered(d, COMPUTE | COMMUNICATION, offsetof(op_device_span, exposed_communication_ns)) &&
        add_covered(d, COMPUTE | COMMUNICATION | COPY, offsetof(op_device_span, copy_ns));
    for (uint64_t i = 0; i < d->windows; i++) {
        op_device_span *s = &d->spans[i];
        s->device = d->pieces[0].device_index;
        s->span_ns = d->bounds[2 * i + 1] - d->bounds[2 * i];
        s->copy_ns -= s->exposed_communication_ns;
        s->overlap_ns = s->compute_ns + s->communication_ns - s->exposed_communication_ns;
        s->exposed_communication_ns -= s->compute_ns;
    }
    return ok;
}

int op_result_device_spans(op_result *r, const int64_t *bounds, uint64_t windows,
                           const op_device_span **spans, uint64_t *count) {
    op_piece *pieces;
    uint64_t n, devices = 0;
    bool ok = op_pieces_list(r, &pieces, &n) == OP_OK;
    for (uint64_t at = 0; at < n; at += op_pieces_of_device(pieces + at, n - at))
        devices++;
    free(r->device_spans);
    r->device_spans = op_calloc(devices * windows + 1, sizeof *r->device_spans);
    device d = {.r = r,
                .does = op_malloc(n + 1),
                .starts = op_malloc((n + 1) * sizeof *d.starts),
                .spans = r->device_spans,
                .bounds = bounds,
                .windows = windows};
    ok = op_host_threads_open(&d.threads, r) && ok && d.spans && d.does && d.starts;
    for (uint64_t at = 0; at < n && ok; at += d.count, d.spans += windows) {
        d.pieces = pieces + at;
        d.count = op_pieces_of_device(d.pieces, n - at);
        d.next = 0;
        ok = fill(&d);
    }
    op_host_threads_free(&d.threads);
    free(d.does);
    free(d.starts);
    free(pieces);
    *spans = r->device_spans;
    *count = devices * windows;
    return ok ? OP_OK : op_error_set(OP_ENOMEM, "no memory to sum up where the devices' time went");
}
