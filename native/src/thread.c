/* Threads: their first event in a window, a full chunk, exit, fork. */
#include "collector.h"
#include "counters.h"
#include "error.h"
#include "fault.h"
#include "malloc_watch.h"
#include "names.h"

#include <string.h>
#include <sys/syscall.h>

#define FIRST_STACK 256u
#define DEEPEST UINT16_MAX /* op_event.depth */

static op_collector *const self = &op_the_collector;
static pthread_key_t exit_key;
/* What op_self is after a thread's own destructor ran: destructors of others may still record,
 * and must not make a second op_thread that nobody would ever release. */
static op_thread gone = {.dead = 1, .window = UINT32_MAX};

/* With the lock held, so that a fork finds it listed or not made yet. */
static op_thread *create(void) {
    op_thread *t = op_aligned_alloc(_Alignof(op_thread), sizeof *t);
    op_open *stack = op_malloc(FIRST_STACK * sizeof *stack);
    if (!t || !stack || pthread_setspecific(exit_key, t) != 0) {
        free(t);
        free(stack);
        return NULL;
    }
    memset(t, 0, sizeof *t);
    t->stack = stack;
    t->capacity = FIRST_STACK;
    t->os_tid = (uint32_t)syscall(SYS_gettid);
    t->index = self->thread_count++;
    t->link = self->threads;
    self->threads = t;
    return t;
}

/* An owned chunk as a reader of the dead process's file must see it: not valid until it is. */
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

/* Nobody but the owner may drop its pinned chunks of a window gone by: it might be about to end
 * a record in them. Here it is the owner itself that asks. */
