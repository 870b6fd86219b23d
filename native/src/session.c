/* The session and its windows. */
#include "collector.h"
#include "error.h"
#include "fault.h"
#include "names.h"
#include "result.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define DEFAULT_POOL_BYTES (16ull << 20)
#define DEFAULT_MAX_BYTES (2ull << 30)

op_collector op_the_collector = {.lock = PTHREAD_MUTEX_INITIALIZER,
                                 .changed = PTHREAD_COND_INITIALIZER,
                                 .sampling = 1,
                                 .pool = {.fd = -1, .names_fd = -1},
                                 .spill = {.fd = -1}};
static op_collector *const self = &op_the_collector;

static int open_locked(const op_config *config) {
    if (self->open)
        return OP_OK;
    op_clock_choose();
    uint64_t bytes = config->pool_bytes ? config->pool_bytes : DEFAULT_POOL_BYTES;
    int rc = op_pool_open(&self->pool, config->pool_dir, bytes);
    if (rc != OP_OK)
        return rc;
    self->max_bytes = config->max_bytes ? config->max_bytes : DEFAULT_MAX_BYTES;
    if (config->spill_dir) {
        int n = snprintf(self->spill.path, sizeof self->spill.path, "%s/opprof-%u-%d-%llx.spill",
                         config->spill_dir, (unsigned)getuid(), (int)getpid(),
                         (unsigned long long)self->pool.header->opened.realtime_ns);
        if (n < 0 || (size_t)n >= sizeof self->spill.path) {
            self->spill.path[0] = 0;
            op_pool_close(&self->pool);
            return op_error_set(OP_EIO, "the spill folder's path is too long");
        }
    }
    self->open = true;
    return OP_OK;
}

int op_session_open(const op_config *config) {
    int rc = op_thread_setup();
    if (rc != OP_OK)
        return rc;
    pthread_mutex_lock(&self->lock);
    rc = open_locked(config);
    pthread_mutex_unlock(&self->lock);
    return rc;
}

int op_session_is_open(void) {
    pthread_mutex_lock(&self->lock);
    int open = self->open;
    pthread_mutex_unlock(&self->lock);
    return open;
}

const char *op_session_path(void) { return self->open && self->pool.fd >= 0 ? self->pool.path : ""; }

const char *op_session_clock(void) { return op_clock_name(); }

int op_window_is_open(void) { return op_open_window() != 0; }

static int start_locked(void) {
    if (!self->open)
        return op_error_set(OP_ESTATE, "no session is open");
    if (op_open_window() || self->stopping)
        return op_error_set(OP_EBUSY, "a window is open already");
    op_steps_clear(&self->steps);
    op_timeline_clear(&self->timeline);
    int rc = op_timeline_add(&self->timeline);
    if (rc != OP_OK)
        return rc;
    self->window_bytes = 0;
    self->truncated = false;
    self->uncounted = 0;
    self->lost = 0;
    /* Threads that hold a chunk will use it again: their bytes count from their first event. */
    uint32_t window = ++self->last_window;
    self->pool.header->started = self->timeline.pairs[0];
    self->pool.header->truncated = 0;
    self->pool.header->sampling = self->sampling;
    self->pool.header->counted = op_counters_chosen(self->pool.header->counters);
    __atomic_store_n(&self->pool.header->window, window, __ATOMIC_RELEASE);
    __atomic_store_n(&op_window, window, __ATOMIC_RELEASE);
    return OP_OK;
}

int op_window_start(void) {
    pthread_mutex_lock(&self->lock);
    int rc = start_locked();
    pthread_mutex_unlock(&self->lock);
    return rc;
}

void op_window_sample(double sampling) {
    pthread_mutex_lock(&self->lock);
    self->sampling = sampling;
    pthread_mutex_unlock(&self->lock);
}

/* ---- gathering the window's chunks -------------------------------------------------------- */

static op_raw raw_of(const op_chunk *c, uint32_t count, uint32_t arg_words, const void *args) {
    return (op_raw){.thread = c->thread,
                    .sequence = c->sequence,
                    .os_tid = c->os_tid,
                    .torch_thread = c->torch_thread,
                    .count = count,
                    .arg_words = arg_words,
                    .events = (const op_event *)(c + 1),
                    .args = args,
                    .args_at = c->bytes / (uint32_t)sizeof(uint32_t) - arg_words};
}

