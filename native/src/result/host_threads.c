#include "result/host_threads.h"

#include "core/event.h"
#include "core/fault.h"
#include "core/names.h"
#include "result/device_calls.h"
#include "result/result.h"
#include "result/stretches.h"

typedef struct op_host_thread {
    op_stretches inside, waiting; /* stretches in ops and calls; in calls that wait for a device */
    bool known;
} op_host_thread;

bool op_host_threads_open(op_host_threads *h, const op_result *r) {
    *h = (op_host_threads){.r = r,
                           .of = op_calloc(r->thread_count + 1, sizeof *h->of),
                           .waits = op_calloc(op_names_count() + 1, 1)};
    return h->of && h->waits;
}

/* The rows of a thread are contiguous. */
static uint64_t first_row_of(const op_columns *c, uint32_t thread) {
    uint64_t low = 0, high = c->count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (c->thread[middle] < thread)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_wait(const op_host_threads *h, uint64_t row) {
    enum { UNKNOWN, WAITS, GOES_ON };
    const op_columns *c = &h->r->columns;
    uint8_t *waits = &h->waits[c->name[row]];
    if (*waits == UNKNOWN) {
        uint32_t length;
        const char *name = op_names_text(c->name[row], &length);
        *waits = op_call_role_of(name, length) == OP_CALL_SYNC ? WAITS : GOES_ON;
    }
    return c->kind[row] != OP_TORCH && *waits == WAITS;
}

static bool look_at(const op_host_threads *h, uint32_t thread) {
    const op_columns *c = &h->r->columns;
    op_host_thread *host = &h->of[thread];
    bool ok = true;
    for (uint64_t row = first_row_of(c, thread); row < c->count && c->thread[row] == thread && ok;
         row++) {
        uint8_t kind = c->kind[row];
        if (kind != OP_TORCH && kind != OP_RUNTIME && kind != OP_DRIVER)
            continue;
        int64_t start = c->start_ns[row], end = start + c->duration_ns[row];
        ok = op_stretches_add(&host->inside, start, end) &&
             (!is_wait(h, row) || op_stretches_add(&host->waiting, start, end));
    }
    host->known = ok;
    return ok;
}

static int64_t clamped(int64_t at, int64_t from, int64_t to) {
    return at < from ? from : at > to ? to : at;
}

bool op_host_threads_add_idle(const op_host_threads *h, int32_t launcher, int64_t from, int64_t to,
                              op_device_span *out) {
    const op_columns *c = &h->r->columns;
    if (launcher < 0) {
        out->unknown_ns += to - from;
        return true;
    }
    int64_t duration = c->duration_ns[launcher] > 0 ? c->duration_ns[launcher] : 0;
    int64_t launched = clamped(c->start_ns[launcher] + duration, from, to);
    op_host_thread *host = &h->of[c->thread[launcher]];
    if (launched > from && !host->known && !look_at(h, c->thread[launcher]))
        return false;
    int64_t inside = op_stretches_within(&host->inside, from, launched);
    int64_t waiting = op_stretches_within(&host->waiting, from, launched);
    out->launch_bound_ns += inside - waiting;
    out->host_ns += launched - from - inside;
    out->synchronize_ns += waiting;
    out->queued_ns += to - launched;
    return true;
}

void op_host_threads_free(op_host_threads *h) {
    for (uint32_t i = 0; h->of && i < h->r->thread_count; i++) {
        op_stretches_free(&h->of[i].inside);
        op_stretches_free(&h->of[i].waiting);
    }
    free(h->of);
    free(h->waits);
}
