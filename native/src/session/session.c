/* The session and its windows. */
#include "core/collector.h"
#include "core/error.h"
#include "core/names.h"
#include "core/record.h"
#include "core/spill.h"
#include "cuda/cupti.h"
#include "result/result.h"
#include "sources/malloc_watch.h"
#include "sources/retained.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_POOL_BYTES (16ull << 20)
#define DEFAULT_MAX_BYTES (2ull << 30)

op_collector op_the_collector = {.lock = PTHREAD_MUTEX_INITIALIZER,
                                 .changed = PTHREAD_COND_INITIALIZER,
                                 .sampling = 1,
                                 .pool = {.file = {.fd = -1}, .names_file = {.fd = -1}},
                                 .spill = {.file = {.fd = -1}}};
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

const char *op_session_path(void) {
    return self->open && self->pool.file.fd >= 0 ? self->pool.path : "";
}

const char *op_session_clock(void) { return op_clock_name(); }

void op_session_note(const char *text, uint32_t bytes) {
    pthread_mutex_lock(&self->lock);
    op_file_header *header = self->open ? self->pool.header : NULL;
    if (header) {
        uint32_t kept = bytes < OP_NOTE_BYTES ? bytes : OP_NOTE_BYTES;
        __atomic_store_n(&header->note_bytes, 0, __ATOMIC_RELEASE);
        /* Otherwise a process that dies in between leaves half of one note and half of another. */
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        if (kept > 0) /* an empty note is a null pointer, which memcpy() must not get */
            memcpy(header->note, text, kept);
        __atomic_store_n(&header->note_bytes, kept, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&self->lock);
}

int op_window_is_open(void) { return op_open_window() != 0; }

static int start_locked(void) {
    if (!self->open)
        return op_error_set(OP_ESTATE, "no session is open");
    if (op_open_window() || self->stopping)
        return op_error_set(OP_EBUSY, "a window is already open");
    op_steps_clear(&self->steps);
    op_timeline_clear(&self->timeline);
    op_retained_forget();
    int rc = op_timeline_add(&self->timeline);
    if (rc != OP_OK)
        return rc;
    self->window_bytes = 0;
    self->uncounted = 0;
    /* Threads that hold a chunk will reuse it: its bytes count from their first event. */
    uint32_t window = ++self->last_window;
    self->pool.header->started = self->timeline.pairs[0];
    self->pool.header->truncated = 0;
    self->pool.header->dropped = 0;
    self->pool.header->sampling = self->sampling;
    self->pool.header->keeps_last = self->keeps_last;
    self->pool.header->counted = op_counters_chosen(self->pool.header->counters);
    __atomic_store_n(&self->pool.header->window, window, __ATOMIC_RELEASE);
    __atomic_store_n(&op_window, window, __ATOMIC_RELEASE);
    return OP_OK;
}

/* CUPTI starts first, so that nothing in the window waits for it. */
int op_window_start(void) {
    bool with_cuda = !op_open_window() && op_cupti_window_start();
    pthread_mutex_lock(&self->lock);
    int rc = start_locked();
    pthread_mutex_unlock(&self->lock);
    if (rc != OP_OK && with_cuda) {
        op_cupti_window_stop();
        op_cupti_window_forget();
    }
    return rc;
}

void op_window_sample(double sampling) {
    pthread_mutex_lock(&self->lock);
    self->sampling = sampling;
    pthread_mutex_unlock(&self->lock);
}

void op_window_keep_inputs(uint32_t on) { __atomic_store_n(&op_with_inputs, on, __ATOMIC_RELAXED); }

void op_window_keep_last(uint32_t on) {
    pthread_mutex_lock(&self->lock);
    self->keeps_last = on != 0;
    pthread_mutex_unlock(&self->lock);
}

static void end_step(void) {
    op_steps_end(&self->steps);
    op_retained_step_end();
}

/* ---- the window's end, and requests before it --------------------------------------------------- */

/* Needs the lock, and drops it while it waits; the events of threads that end meanwhile stay for the
 * result. Whatever goes wrong, afterwards the window is closed and its room is free. */
static int stop_locked(uint64_t most_events, op_result **out) {
    uint32_t window = op_open_window();
    if (!window)
        return op_error_set(OP_ESTATE, "no window is open");
    end_step();
    __atomic_store_n(&op_window, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&op_paused, 0, __ATOMIC_RELEASE);
    self->stopping = window;
    op_spill_pause();
    op_spill_join_drain();
    op_thread_stop_counting();
    op_result *result = op_result_new();
    int rc = result ? op_collect(window, most_events, result)
                    : op_error_set(OP_ENOMEM, "no memory for a result");
    __atomic_store_n(&self->pool.header->window, 0, __ATOMIC_RELEASE);
    op_thread_release_window(window);
    op_spill_reset();
    op_steps_clear(&self->steps);
    op_timeline_clear(&self->timeline);
    op_retained_forget();
    self->stopping = 0;
    op_spill_resume();
    if (rc == OP_OK)
        *out = op_result_number(result);
    else
        op_result_free(result);
    return rc;
}

int op_window_sum(uint64_t most_events, op_result **out) {
    *out = NULL;
    op_cupti_window_stop();
    pthread_mutex_lock(&self->lock);
    int rc = stop_locked(most_events, out);
    pthread_mutex_unlock(&self->lock);
    op_cupti_window_forget();
    return rc;
}

int op_window_stop(op_result **out) { return op_window_sum(0, out); }

void op_session_close(void) {
    op_result *unread = NULL;
    op_cupti_window_stop();
    pthread_mutex_lock(&self->lock);
    while (self->stopping)
        pthread_cond_wait(&self->changed, &self->lock);
    if (op_open_window() && stop_locked(0, &unread) == OP_OK)
        op_result_free(unread);
    if (self->open) {
        self->open = false;
        op_thread_release_session();
        op_spill_close();
        op_pool_close(&self->pool);
    }
    pthread_mutex_unlock(&self->lock);
    op_cupti_window_forget();
}

int op_window_peek(op_result **out) {
    *out = NULL;
    bool paused = op_memory_pause();
    op_cupti_window_update();
    pthread_mutex_lock(&self->lock);
    op_spill_pause();
    uint32_t window = op_open_window();
    op_result *result = window ? op_result_new() : NULL;
    int rc = OP_OK;
    if (!window)
        rc = op_error_set(OP_ESTATE, "no window is open");
    else
        rc = result ? op_collect(window, 0, result) : op_error_set(OP_ENOMEM, "no memory for a result");
    op_spill_resume();
    pthread_mutex_unlock(&self->lock);
    op_memory_paused = paused;
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

void op_window_pause(void) {
    move_window(&op_window, &op_paused);
    op_cupti_window_pause(OP_CUPTI_WITH_ALL, true);
}

void op_window_resume(void) {
    op_cupti_window_pause(OP_CUPTI_WITH_ALL, false);
    move_window(&op_paused, &op_window);
}

void op_window_pause_cuda(int paused) { op_cupti_window_pause(OP_CUPTI_ALONE, paused != 0); }

#define RECALIBRATE_NS 1000000000u

int op_step_begin(int64_t number) {
    bool paused = op_memory_pause();
    pthread_mutex_lock(&self->lock);
    int rc = OP_OK;
    if (!op_open_window())
        rc = op_error_set(OP_ESTATE, "step %lld: no window is open", (long long)number);
    else {
        const op_timeline *t = &self->timeline;
        if (op_clock_now(CLOCK_MONOTONIC) - t->pairs[t->count - 1].monotonic_ns > RECALIBRATE_NS)
            rc = op_timeline_add(&self->timeline);
        end_step();
        if (rc == OP_OK && (rc = op_steps_begin(&self->steps, number)) == OP_OK)
            op_retained_step_begin();
    }
    pthread_mutex_unlock(&self->lock);
    op_memory_paused = paused;
    return rc;
}

int op_step_end(void) {
    pthread_mutex_lock(&self->lock);
    int rc = OP_OK;
    if (op_open_window())
        end_step();
    else
        rc = op_error_set(OP_ESTATE, "no window is open");
    pthread_mutex_unlock(&self->lock);
    return rc;
}

uint64_t op_window_dropped(void) {
    pthread_mutex_lock(&self->lock);
    uint32_t window = op_open_window();
    uint64_t dropped = window ? op_thread_drops(window) : 0;
    pthread_mutex_unlock(&self->lock);
    return dropped;
}

const char *op_name_text(uint32_t id, uint32_t *length) { return op_names_text(id, length); }

uint32_t op_name_group(uint32_t id) { return op_names_group(id); }
