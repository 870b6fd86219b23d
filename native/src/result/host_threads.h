/* What launching threads did while a device had no work. */
#ifndef OP_HOST_THREADS_H
#define OP_HOST_THREADS_H

#include "opprof.h"
#include "result/stretches.h"

typedef struct op_host_threads {
    const op_result *r;
    struct op_host_thread *of; /* by thread index */
    uint8_t *waits;            /* by name, see is_wait() */
} op_host_threads;

/* False: no memory. Free it either way. */
bool op_host_threads_open(op_host_threads *h, const op_result *r);
/* Attributes a time without any device work to its causes. `launcher` is the row that launched the next
 * work; -1: unknown. False: no memory. */
bool op_host_threads_add_idle(const op_host_threads *h, int32_t launcher, int64_t from_ns,
                              int64_t to_ns, op_device_span *out);
void op_host_threads_free(op_host_threads *h);

#endif
