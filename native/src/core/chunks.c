#include "core/chunks.h"

#include "core/collector.h"
#include "core/record.h"
#include "core/spill.h"

static op_collector *const self = &op_the_collector;

/* Makes the chunk invalid for a reader of the session file until its header is complete. */
static void label_chunk(op_thread *t, op_chunk *c) {
    t->session = self->session;
    __atomic_store_n(&c->magic, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&c->count, 0, __ATOMIC_RELEASE);
    c->arg_words = 0;
    c->window = t->window;
    c->thread = t->index;
    c->os_tid = t->os_tid;
    c->sequence = t->sequence++;
    c->open = 0;
    c->torch_thread = t->torch_thread;
    __atomic_store_n(&c->magic, OP_CHUNK_MAGIC, __ATOMIC_RELEASE);
    t->chunk = c;
    t->next = (op_event *)(c + 1);
    t->tail = (uint32_t *)c + c->bytes / sizeof(uint32_t);
    self->window_bytes += c->bytes;
}

void op_chunks_reuse(op_thread *t) {
    op_chunk *c = t->chunk;
    t->chunk_bytes = c->bytes;
    label_chunk(t, c);
}

/* Only the owner may drop its pinned chunks of earlier windows, because only it could still be ending a
 * record in them. Here the owner itself asks. */
void op_chunks_drop_stale(const op_thread *t) {
    for (op_chunk **link = &self->full; *link;) {
        op_chunk *c = *link;
        if (c->thread == t->index && c->window != t->window) {
            *link = c->next;
            op_pool_give(&self->pool, c);
        } else {
            link = &c->next;
        }
    }
}

/* Leaves no room for even one event, so that op_begin() needs no extra test. */
void op_chunks_have_none(op_thread *t) {
    static op_event nowhere;
    t->chunk = NULL;
    t->next = &nowhere;
    t->tail = (uint32_t *)&nowhere;
}

/* Into the list of full chunks. A chunk of an earlier session is only forgotten. */
void op_chunks_put_away(op_thread *t) {
    if (t->chunk && t->session == self->session) {
        t->chunk->next = self->full;
        self->full = t->chunk;
    }
    op_chunks_have_none(t);
}

static bool pool_is_half_used(void) {
    const op_pool *pool = &self->pool;
    return pool->used_units * 2 >= pool->segments * pool->segment_units;
}

/* Flight recorder: forget the oldest chunk without open records. */
static op_chunk *forget_one(void) {
    op_chunk *c = op_spill_take_oldest();
    if (c) {
        self->pool.header->dropped += c->count;
        self->pool.header->truncated = 1;
    }
    return c;
}

static op_chunk *find_room_in_pool(uint32_t bytes) {
    op_chunk *c = op_pool_take(&self->pool, bytes);
    if (!c)
        c = forget_one();
    if (!c && op_pool_grow(&self->pool))
        c = op_pool_take(&self->pool, bytes);
    return c;
}

/* Past the budget, or when neither the pool nor the disk has room, the recording ends for this window;
 * what was recorded stays. Before that, a thread that outruns the drain spills a chunk itself: it
 * spends a write every 8,000 events rather than lose an event. Writing drops the lock, so the window,
 * and even the session, may be closed afterwards. */
static op_chunk *find_room(uint32_t window, uint32_t bytes) {
    if (self->pool.header->keeps_last)
        return find_room_in_pool(bytes);
    if (self->window_bytes + bytes > self->max_bytes)
        return NULL;
    op_chunk *c = op_pool_take(&self->pool, bytes);
    while (!c && op_recording() == window && (op_spill_one() || op_pool_grow(&self->pool)))
        c = op_pool_take(&self->pool, bytes);
    /* The remaining room may be fragmented. */
    while (!c && (bytes /= 2) >= OP_CHUNK_MIN)
        c = op_pool_take(&self->pool, bytes);
    if (op_recording() == window && pool_is_half_used())
        op_spill_start_drain();
    return c;
}

bool op_chunks_refill(op_thread *t) {
    op_chunks_put_away(t);
    uint32_t window = t->window;
    op_chunk *c = find_room(window, t->chunk_bytes);
    if (op_recording() != window) {
        if (c)
            op_pool_give(&self->pool, c);
        return false;
    }
    if (!c) {
        t->exhausted = 1;
        self->pool.header->truncated = 1;
        return false;
    }
    if (t->chunk_bytes < OP_CHUNK_MAX)
        t->chunk_bytes *= 2;
    label_chunk(t, c);
    return true;
}

void op_chunks_release(uint32_t window) {
    for (op_chunk **link = &self->full; *link;) {
        op_chunk *c = *link;
        if (c->window <= window && __atomic_load_n(&c->open, __ATOMIC_ACQUIRE) == 0) {
            *link = c->next;
            op_pool_give(&self->pool, c);
        } else {
            link = &c->next;
        }
    }
}
