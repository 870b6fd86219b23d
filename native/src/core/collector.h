/* The collector: the one piece of process-wide state, because an interpreter, an allocator and a
 * CUDA driver report to one observer a process.
 *
 * Locks, in order: `lock` (everything here but the recording path), then names.c's own. */
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
    uint64_t at; /* in the file */
    uint32_t thread, sequence;
} op_spilled;

typedef struct op_spill {
    char path[1024];
    op_owned_fd file; /* none: not made yet */
    uint64_t bytes;
    op_spilled *index;
    uint32_t count, capacity;
    int writer;        /* the thread that writes, without the lock; 0: none does */
    op_chunk *written; /* by it */
    uint32_t paused;   /* by so many who want nobody to */
    bool broken;       /* a write failed: keep what fits the pool, drop the rest */
    bool drain_runs, drain_stops;
    pthread_t drain;
    int drain_tid;
} op_spill;

typedef struct op_collector {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a write ended, or the drain has work */
    bool open;
    double sampling; /* of windows to come, as the next */
    bool keeps_last;
    uint32_t uncounted; /* threads of the window without the counters asked for */
    uint32_t session;   /* only grows */
    uint32_t stopping;  /* the window whose result is being made; 0: none */
    op_pool pool;
    op_spill spill;
    op_chunk *full;     /* of any window, owner and pinning; newest first */
    op_thread *threads; /* that began an event since the session opened */
    uint32_t thread_count;
    uint32_t last_window; /* only grows, in children too */
    uint64_t window_bytes, max_bytes;
    op_timeline timeline; /* of the open window */
    void *spare_contexts; /* of threads that ended, for the torch observer */
    op_steps steps;
} op_collector;

extern op_collector op_the_collector;

/* Handlers for fork and the key that notices a thread's end; once a process. */
int op_thread_setup(void);
int op_fork_setup(void);                  /* by the above; 0 or an errno */
void op_thread_sweep(const op_thread *t); /* by the thread itself */
/* With the lock held, no window open. */
void op_thread_release_window(uint32_t window);
void op_thread_release_session(void);
void op_thread_stop_counting(void);
/* With the lock held, a window open or stopping: how many of its events were dropped. */
uint64_t op_thread_drops(uint32_t window);
void op_thread_after_fork(void); /* in the child, where there is one thread */
/* With the lock held: the window's events as they are (of more than so many the sums), and what was
 * lost of them, into a new result. */
int op_collect(uint32_t window, uint64_t most_events, op_result *result);
/* The numbers of the counters that windows to come count; how many there are. */
uint32_t op_counters_chosen(uint32_t out[OP_COUNTERS_MAX]);

#endif
