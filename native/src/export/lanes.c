#include "export/lanes.h"

#include "core/error.h"
#include "core/fault.h"

/* Maximum nesting of ranges; a deeper range begins a track of its own. */
enum { DEEPEST = 16 };

typedef struct track {
    int64_t until;           /* end of the last slice that is not a range */
    int64_t ranges[DEEPEST]; /* ends of the open ones, outermost first */
    uint32_t depth;
} track;

typedef struct order {
    int64_t start_ns, end_ns;
    uint32_t thread, row;
} order;

static int by_place(const void *a, const void *b) {
    const order *x = a, *y = b;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    if (x->end_ns != y->end_ns)
        return x->end_ns > y->end_ns ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

/* A range may contain the work launched in it; nothing else on a track contains anything. */
static bool takes(track *t, const order *o, bool is_range) {
    while (t->depth && t->ranges[t->depth - 1] <= o->start_ns)
        t->depth--;
    if (t->until > o->start_ns || (t->depth && t->ranges[t->depth - 1] < o->end_ns))
        return false;
    if (!is_range)
        t->until = o->end_ns;
    else if (t->depth == DEEPEST)
        return false;
    else
        t->ranges[t->depth++] = o->end_ns;
    return true;
}

static void lay_thread(const order *o, uint64_t count, const op_columns *c, op_lane_slice *out) {
    track tracks[OP_LANE_TRACKS];
    uint32_t used = 0;
    for (uint64_t i = 0; i < count; i++) {
        bool is_range = c->kind[o[i].row] == OP_DEVICE_RANGE;
        uint32_t at = 0;
        while (at < used && !takes(&tracks[at], &o[i], is_range))
            at++;
        if (at == used && used < OP_LANE_TRACKS) {
            tracks[used] = (track){.until = INT64_MIN};
            takes(&tracks[used++], &o[i], is_range);
        }
        out[i] =
            (op_lane_slice){.row = o[i].row, .track = at < OP_LANE_TRACKS ? at : OP_LANE_TRACKS - 1};
    }
}

int op_lanes_lay(op_lanes *out, const op_result *r) {
    const op_columns *c = &r->columns;
    uint64_t n = 0;
    *out = (op_lanes){0};
    for (uint64_t row = 0; row < c->count; row++)
        n += op_is_on_device(c, row);
    if (n == 0)
        return OP_OK;
    order *all = op_malloc(n * sizeof *all);
    out->slices = op_malloc(n * sizeof *out->slices);
    if (!all || !out->slices) {
        free(all);
        free(out->slices);
        out->slices = NULL;
        return op_error_set(OP_ENOMEM, "no memory to lay out %llu events of devices",
                            (unsigned long long)n);
    }
    for (uint64_t row = 0; row < c->count; row++)
        if (op_is_on_device(c, row))
            all[out->count++] = (order){.start_ns = c->start_ns[row],
                                        .end_ns = c->start_ns[row] +
                                                  (c->duration_ns[row] > 0 ? c->duration_ns[row] : 0),
                                        .thread = c->thread[row],
                                        .row = (uint32_t)row};
    qsort(all, n, sizeof *all, by_place);
    for (uint64_t from = 0, to; from < n; from = to) {
        for (to = from; to < n && all[to].thread == all[from].thread; to++)
            ;
        lay_thread(all + from, to - from, c, out->slices + from);
    }
    free(all);
    return OP_OK;
}