static op_raw raw_in_memory(const op_chunk *c) {
    uint32_t count = __atomic_load_n(&c->count, __ATOMIC_ACQUIRE);
    uint32_t arg_words = __atomic_load_n(&c->arg_words, __ATOMIC_ACQUIRE);
    return raw_of(c, count, arg_words, (const uint32_t *)c + c->bytes / sizeof(uint32_t) - arg_words);
}

typedef struct gathered {
    op_raw *raw;
    uint32_t count;
    void *spilled; /* mapping of the spill file */
} gathered;

static uint32_t count_chunks(uint32_t window) {
    uint32_t n = self->spill.count;
    for (const op_chunk *c = self->full; c; c = c->next)
        n += c->window == window;
    for (const op_thread *t = self->threads; t; t = t->link)
        n += t->window == window && t->chunk;
    return n;
}

static int gather(uint32_t window, gathered *out) {
    const op_spill *spill = &self->spill;
    out->raw = op_malloc(((size_t)count_chunks(window) + 1) * sizeof *out->raw);
    if (!out->raw)
        return op_error_set(OP_ENOMEM, "no memory for the list of chunks");
    if (spill->bytes) {
        out->spilled = op_mmap(NULL, spill->bytes, PROT_READ, MAP_PRIVATE, spill->fd, 0);
        if (out->spilled == MAP_FAILED) {
            out->spilled = NULL;
            return op_error_errno("%s", spill->path);
        }
    }
    for (uint32_t i = 0; i < spill->count; i++) {
        const op_chunk *c = (const op_chunk *)((const char *)out->spilled + spill->index[i].at);
        out->raw[out->count++] = raw_of(c, c->count, c->arg_words, op_spilled_args(c));
    }
    for (const op_chunk *c = self->full; c; c = c->next)
        if (c->window == window)
            out->raw[out->count++] = raw_in_memory(c);
    for (const op_thread *t = self->threads; t; t = t->link)
        if (t->window == window && t->chunk)
            out->raw[out->count++] = raw_in_memory(t->chunk);
    qsort(out->raw, out->count, sizeof *out->raw, op_raw_order);
    return OP_OK;
}

static void release(gathered *g) {
    if (g->spilled)
        munmap(g->spilled, self->spill.bytes);
    free(g->raw);
}

/* A thread that ended has left its name behind; the living are named by whoever asks. */
static void name_threads(op_result *r) {
    for (uint32_t i = 0; i < r->thread_count; i++)
        for (op_thread *t = self->threads; t; t = t->link)
            if (t->index == r->threads[i].index) {
                memcpy(r->threads[i].name, t->name, sizeof t->name);
                if (t->torch_thread)
                    r->threads[i].torch_thread = t->torch_thread;
                break;
            }
}

static void count_losses(uint32_t window, op_stats *stats) {
    for (const op_thread *t = self->threads; t; t = t->link)
        if (t->window == window) {
            stats->dropped += __atomic_load_n(&t->dropped, __ATOMIC_RELAXED);
            stats->unmatched_ends += t->unmatched;
        }
    stats->dropped += self->lost;
    stats->truncated = self->truncated;
    stats->uncounted = self->uncounted;
    stats->sampling = self->pool.header->sampling;
    stats->counted = self->pool.header->counted;
    memcpy(stats->counters, self->pool.header->counters, sizeof stats->counters);
    stats->spilled_bytes = self->spill.bytes;
    stats->names = op_names_count();
    stats->names_overflowed = op_names_overflowed();
    stats->crash_recovery = self->pool.fd >= 0;
}

static int collect(uint32_t window, op_result *result) {
    gathered chunks = {0};
    int rc = op_timeline_add(&self->timeline);
    if (rc == OP_OK)
        rc = gather(window, &chunks);
    if (rc == OP_OK) {
        const op_source source = {.raw = chunks.raw,
                                  .raw_count = chunks.count,
                                  .timeline = &self->timeline,
                                  .steps = &self->steps};
        rc = op_tree_build(&source, result);
    }
    if (rc == OP_OK) {
        name_threads(result);
        count_losses(window, &result->stats);
    }
    release(&chunks);
    return rc;
}

/* With the lock held, which it drops while it waits; threads that end meanwhile leave their events
 * to the result. Whatever happens to it, the window is closed and its room is free afterwards. */
