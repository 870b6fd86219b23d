/* Places CUDA calls on the threads that made them, in the innermost event open at the time. One sweep
 * over each thread's events, which are in preorder, and its calls, in order of begin. */
#include "cuda/cuda_calls.h"

#include "core/error.h"
#include "core/fault.h"
#include "core/prefault.h"
#include "cuda/cuda_memory.h"
#include "cuda/cuda_window.h"

#include <string.h>

typedef struct placing {
    op_cuda_window *window;
    const op_cuda_call *calls;
    uint64_t count;
    op_cuda_thread *threads; /* the known ones by number, then newly seen ones */
    uint32_t known, thread_count, thread_capacity;
    uint32_t next_index;
    uint32_t *thread_of; /* by call; OP_CUDA_OUTSIDE: not in the window */
    uint32_t *order;     /* calls by thread, then by begin */
    uint64_t *from;      /* by thread: index of its first call in `order`; one extra entry at the end */
    uint64_t *ends;      /* by depth: end of the event that is open there */
} placing;

static int no_memory(void) { return op_error_set(OP_ENOMEM, "no memory to place calls of CUDA"); }

/* ---- calls of the window, and their threads ----------------------------------------------------- */

static bool is_outside(const op_cuda_window *w, const op_cuda_call *c) {
    if (c->start < w->from)
        return true;
    for (uint32_t i = 0; i < w->pause_count; i++)
        if (c->start >= w->pauses[i].from && c->start < w->pauses[i].to)
            return true;
    return false;
}

static int by_number(const void *a, const void *b) {
    const op_cuda_thread *x = a, *y = b;
    if (x->os_tid != y->os_tid)
        return x->os_tid < y->os_tid ? -1 : 1;
    return (x->born > y->born) - (x->born < y->born);
}

/* Of the threads that had the number: the last that existed by then, else the next, because a thread is
 * first seen at its first event. */
static uint32_t find_known(const placing *p, const op_cuda_call *c) {
    uint32_t low = 0, high = p->known;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (p->threads[middle].os_tid < c->thread)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < p->known && p->threads[low].os_tid == c->thread; low++)
        if (c->start < p->threads[low].gone)
            return low;
    return OP_CUDA_OUTSIDE;
}

static uint32_t find_met(placing *p, const op_cuda_call *c) {
    for (uint32_t i = p->known; i < p->thread_count; i++)
        if (p->threads[i].os_tid == c->thread)
            return i;
    if (p->thread_count == p->thread_capacity) {
        uint32_t capacity = p->thread_capacity * 2 + 16;
        op_cuda_thread *grown = op_realloc(p->threads, capacity * sizeof *grown);
        if (!grown)
            return OP_CUDA_OUTSIDE;
        p->threads = grown;
        p->thread_capacity = capacity;
    }
    p->threads[p->thread_count] =
        (op_cuda_thread){.index = p->next_index++, .os_tid = c->thread, .gone = UINT64_MAX};
    return p->thread_count++;
}

static void note_call(op_cuda_thread *t, uint64_t start) {
    t->is_unsorted |= t->calls && start <= t->last_start;
    t->last_start = start;
    t->calls++;
}

static int find_threads(placing *p) {
    uint32_t last = OP_CUDA_OUTSIDE;
    for (uint64_t i = 0; i < p->count; i++) {
        const op_cuda_call *c = &p->calls[i];
        if (is_outside(p->window, c)) {
            p->thread_of[i] = OP_CUDA_OUTSIDE;
            continue;
        }
        if (last == OP_CUDA_OUTSIDE || p->threads[last].os_tid != c->thread ||
            c->start < p->threads[last].born || c->start >= p->threads[last].gone)
            last = find_known(p, c);
        if (last == OP_CUDA_OUTSIDE && (last = find_met(p, c)) == OP_CUDA_OUTSIDE)
            return no_memory();
        note_call(&p->threads[last], c->start);
        p->thread_of[i] = last;
    }
    return OP_OK;
}

/* ---- in order ------------------------------------------------------------------------------ */

/* An outer call begins no later and ends no earlier. */
static int in_order(const void *a, const void *b, void *calls) {
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    const op_cuda_call *x = (const op_cuda_call *)calls + i, *y = (const op_cuda_call *)calls + j;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    if (x->end != y->end)
        return x->end > y->end ? -1 : 1;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return (i > j) - (i < j);
}

/* CUPTI delivers a thread's calls in order of end, which is nearly the order of begin. */
static void sort_calls(const placing *p, uint32_t *order, uint64_t count) {
    uint64_t moves = 0;
    for (uint64_t i = 1; i < count; i++) {
        uint32_t moved = order[i];
        uint64_t at = i;
        for (; at > 0 && in_order(&moved, &order[at - 1], (void *)(uintptr_t)p->calls) < 0; at--)
            order[at] = order[at - 1];
        order[at] = moved;
        moves += i - at;
        if (moves > 8 * count) {
            qsort_r(order, count, sizeof *order, in_order, (void *)(uintptr_t)p->calls);
            return;
        }
    }
}

