/* The device: each stream runs one thing after the other, which takes time. Finished work becomes a
 * record on the library's own thread or, if that is off, in the next flush. */
#include "fake.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FOREVER (3600u * 1000000000ull)
#define SHORTEST_NAP 100000u /* ns: completed records are collected in batches */

typedef struct stream {
    fake_place place;
    uint64_t free_at;   /* by the records' clock */
    uint64_t free_mono; /* by CLOCK_MONOTONIC */
} stream;

typedef struct pending {
    fake_record record;
    fake_place place;
    uint64_t due; /* of CLOCK_MONOTONIC */
    uint64_t after_flush;
    uint32_t flags;
} pending;

static stream *streams;
static size_t stream_count;
static pending *waiting; /* in the order in which they were started */
static size_t waiting_count, waiting_room;
static uint64_t flushes; /* completed flushes */
static uint32_t late;
static bool host_waits = true;

static pthread_t worker;
static bool worker_wanted = true, worker_runs, worker_ends;
static uint64_t flush_asked, flush_taken, worker_until;
static bool flush_forced;

/* Separate from the library's lock: waiting for a flush must not wait for that. */
static pthread_mutex_t flushed_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t flushed = PTHREAD_COND_INITIALIZER;
static uint64_t flush_done;

static void *grown(void *array, size_t bytes) {
    array = realloc(array, bytes);
    if (!array)
        fake_die("no memory for %zu bytes", bytes);
    return array;
}

/* ---- time on the device ------------------------------------------------------------------ */

static stream *stream_at(fake_place place) {
    for (size_t i = 0; i < stream_count; i++)
        if (memcmp(&streams[i].place, &place, sizeof place) == 0)
            return &streams[i];
    streams = grown(streams, (stream_count + 1) * sizeof *streams);
    streams[stream_count] = (stream){.place = place};
    return &streams[stream_count++];
}

static uint64_t later(uint64_t a, uint64_t b) { return a > b ? a : b; }

void fake_schedule(fake_place place, uint64_t not_before, uint64_t duration, uint64_t *start,
                   uint64_t *due) {
    /* Kind KERNEL, unlike CONCURRENT_KERNEL, lets only one kernel run at a time. */
    if (fake_kind_is_on(CUPTI_ACTIVITY_KIND_KERNEL))
        place = (fake_place){0};
    stream *s = stream_at(place);
    *start = later(s->free_at, not_before);
    s->free_at = *start + duration;
    s->free_mono = later(s->free_mono, fake_monotonic()) + duration;
    *due = s->free_mono;
}

static bool is_part_of(fake_place all, fake_place one) {
    return (!all.context || one.context == all.context) && (!all.stream || one.stream == all.stream);
}

/* If nobody waits, everything started there counts as done. */
static void let_pass(fake_place place) {
    for (size_t i = 0; i < stream_count; i++)
        if (is_part_of(place, streams[i].place))
            streams[i].free_mono = 0;
    for (size_t i = 0; i < waiting_count; i++)
        if (is_part_of(place, waiting[i].place))
            waiting[i].due = 0;
}

