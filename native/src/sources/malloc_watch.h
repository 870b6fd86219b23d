/* The malloc family as a source of memory events. */
#ifndef OP_MALLOC_WATCH_H
#define OP_MALLOC_WATCH_H

#include "opprof.h"

#include <stdbool.h>

/* While set, this thread's allocations are not recorded: when one allocator works for another, when the
 * holder of the collector's lock calls the C library (whose allocations are seen in a program at a
 * fixed address), and during a fork, which holds the lock while other libraries' handlers run. */
extern __thread bool op_memory_paused
#if defined(__GLIBC__)
    __attribute__((tls_model("initial-exec")))
#endif
    ;

/* Sets it and returns the previous value. */
static inline bool op_memory_pause(void) {
    bool before = op_memory_paused;
    op_memory_paused = true;
    return before;
}

#endif
