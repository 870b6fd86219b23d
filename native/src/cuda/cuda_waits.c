#include "cuda/cuda_waits.h"

#include "core/fault.h"

#include <string.h>

static int in_order(const void *a, const void *b) {
    const op_cuda_event *x = a, *y = b;
    if (x->context != y->context)
        return x->context < y->context ? -1 : 1;
    if (x->event != y->event)
        return x->event < y->event ? -1 : 1;
    return (x->correlation > y->correlation) - (x->correlation < y->correlation);
}

static bool sort(op_cuda_waits *w, const op_cuda_records *r) {
    size_t bytes = r->event_count * sizeof *w->events;
    w->events = op_malloc(bytes + 1);
    if (!w->events)
        return false;
    if (bytes)
        memcpy(w->events, r->events, bytes);
    qsort(w->events, r->event_count, sizeof *w->events, in_order);
    w->count = r->event_count;
    return w->is_sorted = true;
}

/* The numbers of calls grow, so the last record before the wait has the largest smaller number. */
static const op_cuda_event *last_before(const op_cuda_waits *w, const op_device_work *sync) {
    const op_cuda_event wait = {
        .context = sync->context, .event = sync->value, .correlation = sync->correlation};
    uint64_t low = 0, high = w->count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (in_order(&w->events[middle], &wait) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    const op_cuda_event *found = low ? &w->events[low - 1] : NULL;
    return found && found->context == wait.context && found->event == wait.event ? found : NULL;
}

bool op_cuda_waits_tell(op_cuda_waits *w, const op_cuda_window *window, op_device_work *sync) {
    const op_cuda_records *r = window->records;
    sync->waited_stream = OP_CUPTI_NO_STREAM;
    sync->waited_call = -1;
    if (sync->value == OP_CUPTI_NO_STREAM || !r->event_count)
        return true;
    if (!w->is_sorted && !sort(w, r))
        return false;
    const op_cuda_event *found = last_before(w, sync);
    if (!found)
        return true;
    uint32_t call = op_cuda_index_find(&window->index, found->correlation);
    sync->waited_stream = found->stream;
    if (call && call != OP_CUDA_OUTSIDE)
        sync->waited_call = (int32_t)window->row_of[call - 1];
    return true;
}

void op_cuda_waits_free(op_cuda_waits *w) {
    free(w->events);
    *w = (op_cuda_waits){0};
}
