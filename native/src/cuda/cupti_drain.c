#include "cuda/cupti_drain.h"

#include "core/fault.h"
#include "core/grow.h"
#include "core/spill.h"
#include "cuda/cupti_buffers.h"
#include "cuda/cupti_decode.h"
#include "cuda/cupti_names.h"
#include "sources/malloc_watch.h"

#include <signal.h>
#include <string.h>

/* With longer intervals CUPTI's own memory on the devices runs out, and kernels have no times. */
#define FLUSH_EVERY_NS 1000000000u

static struct {
    pthread_mutex_t lock;
    op_cupti_decoder decoder;
    op_cuda_records records;
    op_cuda_pause *pauses;
    uint32_t pause_count, pause_capacity;
    unsigned paused_for; /* reasons, see op_cupti_drain_pause() */
    pthread_t thread;
    bool runs, stops;
    int tid;
} self = {.lock = PTHREAD_MUTEX_INITIALIZER};

void op_cupti_drain_open(const op_cupti_library *library, const op_cupti_clock *clock,
                         uint64_t most_bytes) {
    pthread_mutex_lock(&self.lock);
    self.decoder.library = library;
    self.decoder.clock = *clock;
    self.decoder.most_bytes = most_bytes;
    pthread_mutex_unlock(&self.lock);
}

void op_cupti_drain_now(void) {
    for (op_cupti_buffer *b; (b = op_cupti_buffers_take());) {
        pthread_mutex_lock(&self.lock);
        op_cupti_decode(&self.decoder, b->data, b->valid, &self.records);
        pthread_mutex_unlock(&self.lock);
        op_cupti_buffers_recycle(b);
    }
}

static bool begins_capture(const op_cuda_call *c) {
    return c->role == OP_CALL_BEGIN_CAPTURE && c->call.result == 0;
}

/* Of the calls that fail, these two end a capture: CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, -UNJOINED. */
static bool ends_capture(const op_cuda_call *c) {
    return c->role == OP_CALL_END_CAPTURE &&
           (c->call.result == 0 || c->call.result == 901 || c->call.result == 904);
}

static int by_time(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Since some moment more captures began than ended. Those that ended before may be from before the
 * window, and are not taken from these. */
bool op_cupti_drain_is_capturing(void) {
    uint64_t *turns = NULL, count = 0; /* time << 1 | whether a capture begins */
    bool is_known = true;
    pthread_mutex_lock(&self.lock);
    for (uint64_t i = 0; i < self.records.call_count && is_known; i++) {
        const op_cuda_call *c = &self.records.calls[i];
        if (!begins_capture(c) && !ends_capture(c))
            continue;
        uint64_t *grown = count % 64 ? turns : op_realloc(turns, (count + 64) * sizeof *turns);
        if ((is_known = grown != NULL)) {
            turns = grown;
            turns[count++] = c->start << 1 | begins_capture(c);
        }
    }
    pthread_mutex_unlock(&self.lock);
    int64_t open = 0;
    if (count)
        qsort(turns, count, sizeof *turns, by_time);
    while (count && open <= 0)
        open += turns[--count] & 1 ? 1 : -1;
    free(turns);
    return open > 0 || !is_known;
}

void op_cupti_drain_until(uint64_t ns) {
    pthread_mutex_lock(&self.lock);
    self.decoder.until = ns;
    pthread_mutex_unlock(&self.lock);
}

void op_cupti_drain_clear(void) {
    for (op_cupti_buffer *b; (b = op_cupti_buffers_take());)
        op_cupti_buffers_recycle(b);
    pthread_mutex_lock(&self.lock);
    self.decoder.until = UINT64_MAX;
    op_cuda_records_clear(&self.records);
    op_cupti_names_free(&self.decoder.names); /* a module unloaded since may have freed its names */
    free(self.pauses);
    self.pauses = NULL;
    self.pause_count = self.pause_capacity = 0;
    self.paused_for = 0;
    pthread_mutex_unlock(&self.lock);
}

static void *drain(void *unused) {
    (void)unused;
    op_memory_paused = true; /* its allocations are not the program's */
    __atomic_store_n(&self.tid, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
    uint64_t flushed = op_clock_now(CLOCK_MONOTONIC);
    while (!__atomic_load_n(&self.stops, __ATOMIC_ACQUIRE)) {
        op_cupti_buffers_wait(FLUSH_EVERY_NS);
        if (op_clock_now(CLOCK_MONOTONIC) - flushed >= FLUSH_EVERY_NS &&
            !__atomic_load_n(&self.stops, __ATOMIC_ACQUIRE)) {
            self.decoder.library->cupti.ActivityFlushAll(0);
            flushed = op_clock_now(CLOCK_MONOTONIC);
        }
        op_cupti_drain_now();
    }
    return NULL;
}

/* If the thread does not start, a window holds what fits the buffers; the rest is dropped. */
void op_cupti_drain_start(void) {
    sigset_t all, before;
    if (self.runs)
        return;
    self.stops = false;
    op_cupti_buffers_wake(false);
    sigfillset(&all); /* the user's signal handlers are for the user's threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    self.runs = op_thread_start(&self.thread, NULL, drain, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void op_cupti_drain_join(void) {
    if (!self.runs)
        return;
    __atomic_store_n(&self.stops, true, __ATOMIC_RELEASE);
    op_cupti_buffers_wake(true);
    pthread_join(self.thread, NULL);
    op_wait_until_unlisted(__atomic_load_n(&self.tid, __ATOMIC_ACQUIRE));
    self.runs = false;
}

void op_cupti_drain_stop(uint64_t dropped) {
    op_cupti_drain_join();
    op_cupti_drain_now();
    pthread_mutex_lock(&self.lock);
    self.records.dropped += dropped + op_cupti_buffers_dropped();
    pthread_mutex_unlock(&self.lock);
}

/* ---- the records, for building a result -------------------------------------------------------- */

static void begin_pause(uint64_t at) {
    if (!OP_HAS_ROOM(self.pauses, self.pause_count, self.pause_capacity, 16)) {
        self.records.dropped++; /* from here on, records of the pause would count for the window */
        return;
    }
    self.pauses[self.pause_count++] = (op_cuda_pause){.from = at, .to = UINT64_MAX};
}

void op_cupti_drain_pause(unsigned why, bool paused) {
    uint64_t at = op_ticks();
    pthread_mutex_lock(&self.lock);
    unsigned before = self.paused_for;
    self.paused_for = paused ? before | why : before & ~why;
    if (!before && self.paused_for)
        begin_pause(at);
    else if (before && !self.paused_for && self.pause_count)
        self.pauses[self.pause_count - 1].to = at;
    pthread_mutex_unlock(&self.lock);
}

const op_cuda_records *op_cupti_drain_records(const op_cuda_pause **pauses, uint32_t *pause_count) {
    *pauses = self.pauses;
    *pause_count = self.pause_count;
    return &self.records;
}

void op_cupti_drain_lock(void) { pthread_mutex_lock(&self.lock); }
void op_cupti_drain_unlock(void) { pthread_mutex_unlock(&self.lock); }
