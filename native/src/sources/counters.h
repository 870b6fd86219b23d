/* Counters of the processor and of the kernel, for each thread its own, read when an op or range
 * begins and ends. What was counted in between is a record of its own just before the end, as the
 * event's is written already (OP_COUNTERS).
 *
 * A thread opens its counters at its first event in a window. The window's end closes those of all
 * threads, so each thread's have a lock, which nobody else wants while the window is open. */
#ifndef OP_COUNTERS_H
#define OP_COUNTERS_H

#include "core/record.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct op_counters op_counters;

extern uint32_t op_counted; /* how many the windows to come count; 0: none */

static inline uint32_t op_counts(void) { return __atomic_load_n(&op_counted, __ATOMIC_RELAXED); }

/* Around op_begin() and op_end(), by the thread itself, where op_counts(). An event that ends out of
 * order, elsewhere or while the window is paused has no counters. */
void op_count_begin(const op_slot *slot); /* just after */
void op_count_end(const op_slot *slot);   /* just before */

/* Of a thread, or NULL. With the collector's lock held. */
void op_counters_close(op_counters *c);
void op_counters_free(op_counters *c);
void op_counters_abandon(op_counters *c); /* in a forked child: nobody holds its lock there */

#ifdef __cplusplus
}
#endif
#endif