static int order_calls(placing *p) {
    p->from = op_calloc((size_t)p->thread_count + 2, sizeof *p->from);
    if (!p->from)
        return no_memory();
    for (uint32_t t = 0; t < p->thread_count; t++)
        p->from[t + 2] = p->from[t + 1] + p->threads[t].calls;
    for (uint64_t i = 0; i < p->count; i++)
        if (p->thread_of[i] != OP_CUDA_OUTSIDE)
            p->order[p->from[p->thread_of[i] + 1]++] = (uint32_t)i;
    for (uint32_t t = 0; t < p->thread_count; t++)
        if (p->threads[t].is_unsorted)
            sort_calls(p, p->order + p->from[t], p->from[t + 1] - p->from[t]);
    return OP_OK;
}

/* ---- index by correlation id --------------------------------------------------------------------- */

static bool lies_in(const op_cuda_call *inner, const op_cuda_call *outer) {
    return outer && inner->kind == OP_DRIVER && inner->end <= outer->end &&
           (outer->role != OP_CALL_OTHER || inner->role == OP_CALL_OTHER);
}

/* The runtime works by calling the driver. Whether CUPTI records those calls, and under which id,
 * depends on its release. A launch is one launch, so they are merged into the runtime call around
 * them. */
static void fold_nested(placing *p) {
    op_cuda_window *w = p->window;
    for (uint64_t i = 0; i < p->count; i++)
        if (p->thread_of[i] == OP_CUDA_OUTSIDE)
            op_cuda_index_put(&w->index, p->calls[i].call.correlation, OP_CUDA_OUTSIDE);
    for (uint32_t t = 0; t < p->thread_count; t++) {
        uint64_t kept = p->from[t];
        const op_cuda_call *around = NULL;
        for (uint64_t i = p->from[t]; i < p->from[t + 1]; i++) {
            uint32_t place = p->order[i];
            const op_cuda_call *c = &p->calls[place];
            if (lies_in(c, around)) {
                op_cuda_index_put(&w->index, c->call.correlation, (uint32_t)(around - p->calls) + 1);
                continue;
            }
            if (c->kind == OP_RUNTIME)
                around = c;
            op_cuda_index_put(&w->index, c->call.correlation, place + 1);
            p->order[kept++] = place;
        }
        w->placed += kept - p->from[t];
        for (; kept < p->from[t + 1]; kept++)
            p->order[kept] = OP_CUDA_OUTSIDE;
    }
}

/* ---- merging with the events --------------------------------------------------------------------- */

/* Another thread may be writing `end` and `flags`. */
static void copy_event(op_event *to, const op_event *e) {
    *to = (op_event){.start = e->start,
                     .end = __atomic_load_n(&e->end, __ATOMIC_RELAXED),
                     .name = e->name,
                     .args = e->args,
                     .line = e->line,
                     .aux = e->aux,
                     .kind = e->kind,
                     .flags = __atomic_load_n(&e->flags, __ATOMIC_RELAXED),
                     .depth = e->depth};
}

typedef struct sweep {
    placing *p;
    uint64_t next, end; /* in `order` */
    uint32_t depth;     /* events that may be open */
    op_cuda_memory_queue memory;
    op_event *out;
} sweep;

static uint16_t depth_at(sweep *s, uint64_t ticks) {
    while (s->depth && s->p->ends[s->depth - 1] <= ticks)
        s->depth--;
    return (uint16_t)(s->depth < UINT16_MAX ? s->depth : UINT16_MAX);
}

static void put_memory_before(sweep *s, uint64_t ticks) {
    for (; op_cuda_memory_take(s->p->window, &s->memory, ticks, s->out); s->out++)
        s->out->depth = depth_at(s, s->out->start);
}

static void put_calls_before(sweep *s, uint64_t ticks) {
    for (; s->next < s->end && s->p->order[s->next] != OP_CUDA_OUTSIDE; s->next++) {
        uint32_t place = s->p->order[s->next];
        const op_cuda_call *c = &s->p->calls[place];
        if (c->start >= ticks)
            break;
        put_memory_before(s, c->start);
        *s->out++ = (op_event){.start = c->start,
                               .end = c->end,
                               .name = c->name,
                               .aux = place,
                               .kind = c->kind,
                               .depth = depth_at(s, c->start)};
        op_cuda_memory_enqueue(s->p->window, &s->memory, place);
    }
    put_memory_before(s, ticks);
}

static bool may_be_around(uint8_t kind) {
    return kind != OP_MARK && kind != OP_MEMORY && kind != OP_OUTPUTS && kind != OP_COUNTERS &&
           kind != OP_PYTHON_CALL && kind != OP_C_CALL;
}

static void put_event(sweep *s, const op_event *e) {
    put_calls_before(s, e->start);
    copy_event(s->out, e);
    if (may_be_around(e->kind)) {
        s->p->ends[e->depth] = s->out->end ? s->out->end : UINT64_MAX;
        s->depth = (uint32_t)e->depth + 1;
    }
    s->out++;
}

