/* The rare ends: out of order, on another thread, or after the window. */
#include "core/record.h"

#include "core/collector.h"

#include <string.h>

uint32_t op_window;
uint32_t op_paused;
uint32_t op_with_inputs;
__thread op_thread *op_self
#if defined(__GLIBC__)
    __attribute__((tls_model("initial-exec")))
#endif
    ;

static op_collector *const self = &op_the_collector;

/* Pops ended records off the stack and unpins their chunks. */
void op_thread_trim(op_thread *t) {
    while (t->depth) {
        op_open *top = &t->stack[t->depth - 1];
        if (top->event && __atomic_load_n(&top->event->end, __ATOMIC_ACQUIRE) == 0)
            return;
        if (top->event)
            __atomic_store_n(&top->chunk->open, top->chunk->open - 1, __ATOMIC_RELEASE);
        t->depth--;
        __atomic_sub_fetch(&t->holes, 1, __ATOMIC_RELAXED);
    }
}

/* For a record of the calling thread that has ended but is not on top. Its place stays a hole until
 * those above it end, but its chunk need not wait. */
static void let_go(op_open *place) {
    op_chunk *c = place->chunk;
    place->event = NULL;
    __atomic_store_n(&c->open, c->open - 1, __ATOMIC_RELEASE);
}

/* Unpins the chunks of ended records that lie below others in the stack. */
void op_thread_sweep(const op_thread *t) {
    if (__atomic_load_n(&t->holes, __ATOMIC_RELAXED) == 0)
        return;
    for (uint32_t i = 0; i < t->depth; i++) {
        const op_event *e = t->stack[i].event;
        if (e && __atomic_load_n(&e->end, __ATOMIC_ACQUIRE) != 0)
            let_go(&t->stack[i]);
    }
}

/* Closes the holes of a stack by moving open records down. A moved record can no longer be a parent,
 * because its `depth` is stale. A torch op stays, because its context belongs to its place. */
static void compact(op_thread *t) {
    uint32_t depth = 0;
    op_thread_sweep(t);
    for (uint32_t i = 0; i < t->depth; i++) {
        op_event *e = t->stack[i].event;
        if (e == NULL)
            continue;
        while (e->kind == OP_TORCH && depth < i)
            t->stack[depth++].event = NULL;
        if (depth < i)
            __atomic_store_n(&e->flags, e->flags | OP_FLAG_ASYNC, __ATOMIC_RELAXED);
        t->stack[depth++] = t->stack[i];
    }
    t->bearable += __atomic_sub_fetch(&t->holes, t->depth - depth, __ATOMIC_RELAXED);
    t->depth = depth;
    op_forget_line(t);
}

/* Otherwise a thread that begins what other threads end would nest ever deeper. */
void op_thread_tidy(op_thread *t) {
    op_thread_trim(t);
    if (__atomic_load_n(&t->holes, __ATOMIC_RELAXED) <= t->bearable)
        return;
    pthread_mutex_lock(&self->lock);
    compact(t);
    pthread_mutex_unlock(&self->lock);
}

/* Where the calling thread keeps the record. Removes what other threads ended above it first: then its
 * end may be in order after all. */
static op_open *place_of(const op_event *e) {
    op_thread *t = op_self;
    op_thread_trim(t);
    for (uint32_t i = t->depth; i-- > 0;)
        if (t->stack[i].event == e)
            return &t->stack[i];
    return NULL;
}

/* Out of order, on another thread, or after the window. The record gets its end; its place in the
 * owner's stack becomes a hole that the owner removes. */
void op_end_elsewhere(const op_slot *slot, uint64_t ticks) {
    pthread_mutex_lock(&self->lock);
    uint32_t window = op_open_window();
    if (slot->window == window && window != 0) {
        op_event *e = slot->event;
        op_thread *owner = slot->thread;
        op_open *place = owner == op_self ? place_of(e) : NULL;
        if (__atomic_load_n(&e->end, __ATOMIC_RELAXED) == 0) {
            if (!place || place != &owner->stack[owner->depth - 1])
                __atomic_store_n(&e->flags, e->flags | OP_FLAG_ASYNC, __ATOMIC_RELAXED);
            __atomic_add_fetch(&owner->holes, 1, __ATOMIC_RELAXED);
            __atomic_store_n(&e->end, ticks, __ATOMIC_RELEASE);
        }
        if (place) {
            op_forget_line(owner);
            let_go(place);
            op_thread_trim(owner);
        }
    } else if (op_self && op_self->window == window) {
        op_self->unmatched++;
    }
    pthread_mutex_unlock(&self->lock);
}

void op_make_async(const op_slot *slot) {
    pthread_mutex_lock(&self->lock);
    op_event *e = slot->event;
    if (e && slot->window == op_open_window() && __atomic_load_n(&e->end, __ATOMIC_RELAXED) == 0)
        __atomic_store_n(&e->flags, e->flags | OP_FLAG_ASYNC, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&self->lock);
}

static bool is_in_reach(const op_slot *slot) {
    const op_thread *t = op_self;
    return slot->event && t == slot->thread && slot->window == op_recording() &&
           t->window == slot->window && (const char *)slot->event > (const char *)t->chunk &&
           (const char *)slot->event < (const char *)t->chunk + t->chunk->bytes;
}

const uint32_t *op_args_of(const op_slot *slot) {
    if (!is_in_reach(slot) || slot->event->args == 0)
        return NULL;
    return (const uint32_t *)op_self->chunk + slot->event->args;
}

bool op_args_replace(const op_slot *slot, const uint32_t *words, uint32_t word_count) {
    op_thread *t = op_self;
    if (!is_in_reach(slot) || (uint32_t *)t->next + word_count > t->tail)
        return false;
    op_chunk *c = t->chunk;
    t->tail -= word_count;
    memcpy(t->tail, words, word_count * sizeof *words);
    __atomic_store_n(&c->arg_words, c->arg_words + word_count, __ATOMIC_RELEASE);
    __atomic_store_n(&slot->event->args, (uint16_t)(t->tail - (uint32_t *)c), __ATOMIC_RELEASE);
    return true;
}
