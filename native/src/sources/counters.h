/* Hardware and kernel counters per thread, read when an op or range begins and ends. The difference is
 * a separate record just before the end (OP_COUNTERS), because the event's own is already written.
 * A thread opens its counters at its first event in a window. The window's end closes those of all
 * threads, so each thread's have a lock, which is uncontended while the window is open. */
#ifndef OP_COUNTERS_H
#define OP_COUNTERS_H

#include "core/record.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct op_counters op_counters;

extern uint32_t op_counted; /* how many counters later windows count; 0: none */

static inline uint32_t op_counts(void) { return __atomic_load_n(&op_counted, __ATOMIC_RELAXED); }

/* Around op_begin() and op_end(), on the same thread, if op_counts(). An event that ends out of order,
 * on another thread or while the window is paused has no counters. */
void op_count_begin(const op_slot *slot); /* just after */
void op_count_end(const op_slot *slot);   /* just before */

/* The argument may be NULL. Need the collector's lock. */
void op_counters_close(op_counters *c);
void op_counters_free(op_counters *c);
void op_counters_abandon(op_counters *c); /* in a forked child, where nobody holds its lock */

#ifdef __cplusplus
}
#endif
#endif