/* Merges one thread's chunks with its calls. */
static void merge_thread(placing *p, uint32_t thread, const op_raw *raw, uint32_t raw_count,
                         op_event **out) {
    op_cuda_window *w = p->window;
    sweep s = {.p = p, .next = p->from[thread], .end = p->from[thread + 1], .out = *out};
    for (uint32_t i = 0; i < raw_count; i++) {
        op_raw *to = &w->raw[w->raw_count++];
        *to = raw[i];
        to->events = s.out;
        for (uint32_t j = 0; j < raw[i].count; j++)
            put_event(&s, &raw[i].events[j]);
        if (i + 1 == raw_count)
            put_calls_before(&s, UINT64_MAX);
        to->count = (uint32_t)(s.out - to->events);
    }
    *out = s.out;
}

/* Chunks of threads without calls are copied unchanged. */
static void merge_all(placing *p, const op_raw *raw, uint32_t raw_count, uint8_t *merged) {
    op_cuda_window *w = p->window;
    op_event *out = w->events;
    for (uint32_t first = 0, count; first < raw_count; first += count) {
        for (count = 1; first + count < raw_count && raw[first + count].thread == raw[first].thread;)
            count++;
        uint32_t t = 0;
        while (t < p->thread_count && p->threads[t].index != raw[first].thread)
            t++;
        if (t < p->thread_count && p->from[t] < p->from[t + 1]) {
            merge_thread(p, t, raw + first, count, &out);
            merged[t] = 1;
        } else {
            memcpy(w->raw + w->raw_count, raw + first, count * sizeof *raw);
            w->raw_count += count;
        }
    }
    for (uint32_t t = 0; t < p->thread_count; t++) {
        const op_raw none = {.thread = p->threads[t].index, .os_tid = p->threads[t].os_tid};
        if (!merged[t] && p->from[t] < p->from[t + 1] && p->order[p->from[t]] != OP_CUDA_OUTSIDE)
            merge_thread(p, t, &none, 1, &out);
    }
    qsort(w->raw, w->raw_count, sizeof *w->raw, op_raw_order);
}

static int merge(placing *p, const op_raw *raw, uint32_t raw_count) {
    op_cuda_window *w = p->window;
    uint64_t events = w->placed + w->memory.listed;
    for (uint32_t i = 0; i < raw_count; i++)
        events += raw[i].count;
    w->raw = op_malloc(((size_t)raw_count + p->thread_count + 1) * sizeof *w->raw);
    w->events = op_malloc(events * sizeof *w->events + 1);
    p->ends = op_malloc((UINT16_MAX + 1) * sizeof *p->ends);
    uint8_t *merged = op_calloc((size_t)p->thread_count + 1, 1);
    bool all = w->raw && w->events && p->ends && merged;
    if (all) {
        op_prefault_expect(w->events, events * sizeof *w->events);
        merge_all(p, raw, raw_count, merged);
    }
    free(merged);
    return all ? OP_OK : no_memory();
}

static int place(placing *p, const op_raw *raw, uint32_t raw_count) {
    op_cuda_window *w = p->window;
    p->order = op_malloc(p->count * sizeof *p->order + 1);
    p->thread_of = op_malloc(p->count * sizeof *p->thread_of + 1);
    w->row_of = op_malloc(p->count * sizeof *w->row_of + 1);
    if (!p->order || !p->thread_of || !w->row_of)
        return no_memory();
    memset(w->row_of, 0xff, p->count * sizeof *w->row_of);
    int rc = op_cuda_index_make(&w->index, p->count);
    if (rc != OP_OK || (rc = find_threads(p)) || (rc = order_calls(p)))
        return rc;
    fold_nested(p);
    if ((rc = op_cuda_memory_list(w, &w->memory)) != OP_OK)
        return rc;
    return merge(p, raw, raw_count);
}

int op_cuda_place_calls(op_cuda_window *w, const op_raw *raw, uint32_t raw_count) {
    placing p = {.window = w,
                 .calls = w->records->calls,
                 .count = w->records->call_count,
                 .threads = w->threads,
                 .known = w->thread_count,
                 .thread_count = w->thread_count,
                 .thread_capacity = w->thread_count};
    if (w->thread_count)
        qsort(w->threads, w->thread_count, sizeof *w->threads, by_number);
    for (uint32_t i = 0; i < w->thread_count; i++)
        if (w->threads[i].index >= p.next_index)
            p.next_index = w->threads[i].index + 1;
    for (uint32_t i = 0; i < raw_count; i++)
        if (raw[i].thread >= p.next_index)
            p.next_index = raw[i].thread + 1;
    int rc = place(&p, raw, raw_count);
    w->threads = p.threads;
    w->thread_count = p.thread_count;
    free(p.order);
    free(p.thread_of);
    free(p.from);
    free(p.ends);
    return rc;
}

void op_cuda_window_release(op_cuda_window *w) {
    free(w->threads);
    free(w->raw);
    free(w->events);
    op_cuda_index_free(&w->index);
    free(w->row_of);
    op_cuda_memory_free(&w->memory);
}