static int stop_locked(op_result **out) {
    uint32_t window = op_open_window();
    if (!window)
        return op_error_set(OP_ESTATE, "no window is open");
    op_steps_end(&self->steps);
    __atomic_store_n(&op_window, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&op_paused, 0, __ATOMIC_RELEASE);
    self->stopping = window;
    op_spill_pause();
    op_spill_join_drain();
    op_thread_stop_counting();
    op_result *result = op_result_new();
    int rc = result ? collect(window, result) : op_error_set(OP_ENOMEM, "no memory for a result");
    __atomic_store_n(&self->pool.header->window, 0, __ATOMIC_RELEASE);
    op_thread_release_window(window);
    op_spill_reset();
    op_steps_clear(&self->steps);
    op_timeline_clear(&self->timeline);
    self->stopping = 0;
    op_spill_resume();
    if (rc == OP_OK)
        *out = result;
    else
        op_result_free(result);
    return rc;
}

int op_window_stop(op_result **out) {
    *out = NULL;
    pthread_mutex_lock(&self->lock);
    int rc = stop_locked(out);
    pthread_mutex_unlock(&self->lock);
    return rc;
}

void op_session_close(void) {
    op_result *unread = NULL;
    pthread_mutex_lock(&self->lock);
    while (self->stopping)
        pthread_cond_wait(&self->changed, &self->lock);
    if (op_open_window() && stop_locked(&unread) == OP_OK)
        op_result_free(unread);
    if (self->open) {
        self->open = false;
        op_thread_release_session();
        op_spill_close();
        op_pool_close(&self->pool);
    }
    pthread_mutex_unlock(&self->lock);
}

int op_window_peek(op_result **out) {
    *out = NULL;
    pthread_mutex_lock(&self->lock);
    op_spill_pause();
    uint32_t window = op_open_window();
    op_result *result = window ? op_result_new() : NULL;
    int rc = OP_OK;
    if (!window)
        rc = op_error_set(OP_ESTATE, "no window is open");
    else
        rc = result ? collect(window, result) : op_error_set(OP_ENOMEM, "no memory for a result");
    op_spill_resume();
    pthread_mutex_unlock(&self->lock);
    if (rc == OP_OK)
        *out = result;
    else
        op_result_free(result);
    return rc;
}

static void move_window(uint32_t *from, uint32_t *to) {
    pthread_mutex_lock(&self->lock);
    uint32_t window = __atomic_load_n(from, __ATOMIC_RELAXED);
    if (window) {
        __atomic_store_n(to, window, __ATOMIC_RELEASE);
        __atomic_store_n(from, 0, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&self->lock);
}

void op_window_pause(void) { move_window(&op_window, &op_paused); }

void op_window_resume(void) { move_window(&op_paused, &op_window); }

#define RECALIBRATE_NS 1000000000u

int op_step_begin(int64_t number) {
    pthread_mutex_lock(&self->lock);
    int rc = OP_OK;
    if (!op_open_window())
        rc = op_error_set(OP_ESTATE, "step %lld: no window is open", (long long)number);
    else {
        const op_timeline *t = &self->timeline;
        if (op_clock_now(CLOCK_MONOTONIC) - t->pairs[t->count - 1].monotonic_ns > RECALIBRATE_NS)
            rc = op_timeline_add(&self->timeline);
        if (rc == OP_OK)
            rc = op_steps_begin(&self->steps, number);
    }
    pthread_mutex_unlock(&self->lock);
    return rc;
}

int op_step_end(void) {
    pthread_mutex_lock(&self->lock);
    int rc = OP_OK;
    if (op_open_window())
        op_steps_end(&self->steps);
    else
        rc = op_error_set(OP_ESTATE, "no window is open");
    pthread_mutex_unlock(&self->lock);
    return rc;
}

uint64_t op_window_dropped(void) {
    pthread_mutex_lock(&self->lock);
    uint32_t window = op_open_window();
    uint64_t dropped = window ? self->lost : 0;
    for (const op_thread *t = self->threads; window && t; t = t->link)
        if (t->window == window)
            dropped += __atomic_load_n(&t->dropped, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&self->lock);
    return dropped;
}

const char *op_name_text(uint32_t id, uint32_t *length) { return op_names_text(id, length); }
