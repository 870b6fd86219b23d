/* The malloc family as a source of memory events. */
#ifndef OP_MALLOC_WATCH_H
#define OP_MALLOC_WATCH_H

#include "opprof.h"

#include <stdbool.h>

/* While it is set, what this thread takes is not recorded: one allocator at work for another, or a
 * fork, which holds the collector's lock while handlers of other libraries run. */
extern __thread bool op_memory_paused
#if defined(__GLIBC__)
    __attribute__((tls_model("initial-exec")))
#endif
    ;

#endif
