/* What the threads that launch work did while a device had none. */
#ifndef OP_HOST_THREADS_H
#define OP_HOST_THREADS_H

#include "opprof.h"
#include "result/stretches.h"

typedef struct op_host_threads {
    const op_result *r;
    struct op_host_thread *of; /* by index of the thread */
    uint8_t *waits;            /* by name, see is_wait() */
} op_host_threads;

/* False: no memory. Free it in any case. */
bool op_host_threads_open(op_host_threads *h, const op_result *r);
/* Adds a time in which nothing ran to its causes. `launcher` is the row that launched what ran next;
 * -1: nobody knows. False: no memory. */
bool op_host_threads_add_idle(const op_host_threads *h, int32_t launcher, int64_t from_ns,
                              int64_t to_ns, op_device_span *out);
void op_host_threads_free(op_host_threads *h);

#endif