static void drop_stale_chunks(const op_thread *t) {
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

/* No room for even one event, without a test of its own in op_begin(). */
static void have_no_chunk(op_thread *t) {
    static op_event nowhere;
    t->chunk = NULL;
    t->next = &nowhere;
    t->tail = (uint32_t *)&nowhere;
}

/* Into the list of full chunks; one of a session gone by is only forgotten. */
static void put_away(op_thread *t) {
    if (t->chunk && t->session == self->session) {
        t->chunk->next = self->full;
        self->full = t->chunk;
    }
    have_no_chunk(t);
}

static void enter_window(op_thread *t, uint32_t window) {
    if (t->session != self->session)
        put_away(t);
    t->window = window;
    t->depth = t->sequence = t->exhausted = 0;
    t->bearable = DEEPEST / 4;
    __atomic_store_n(&t->holes, 0, __ATOMIC_RELAXED);
    t->dropped = t->unmatched = 0;
    t->chunk_bytes = OP_CHUNK_MIN;
    drop_stale_chunks(t);
    if (t->chunk) {
        op_chunk *c = t->chunk;
        t->chunk_bytes = c->bytes;
        label_chunk(t, c);
    }
}

static bool pool_is_half_used(void) {
    const op_pool *pool = &self->pool;
    return pool->used_units * 2 >= pool->segments * pool->segment_units;
}

/* More room for a thread whose chunk is full. Past the budget, or when neither the pool nor the
 * disk has room, the recording ends for this window; what was recorded stays. Short of that a
 * thread that outruns the drain spills a chunk itself: it loses a write's time every 8,000 events
 * rather than an event. Writing drops the lock, so the window may be closed afterwards, and even
 * the session. */
static op_chunk *find_room(uint32_t window, uint32_t bytes) {
    if (self->window_bytes + bytes > self->max_bytes)
        return NULL;
    op_chunk *c = op_pool_take(&self->pool, bytes);
    while (!c && op_recording() == window && (op_spill_one() || op_pool_grow(&self->pool)))
        c = op_pool_take(&self->pool, bytes);
    /* The room that is left may be in pieces. */
    while (!c && (bytes /= 2) >= OP_CHUNK_MIN)
        c = op_pool_take(&self->pool, bytes);
    if (op_recording() == window && pool_is_half_used())
        op_spill_start_drain();
    return c;
}

static bool refill(op_thread *t) {
    put_away(t);
    uint32_t window = t->window;
    op_chunk *c = find_room(window, t->chunk_bytes);
    if (op_recording() != window) {
        if (c)
            op_pool_give(&self->pool, c);
        return false;
    }
    if (!c) {
        t->exhausted = 1;
        self->truncated = true;
        self->pool.header->truncated = 1;
        return false;
    }
    if (t->chunk_bytes < OP_CHUNK_MAX)
        t->chunk_bytes *= 2;
    label_chunk(t, c);
    return true;
}

static bool deepen(op_thread *t) {
    uint32_t capacity = t->capacity * 2 < DEEPEST ? t->capacity * 2 : DEEPEST;
    if (capacity == t->capacity)
        return false;
    op_open *bigger = op_realloc(t->stack, capacity * sizeof *bigger);
    if (!bigger)
        return false;
    t->stack = bigger;
    t->capacity = capacity;
    return true;
}

static bool has_room(const op_thread *t, uint32_t arg_words) {
    return t->chunk && (uint32_t *)(t->next + 1) + arg_words <= t->tail;
}

static bool make_ready(op_thread *t, uint32_t window, uint32_t arg_words) {
    if (t->window != window)
        enter_window(t, window);
    op_thread_sweep(t);
    if (t->depth == t->capacity) /* else not: the observer has chosen a context for this depth */
        op_thread_trim(t);
    if (t->exhausted || (t->depth == t->capacity && !deepen(t)))
        return false;
    /* Two tries: the first chunk of a window may be too small for the largest argument block. */
    for (int i = 0; i < 2 && !has_room(t, arg_words); i++)
        if (!refill(t))
            return false;
    return has_room(t, arg_words);
}

op_thread *op_thread_prepare(uint32_t window, uint32_t arg_words) {
    op_thread *t = op_self;
    if (t == &gone)
        return NULL;
    if (t && t->window == window && t->exhausted) {
        __atomic_store_n(&t->dropped, t->dropped + 1, __ATOMIC_RELAXED);
        return NULL;
    }
    pthread_mutex_lock(&self->lock);
    if (!t)
        t = op_self = create();
    bool ready = t && op_recording() == window && make_ready(t, window, arg_words);
    if (!ready && op_recording() == window) {
        if (t)
            __atomic_store_n(&t->dropped, t->dropped + 1, __ATOMIC_RELAXED);
        else
            self->lost++;
    }
    pthread_mutex_unlock(&self->lock);
    return ready ? t : NULL;
}

static void discard(op_thread *t) {
    for (op_thread **link = &self->threads; *link; link = &(*link)->link)
        if (*link == t) {
            *link = t->link;
            break;
        }
    if (t->contexts) {
        *(void **)t->contexts = self->spare_contexts;
        self->spare_contexts = t->contexts;
    }
    op_counters_free(t->counters);
    free(t->stack);
    free(t->calls);
    free(t);
}

void *op_contexts_take(void) {
    pthread_mutex_lock(&self->lock);
    void *contexts = self->spare_contexts;
    if (contexts)
        self->spare_contexts = *(void **)contexts;
    pthread_mutex_unlock(&self->lock);
    return contexts;
}

static void at_thread_exit(void *value) {
    op_thread *t = value;
    op_self = &gone;
    pthread_mutex_lock(&self->lock);
    t->dead = 1;
    op_counters_close(t->counters);
    pthread_getname_np(pthread_self(), t->name, sizeof t->name);
    put_away(t);
    if (t->window == 0 || (t->window != op_open_window() && t->window != self->stopping)) {
        t->window = 0;
        drop_stale_chunks(t);
        discard(t);
    }
    pthread_mutex_unlock(&self->lock);
}

/* After a window's columns were made: chunks that nobody can touch any more go back. A pinned
 * chunk waits for its living owner's next window, or its exit. */
void op_thread_release_window(uint32_t window) {
    for (op_thread *t = self->threads, *next; t; t = next) {
        next = t->link;
        if (t->dead) {
            t->window = 0;
            drop_stale_chunks(t);
            discard(t);
        }
    }
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

/* The session's end. Other threads learn of it by its number, at their next begin: until then they
 * may be in the middle of a record. The caller certainly is not, so its chunks go back. */
void op_thread_release_session(void) {
    op_thread *t = op_self;
    if (t && t != &gone) {
        put_away(t);
        t->window = 0;
        drop_stale_chunks(t);
    }
    self->full = NULL;
    self->session++;
}

/* With the lock held: descriptors of the counters of all threads, which a window ends with. */
void op_thread_stop_counting(void) {
    for (op_thread *t = self->threads; t; t = t->link)
        op_counters_close(t->counters);
}

static void before_fork(void) {
    op_memory_paused = true;
    pthread_mutex_lock(&self->lock);
    op_spill_pause();
    op_spill_join_drain();
    op_names_lock();
}

static void after_fork_in_parent(void) {
    op_names_unlock();
    op_spill_resume();
    pthread_mutex_unlock(&self->lock);
    op_memory_paused = false;
}

/* The other threads do not exist here. What torch's observer keeps for them may be half written,
 * so it is left where it is. */
static void forget_other_threads(void) {
    for (op_thread *t = self->threads, *next; t; t = next) {
        next = t->link;
        if (t == op_self)
            continue;
        op_counters_abandon(t->counters);
        free(t->stack);
        free(t->calls);
        free(t);
    }
    self->threads = NULL;
}

/* The child records nothing until it opens a session of its own. Its window number never matches
 * one of the parent's, so ranges begun before the fork end as no-ops. */
static void after_fork_in_child(void) {
    pthread_cond_init(&self->changed, NULL); /* it still counts waiters that do not exist here */
    op_names_after_fork();
    __atomic_store_n(&op_window, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&op_paused, 0, __ATOMIC_RELAXED);
    self->open = false;
    self->stopping = 0;
    self->session++;
    self->full = NULL;
    forget_other_threads();
    op_pool_forget(&self->pool);
    if (self->spill.fd >= 0)
        close(self->spill.fd);
    free(self->spill.index);
    self->spill = (op_spill){.fd = -1};
    op_steps_clear(&self->steps);
    op_timeline_clear(&self->timeline);
    op_thread *t = op_self;
    if (t && t != &gone) {
        have_no_chunk(t);
        op_counters_abandon(t->counters);
        t->counters = NULL;
        t->window = t->depth = 0;
        t->os_tid = (uint32_t)syscall(SYS_gettid);
        t->torch_thread = 0;
        t->link = NULL;
        self->threads = t;
    }
    pthread_mutex_unlock(&self->lock);
    op_memory_paused = false;
}

static int setup_result;

static void setup_once(void) {
    setup_result = pthread_key_create(&exit_key, at_thread_exit);
    if (setup_result == 0)
        setup_result = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

int op_thread_setup(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, setup_once);
    if (setup_result == 0)
        return OP_OK;
    errno = setup_result;
    return op_error_errno("no thread key or fork handler");
}
