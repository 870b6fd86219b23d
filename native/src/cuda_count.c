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

static int find_captures(const op_cuda_window *w, uint64_t count, captures *out) {
    const op_cuda_records *r = w->records;
    *out = (captures){.marks = op_malloc(count * sizeof *out->marks)};
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

/* A launch that failed starts nothing. */
static bool lacks_work(const op_cuda_window *w, uint64_t call) {
    const op_cuda_call *is = &w->records->calls[call];
    return w->row_of[call] != OP_CUDA_OUTSIDE && is->role == OP_CALL_LAUNCH && !w->has_work[call] &&
           is->call.result == 0;
}

/* One that was captured starts nothing yet. */
static int leave_out_captured(const op_cuda_window *w, uint64_t marks, op_stats *stats) {
    captures c;
    int rc = find_captures(w, marks, &c);
    if (rc != OP_OK)
        return rc;
    for (uint64_t i = 0; i < w->records->call_count; i++)
        stats->launches_unseen -= lacks_work(w, i) && is_captured(&c, w->records->calls[i].start);
    free(c.marks);
    return OP_OK;
}

int op_cuda_count(const op_cuda_window *w, op_stats *stats) {
    const op_cuda_records *r = w->records;
    uint64_t marks = 0;
    stats->device_dropped = r->dropped + w->memory.adrift;
    stats->device_untimed = r->untimed;
    stats->device_overhead_ns = r->overhead_ns;
    for (uint64_t i = 0; i < r->call_count; i++) {
        marks += marks_capture(w, i);
        stats->launches_unseen += lacks_work(w, i);
    }
    return marks ? leave_out_captured(w, marks, stats) : OP_OK;
}
