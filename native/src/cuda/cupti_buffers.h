/* The memory that CUPTI writes records to: handed out when it asks, given back full, read, emptied and
 * handed out again.
 *
 * CUPTI asks and gives back while it holds locks of its own, often on the program's threads: there,
 * one short lock is taken, and nothing else waits. */
#ifndef OP_CUPTI_BUFFERS_H
#define OP_CUPTI_BUFFERS_H

#include "cuda/cupti_api.h"

typedef struct op_cupti_buffer {
    struct op_cupti_buffer *next;
    size_t valid;  /* bytes with records */
    bool over;     /* handed out past the limit: what is in it is counted, and dropped */
    bool stale;    /* that CUPTI has had since before the window */
    uint8_t *data; /* zeros before it is handed out */
} op_cupti_buffer;

#define OP_CUPTI_BUFFER_BYTES (1ull << 20)
#define OP_CUPTI_BUFFERS_BYTES (64ull << 20) /* in use at once */

void op_cupti_buffers_open(
    const op_cupti_library *library);      /* older ones must not be refused a buffer */
void op_cupti_buffers_limit(size_t bytes); /* 0: OP_CUPTI_BUFFERS_BYTES */
/* A window begins: some are made ready before they are asked for. */
void op_cupti_buffers_prepare(void);
/* Until much was given back, or somebody wakes it, or so much time has passed. */
void op_cupti_buffers_wait(uint64_t timeout_ns);
void op_cupti_buffers_wake(bool awake); /* true: nobody waits until it is false again */

void op_cupti_buffers_request(uint8_t **data, size_t *size, size_t *most_records);
void op_cupti_buffers_complete(void *context, uint32_t stream, uint8_t *data, size_t size,
                               size_t valid);

/* The longest given back that was not read yet; NULL: none. */
op_cupti_buffer *op_cupti_buffers_take(void);
void op_cupti_buffers_recycle(op_cupti_buffer *buffer); /* once it is read; makes it zeros again */
/* Records in buffers past the limit, since the last call. */
uint64_t op_cupti_buffers_dropped(void);
/* Buffers of the window that CUPTI has and has written to: after a forced flush, what it gave to
 * somebody else. */
uint32_t op_cupti_buffers_missing(void);

void op_cupti_buffers_lock(void); /* for fork */
void op_cupti_buffers_unlock(void);
void op_cupti_buffers_after_fork(void); /* in the child: it still counts waiters that do not exist */

#endif