void fake_wait_for(fake_place place) {
    uint64_t until = 0;
    fake_lock(__func__);
    if (host_waits) {
        for (size_t i = 0; i < stream_count; i++)
            if (is_part_of(place, streams[i].place))
                until = later(until, streams[i].free_mono);
    } else {
        let_pass(place);
    }
    fake_unlock();
    struct timespec t = {.tv_sec = (time_t)(until / 1000000000u),
                         .tv_nsec = (long)(until % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0)
        continue;
}

bool fake_is_idle(fake_place place) {
    uint64_t now = fake_monotonic();
    bool idle = true;
    fake_lock(__func__);
    for (size_t i = 0; i < stream_count; i++)
        idle = idle && !(is_part_of(place, streams[i].place) && streams[i].free_mono > now);
    fake_unlock();
    return idle;
}

void fake_waiting(int on) {
    fake_lock(__func__);
    host_waits = on;
    fake_unlock();
}

/* ---- records of unfinished work ---------------------------------------------------------- */

void fake_add_pending(const fake_record *record, fake_place place, uint64_t due, uint32_t flags) {
    if (waiting_count == waiting_room) {
        waiting_room = waiting_room ? 2 * waiting_room : 64;
        waiting = grown(waiting, waiting_room * sizeof *waiting);
    }
    waiting[waiting_count++] = (pending){
        .record = *record, .place = place, .due = due, .after_flush = flushes + late, .flags = flags};
    if (due < worker_until)
        fake_wake();
}

static bool is_complete(const pending *p, uint64_t now) {
    return p->due <= now && p->after_flush <= flushes && !(p->flags & (FAKE_LATE | FAKE_ENDLESS));
}

static void without_times(fake_record *r) {
    switch ((uint32_t)r->kind) {
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        r->copy.start = r->copy.end = 0;
        break;
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
        r->peer.start = r->peer.end = 0;
        break;
    case CUPTI_ACTIVITY_KIND_MEMSET:
        r->set.start = r->set.end = 0;
        break;
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
        r->graph.start = r->graph.end = 0;
        break;
    default:
        r->kernel.start = r->kernel.end = 0;
    }
}

static uint64_t untimed;

static void move_to_buffer(pending *p, uint64_t now) {
    if (p->due > now || (p->flags & FAKE_ENDLESS)) {
        without_times(&p->record);
        untimed++;
    }
    fake_append(0, &p->record);
}

/* Moves records of finished work to the buffers; if forced, all records. */
static void settle(bool forced) {
    uint64_t now = fake_monotonic();
    size_t kept = 0, ready = 0;
    pending *done = NULL;
    for (size_t i = 0; i < waiting_count; i++)
        if (!forced && !is_complete(&waiting[i], now))
            waiting[kept++] = waiting[i];
        else {
            if (!done)
                done = grown(NULL, (waiting_count - i) * sizeof *done);
            done[ready++] = waiting[i];
        }
    waiting_count = kept;
    if (ready)
        fake_now(); /* the real library calls the clock here, on this thread, to match the GPU's */
    for (size_t first = 0; first < ready; first++) {
        size_t at = ready - 1 - fake_draw(ready - first);
        pending p = done[at];
        done[at] = done[first];
        move_to_buffer(&p, now);
    }
    free(done);
}

static uint64_t next_due(uint64_t now) {
    uint64_t due = now + FOREVER;
    for (size_t i = 0; i < waiting_count; i++)
        if (waiting[i].due < due && waiting[i].after_flush <= flushes &&
            !(waiting[i].flags & (FAKE_LATE | FAKE_ENDLESS)))
            due = waiting[i].due;
    return later(due, now + SHORTEST_NAP);
}

/* ---- flushing, and the library's thread -------------------------------------------------- */

static void flush_now(bool forced) {
    settle(forced);
    fake_deliver_full();
    fake_deliver_all(forced);
    flushes++;
}

static void tell_flushed(uint64_t asked) {
    pthread_mutex_lock(&flushed_lock);
    flush_done = asked;
    pthread_cond_broadcast(&flushed);
    pthread_mutex_unlock(&flushed_lock);
}

static void *work(void *unused) {
    (void)unused;
    fake_lock("CUPTI's worker thread");
    while (!worker_ends || flush_asked != flush_taken) {
        if (flush_asked != flush_taken) {
            uint64_t asked = flush_taken = flush_asked;
            bool forced = flush_forced;
            flush_forced = false;
            flush_now(forced);
            tell_flushed(asked);
            continue;
        }
        settle(false);
        fake_deliver_full();
        worker_until = next_due(fake_monotonic());
        fake_wait(worker_until);
    }
    worker_until = 0;
    fake_unlock();
    return NULL;
}

/* Like the real library, when the first kind is enabled. */
void fake_start_worker(void) {
    if (!worker_wanted || worker_runs)
        return;
    worker_ends = false;
    if (pthread_create(&worker, NULL, work, NULL) != 0)
        fake_die("no thread for the worker");
    worker_runs = true;
}

static void end_worker(void) {
    fake_lock(__func__);
    bool runs = worker_runs;
    worker_ends = true;
    worker_runs = false;
    fake_wake();
    fake_unlock();
    if (runs)
        pthread_join(worker, NULL);
}

void fake_worker(int on) {
    if (!on)
        end_worker();
    fake_lock(__func__);
    worker_wanted = on;
    fake_unlock();
}

static void wait_until_flushed(uint64_t mine) {
    struct timespec until = fake_deadline();
    pthread_mutex_lock(&flushed_lock);
    while (flush_done < mine)
        if (pthread_cond_timedwait(&flushed, &flushed_lock, &until) == ETIMEDOUT)
            fake_die(
                "cuptiActivityFlushAll waited too long for its thread: a buffer callback does not end");
    pthread_mutex_unlock(&flushed_lock);
}

void fake_flush(bool forced) {
    fake_lock("cuptiActivityFlushAll");
    bool by_worker = worker_runs;
    uint64_t mine = 0;
    if (by_worker) {
        mine = ++flush_asked;
        flush_forced |= forced;
        fake_wake();
    } else {
        flush_now(forced);
    }
    fake_unlock();
    if (by_worker)
        wait_until_flushed(mine);
}

void fake_late(uint32_t more) {
    fake_lock(__func__);
    late = more;
    fake_unlock();
}

void fake_add_device_totals(fake_totals *totals) {
    totals->pending = waiting_count;
    totals->untimed = untimed;
    totals->flushes = flushes;
}

void fake_reset_device(void) {
    end_worker();
    tell_flushed(0);
    fake_lock(__func__);
    free(streams);
    free(waiting);
    streams = NULL;
    waiting = NULL;
    stream_count = waiting_count = waiting_room = 0;
    flushes = flush_asked = flush_taken = untimed = 0;
    late = 0;
    flush_forced = false;
    host_waits = worker_wanted = true;
    fake_unlock();
}
