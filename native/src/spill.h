/* Full chunks, and where they go when the pool runs short: a file written with write(2). */
#ifndef OP_SPILL_H
#define OP_SPILL_H

#include "event.h"

#include <pthread.h>
#include <stdbool.h>

typedef struct op_spilled {
    uint64_t at; /* in the file: the chunk's header, its events, its argument words */
    uint32_t thread, sequence;
} op_spilled;

typedef struct op_spill {
    char path[1024];
    int fd; /* -1: not made yet */
    uint64_t bytes;
    op_spilled *index;
    uint32_t count, capacity;
    bool writing; /* somebody writes, without the lock */
    bool broken;  /* a write failed: keep what fits the pool, drop the rest */
    bool drain_runs, drain_stops;
    pthread_t drain;
} op_spill;

/* All with the collector's lock held, which they drop while they write. */
bool op_spill_one(void);
void op_spill_start_drain(void);
void op_spill_wait(void); /* until nobody writes */
void op_spill_reset(void);
void op_spill_close(void);
/* Without the lock: a native thread left running makes the user's os.fork() warn. */
void op_spill_join_drain(void);

#endif
