/* Threads: first event in a window, full chunk, exit. */
#include "core/chunks.h"
#include "core/collector.h"
#include "core/error.h"
#include "core/fault.h"
#include "core/record.h"
#include "sources/call.h"
#include "sources/counters.h"
#include "sources/malloc_watch.h"
#include "sources/unwinding.h"

#include <string.h>
#include <sys/syscall.h>

#define FIRST_STACK 256u
#define DEEPEST UINT16_MAX /* op_event.depth */

static op_collector *const self = &op_the_collector;
static pthread_key_t exit_key;
/* Value of op_self after a thread's own destructor: later destructors may still record, but must not
 * create a second op_thread that nobody would release. */
static op_thread gone = {.dead = 1, .window = UINT32_MAX};

/* Needs the lock, so that a fork finds the thread either listed or not yet created. */
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
    t->born = op_ticks();
    t->index = self->thread_count++;
    t->link = self->threads;
    self->threads = t;
    return t;
}

static void enter_window(op_thread *t, uint32_t window) {
    if (t->session != self->session)
        op_chunks_put_away(t);
    t->window = window;
    t->depth = t->sequence = t->exhausted = 0;
    t->bearable = DEEPEST / 4;
    t->engine_frame = NULL;
    op_forget_line(t);
    __atomic_store_n(&t->holes, 0, __ATOMIC_RELAXED);
    t->dropped = t->told = t->unmatched = 0;
    t->chunk_bytes = OP_CHUNK_MIN;
    op_chunks_drop_stale(t);
    if (t->chunk)
        op_chunks_reuse(t);
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
    if (t->depth == t->capacity) /* not otherwise: the observer has chosen a context for this depth */
        op_thread_trim(t);
    if (t->exhausted || (t->depth == t->capacity && !deepen(t)))
        return false;
    /* Two tries: the first chunk of a window may be too small for the largest argument block. */
    for (int i = 0; i < 2 && !has_room(t, arg_words); i++)
        if (!op_chunks_refill(t))
            return false;
    return has_room(t, arg_words);
}

/* Drops are written to the session file under the lock, which not every drop should wait for: each of
 * the first ones is written, then one in OP_DROPS_TOLD. */
static bool is_told(uint64_t dropped) {
    return dropped <= OP_DROPS_TOLD || dropped % OP_DROPS_TOLD == 0;
}

static void count_drop(op_thread *t) {
    if (!t) { /* no memory for a thread */
        self->pool.header->dropped++;
        return;
    }
    __atomic_store_n(&t->dropped, t->dropped + 1, __ATOMIC_RELAXED);
    self->pool.header->dropped += t->dropped - t->told;
    t->told = t->dropped;
}

uint64_t op_thread_drops(uint32_t window) {
    uint64_t dropped = self->pool.header->dropped;
    for (const op_thread *t = self->threads; t; t = t->link)
        if (t->window == window)
            dropped += __atomic_load_n(&t->dropped, __ATOMIC_RELAXED) - t->told;
    return dropped;
}

void op_thread_drop(op_thread *t) {
    if (!is_told(t->dropped + 1)) {
        __atomic_store_n(&t->dropped, t->dropped + 1, __ATOMIC_RELAXED);
        return;
    }
    pthread_mutex_lock(&self->lock);
    if (t->window == op_recording())
        count_drop(t);
    pthread_mutex_unlock(&self->lock);
}

op_thread *op_thread_prepare(uint32_t window, uint32_t arg_words) {
    op_thread *t = op_self;
    if (t == &gone)
        return NULL;
    if (t && t->window == window && t->exhausted) {
        op_thread_drop(t);
        return NULL;
    }
    /* A thread cancelled while it writes or waits would never release the lock. */
    int cancelling;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelling);
    bool paused = op_memory_pause();
    pthread_mutex_lock(&self->lock);
    if (!t)
        t = op_self = create();
    bool ready = t && op_recording() == window && make_ready(t, window, arg_words);
    if (!ready && op_recording() == window)
        count_drop(t);
    pthread_mutex_unlock(&self->lock);
    op_memory_paused = paused;
    pthread_setcancelstate(cancelling, NULL);
    return ready ? t : NULL;
}

static void discard(op_thread **link) {
    op_thread *t = *link;
    *link = t->link;
    if (t->contexts) {
        *(void **)t->contexts = self->spare_contexts;
        self->spare_contexts = t->contexts;
    }
    op_counters_free(t->counters);
    op_known_frames_free(t->frames);
    free(t->sites);
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
    t->gone = op_ticks();
    op_counters_close(t->counters);
    pthread_getname_np(pthread_self(), t->name, sizeof t->name);
    op_chunks_put_away(t);
    if (t->window == 0 || (t->window != op_open_window() && t->window != self->stopping)) {
        t->window = 0;
        op_chunks_drop_stale(t);
        op_thread **link = &self->threads;
        while (*link != t)
            link = &(*link)->link;
        discard(link);
    }
    pthread_mutex_unlock(&self->lock);
}

/* For a thread that ended: nobody ends its open records any more. */
static void unpin(const op_thread *t) {
    for (uint32_t i = 0; i < t->depth; i++)
        if (t->stack[i].event)
            t->stack[i].chunk->open = 0;
    for (uint32_t i = 0; t->call_window == t->window && i < t->call_depth; i++)
        if (t->calls[i].event)
            t->calls[i].chunk->open = 0;
}

/* After a window's columns were built. One pass over threads and chunks, because there may be
 * thousands. */
void op_thread_release_window(uint32_t window) {
    for (op_thread **link = &self->threads; *link;) {
        if ((*link)->dead) {
            unpin(*link);
            discard(link);
        } else {
            link = &(*link)->link;
        }
    }
    op_chunks_release(window);
}

/* The end of the session. Other threads notice it by its number at their next begin; until then they
 * may be in the middle of a record. The caller is not, so its chunks are returned. */
void op_thread_release_session(void) {
    op_thread *t = op_self;
    if (t && t != &gone) {
        op_chunks_put_away(t);
        t->window = 0;
        op_chunks_drop_stale(t);
    }
    self->full = NULL;
    self->session++;
}

/* Needs the lock. Closes the counters of all threads at the window's end. */
void op_thread_stop_counting(void) {
    for (op_thread *t = self->threads; t; t = t->link)
        op_counters_close(t->counters);
}

/* The other threads do not exist here. What torch's observer keeps for them may be half written: leak
 * it. */
void op_thread_after_fork(void) {
    for (op_thread *t = self->threads, *next; t; t = next) {
        next = t->link;
        if (t == op_self)
            continue;
        op_counters_abandon(t->counters);
        op_known_frames_free(t->frames);
        free(t->sites);
        free(t->stack);
        free(t->calls);
        free(t);
    }
    self->threads = NULL;
    op_thread *t = op_self;
    if (t && t != &gone) {
        op_chunks_have_none(t);
        op_counters_abandon(t->counters);
        t->counters = NULL;
        t->window = t->depth = 0;
        t->os_tid = (uint32_t)syscall(SYS_gettid);
        t->torch_thread = 0;
        t->link = NULL;
        self->threads = t;
    }
}

static int setup_result;

static void setup_once(void) {
    setup_result = pthread_key_create(&exit_key, at_thread_exit);
    if (setup_result == 0)
        setup_result = op_fork_setup();
}

int op_thread_setup(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, setup_once);
    if (setup_result == 0)
        return OP_OK;
    errno = setup_result;
    return op_error_errno("no thread key or fork handler");
}
