/* The buffers that CUPTI fills with records: handed out on request, returned full, read, cleared and
 * reused.
 * CUPTI requests and returns them with locks of its own held, often on the program's threads. There
 * only one short lock is taken, and nothing else waits. */
#ifndef OP_CUPTI_BUFFERS_H
#define OP_CUPTI_BUFFERS_H

#include "cuda/cupti_api.h"

typedef struct op_cupti_buffer {
    struct op_cupti_buffer *next;
    size_t valid;  /* bytes with records */
    bool over;     /* handed out past the limit: its records are counted and dropped */
    bool stale;    /* CUPTI has held it since before the window */
    uint8_t *data; /* zeroed when handed out */
} op_cupti_buffer;

#define OP_CUPTI_BUFFER_BYTES (1ull << 20)
#define OP_CUPTI_BUFFERS_BYTES (64ull << 20) /* in use at once */

void op_cupti_buffers_open(
    const op_cupti_library *library);      /* older releases must not be refused a buffer */
void op_cupti_buffers_limit(size_t bytes); /* 0: OP_CUPTI_BUFFERS_BYTES */
/* Prepares some buffers when a window begins. */
void op_cupti_buffers_prepare(void);
/* Waits until many buffers were returned, op_cupti_buffers_wake(), or the timeout. */
void op_cupti_buffers_wait(uint64_t timeout_ns);
void op_cupti_buffers_wake(bool awake); /* true: nobody waits until it is false again */

void op_cupti_buffers_request(uint8_t **data, size_t *size, size_t *most_records);
void op_cupti_buffers_complete(void *context, uint32_t stream, uint8_t *data, size_t size,
                               size_t valid);

/* The oldest returned buffer that has not been read; NULL: none. */
op_cupti_buffer *op_cupti_buffers_take(void);
void op_cupti_buffers_recycle(op_cupti_buffer *buffer); /* clears it; after reading */
/* Records in buffers past the limit, since the last call. */
uint64_t op_cupti_buffers_dropped(void);
/* Buffers of the window that CUPTI still holds and has written to. After a forced flush, these went to
 * another client. */
uint32_t op_cupti_buffers_missing(void);

void op_cupti_buffers_lock(void); /* for fork */
void op_cupti_buffers_unlock(void);
void op_cupti_buffers_after_fork(void); /* in the child, where the counted waiters do not exist */

#endif
