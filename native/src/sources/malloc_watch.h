/* The malloc family as a source of memory events. */
#ifndef OP_MALLOC_WATCH_H
#define OP_MALLOC_WATCH_H

#include "opprof.h"

#include <stdbool.h>

/* While it is set, what this thread takes is not recorded: one allocator at work for another, or
 * whoever holds the collector's lock and calls the C library (in a program at a fixed address what that
 * takes is seen too), or a fork, which holds it while handlers of other libraries run. */
extern __thread bool op_memory_paused
#if defined(__GLIBC__)
    __attribute__((tls_model("initial-exec")))
#endif
    ;

/* Sets it; what it was. */
static inline bool op_memory_pause(void) {
    bool before = op_memory_paused;
    op_memory_paused = true;
    return before;
}

#endif
