/* The collector: the only process-wide state, because an interpreter, an allocator and a CUDA driver
 * report to one observer per process.
 * Lock order: `lock` (guards everything here except the recording path), then names.c's own. */
#ifndef OP_COLLECTOR_H
#define OP_COLLECTOR_H

#include "core/clock.h"
#include "core/event.h"
#include "core/owned_fd.h"
#include "core/pool.h"
#include "core/steps.h"
#include "opprof.h"

#include <pthread.h>
#include <stdbool.h>

typedef struct op_thread op_thread; /* record.h */

/* What was spilled (spill.h). */
typedef struct op_spilled {
    uint64_t at; /* offset in the file */
    uint32_t thread, sequence;
} op_spilled;

typedef struct op_spill {
    char path[1024];
    op_owned_fd file; /* none until the first spill */
    uint64_t bytes;
    op_spilled *index;
    uint32_t count, capacity;
    int writer;        /* the thread that is writing without the lock; 0: none */
    op_chunk *written; /* the chunk it is writing */
    uint32_t paused;   /* how many callers currently forbid writing */
    bool broken;       /* a write failed: keep what fits the pool, drop the rest */
    bool drain_runs, drain_stops;
    pthread_t drain;
    int drain_tid;
} op_spill;

typedef struct op_collector {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a write ended, or the drain has work */
    bool open;
    double sampling; /* of later windows, as is keeps_last */
    bool keeps_last;
    uint32_t uncounted; /* threads of the window on which the requested counters failed */
    uint32_t session;   /* only grows */
    uint32_t stopping;  /* the window whose result is being built; 0: none */
    op_pool pool;
    op_spill spill;
    op_chunk *full;     /* of any window and owner, pinned or not; newest first */
    op_thread *threads; /* every thread that began an event since the session opened */
    uint32_t thread_count;
    uint32_t last_window; /* only grows, in children too */
    uint64_t window_bytes, max_bytes;
    op_timeline timeline; /* of the open window */
    void *spare_contexts; /* left by threads that ended, for the torch observer */
    op_steps steps;
} op_collector;

extern op_collector op_the_collector;

/* Installs the fork handlers and the key that detects a thread's end, once per process. */
int op_thread_setup(void);
int op_fork_setup(void);                  /* called by the above; 0 or an errno */
void op_thread_sweep(const op_thread *t); /* called by the thread itself */
/* Needs the lock; no window may be open. */
void op_thread_release_window(uint32_t window);
void op_thread_release_session(void);
void op_thread_stop_counting(void);
/* How many of the window's events were dropped. Needs the lock; the window is open or stopping. */
uint64_t op_thread_drops(uint32_t window);
void op_thread_after_fork(void); /* in the child, which has one thread */
/* Puts the window's events into a new result (only their sums if there are more than `most_events`),
 * and what was lost. Needs the lock. */
int op_collect(uint32_t window, uint64_t most_events, op_result *result);
/* Numbers of the counters that later windows use; returns how many. */
uint32_t op_counters_chosen(uint32_t out[OP_COUNTERS_MAX]);

#endif
