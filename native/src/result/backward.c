#include "result/backward.h"

#include "core/error.h"
#include "core/grow.h"
#include "core/names.h"

#include <string.h>

/* ---- autograd's numbers and their steps -------------------------------------------------------- */

static bool is_numbered(const op_writable *w, uint64_t row) {
    return w->sequence_nr[row] >= 0 && w->forward_thread[row] == 0;
}

static op_numbered *add_span(op_numbers *n) {
    return OP_HAS_ROOM(n->spans, n->count, n->capacity, 64) ? &n->spans[n->count++] : NULL;
}

int op_numbers_take(op_numbers *n, const op_segment *rows) {
    const op_writable *w = rows->w;
    for (uint64_t row = rows->first_new; row < rows->count; row++) {
        if (!is_numbered(w, row))
            continue;
        uint64_t thread = rows->r->threads[w->thread[row]].torch_thread;
        int64_t number = w->sequence_nr[row];
        op_numbered *span = n->count ? &n->spans[n->count - 1] : NULL;
        if (span && span->thread == thread && span->step == w->step[row] && number >= span->first) {
            span->last = number > span->last ? number : span->last;
            continue;
        }
        span = add_span(n);
        if (!span)
            return op_error_set(OP_ENOMEM, "no memory to match backward ops");
        *span = (op_numbered){
            .thread = thread, .first = number, .last = number, .place = n->count, .step = w->step[row]};
    }
    return OP_OK;
}

static int by_thread_and_number(const void *a, const void *b) {
    const op_numbered *x = a, *y = b;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

void op_numbers_sort(op_numbers *n) {
    if (n->count)
        qsort(n->spans, n->count, sizeof *n->spans, by_thread_and_number);
}

void op_numbers_free(op_numbers *n) { free(n->spans); }

/* If ops share a number, the last one made the node: `linear` and the `t` in it share theirs. */
static int32_t step_of_number(const op_numbers *n, uint64_t thread, int64_t number) {
    uint64_t from = 0, to = n->count; /* ends as the first span that begins after the number */
    while (from < to) {
        uint64_t middle = from + (to - from) / 2;
        const op_numbered *span = &n->spans[middle];
        if (span->thread < thread || (span->thread == thread && span->first <= number))
            from = middle + 1;
        else
            to = middle;
    }
    const op_numbered *span = from ? &n->spans[from - 1] : NULL;
    return span && span->thread == thread && number <= span->last ? span->step : -1;
}

/* ---- backward ops --------------------------------------------------------------------------- */

bool op_backward_waits(const op_writable *w, uint64_t row) {
    static const char wrapper[] = "autograd::engine::evaluate_function";
    if (w->kind[row] != OP_TORCH || w->sequence_nr[row] >= 0)
        return false;
    uint32_t length;
    const char *text = op_names_text(w->name[row], &length);
    return length >= sizeof wrapper - 1 && memcmp(text, wrapper, sizeof wrapper - 1) == 0;
}

/* Torch gives the node's number to the engine's wrapper around it too; like Kineto, we do so
 * afterwards. */
bool op_backward_number(const op_segment *s) {
    const op_writable *w = s->w;
    bool any = false;
    for (uint64_t row = 0; row < s->count; row++) {
        if (w->kind[row] != OP_TORCH || w->scope[row] != OP_SCOPE_BACKWARD)
            continue;
        any = true;
        int32_t p = w->parent[row];
        if (p < 0 || !op_backward_waits(w, (uint64_t)p))
            continue;
        w->sequence_nr[p] = w->sequence_nr[row];
        w->forward_thread[p] = w->forward_thread[row];
    }
    return any;
}

/* A backward op, with all inside it, belongs to its forward op's step, wherever and whenever it
 * runs. */
void op_backward_move(const op_segment *s, const op_numbers *numbers) {
    const op_writable *w = s->w;
    for (uint64_t row = 0; row < s->count; row++) {
        int32_t step = -1, p = w->parent[row];
        if (w->forward_thread[row] != 0 && w->sequence_nr[row] >= 0)
            step = step_of_number(numbers, w->forward_thread[row], w->sequence_nr[row]);
        else if (p >= 0 && s->state[p] & OP_ROW_MOVED)
            step = w->step[p];
        if (step < 0)
            continue;
        w->step[row] = step;
        w->flags[row] &= (uint8_t)~OP_FLAG_BACKGROUND;
        s->state[row] |= OP_ROW_MOVED;
    }
}
