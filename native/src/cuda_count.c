/* Whether what is on record is all that there was. */
#include "cuda_window.h"

#include "error.h"
#include "fault.h"

/* Between these a stream takes launches into a graph. */
typedef struct captures {
    struct mark {
        uint64_t at;
        int step; /* 1: one begins, -1: one ends */
    } *marks;     /* by time */
    uint64_t count;
    int before; /* that were open when the window began */
} captures;

static int by_time(const void *a, const void *b) {
    const struct mark *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

static bool marks_capture(const op_cuda_window *w, uint64_t call) {
    const op_cuda_call *is = &w->records->calls[call];
    bool marks = is->role == OP_CALL_BEGIN_CAPTURE || is->role == OP_CALL_END_CAPTURE;
    return marks && w->row_of[call] != OP_CUDA_OUTSIDE && is->call.result == 0;
}

static int find_captures(const op_cuda_window *w, captures *out) {
    const op_cuda_records *r = w->records;
    uint64_t count = 0;
    *out = (captures){0};
    for (uint64_t i = 0; i < r->call_count; i++)
        count += marks_capture(w, i);
    if (!count)
        return OP_OK;
    out->marks = op_malloc(count * sizeof *out->marks);
    if (!out->marks)
        return op_error_set(OP_ENOMEM, "no memory to find captures of CUDA graphs");
    for (uint64_t i = 0; i < r->call_count; i++)
        if (marks_capture(w, i))
            out->marks[out->count++] = (struct mark){
                .at = r->calls[i].start, .step = r->calls[i].role == OP_CALL_BEGIN_CAPTURE ? 1 : -1};
    qsort(out->marks, count, sizeof *out->marks, by_time);
    int open = 0;
    for (uint64_t i = 0; i < count; i++) {
        open += out->marks[i].step;
        out->before = -open > out->before ? -open : out->before;
    }
    return OP_OK;
}

static bool is_captured(const captures *c, uint64_t at) {
    int open = c->before;
    for (uint64_t i = 0; i < c->count && c->marks[i].at <= at; i++)
        open += c->marks[i].step;
    return open > 0;
}

/* A launch that failed starts nothing, and one that was captured nothing yet. */
static bool lacks_work(const op_cuda_window *w, const captures *c, uint64_t call) {
    const op_cuda_call *is = &w->records->calls[call];
    return w->row_of[call] != OP_CUDA_OUTSIDE && is->role == OP_CALL_LAUNCH && !w->has_work[call] &&
           is->call.result == 0 && !is_captured(c, is->start);
}

int op_cuda_count(const op_cuda_window *w, op_stats *stats) {
    const op_cuda_records *r = w->records;
    captures c;
    int rc = find_captures(w, &c);
    if (rc != OP_OK)
        return rc;
    stats->device_dropped = r->dropped;
    stats->device_untimed = r->untimed;
    stats->device_overhead_ns = r->overhead_ns;
    for (uint64_t i = 0; i < r->call_count; i++)
        stats->launches_unseen += lacks_work(w, &c, i);
    for (uint64_t i = 0; i < r->work_count; i++) {
        uint32_t call = op_cuda_call_of(w, r->work[i].work.correlation);
        stats->device_events += call != OP_CUDA_OUTSIDE;
        stats->device_unlaunched += call == 0 && r->work[i].kind != OP_SYNC;
    }
    free(c.marks);
    return OP_OK;
}
