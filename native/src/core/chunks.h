/* The chunks that threads record into. Every function needs the collector's lock. */
#ifndef OP_CHUNKS_H
#define OP_CHUNKS_H

#include "core/record.h"

/* Gives a thread whose chunk is full another one. Writing a chunk to disk drops the lock for a while.
 * False: there is no room, or the window was closed meanwhile. */
bool op_chunks_refill(op_thread *t);
/* Keeps the thread's chunk for the thread's new window. */
void op_chunks_reuse(op_thread *t);
/* Moves the thread's chunk to the full ones. */
void op_chunks_put_away(op_thread *t);
void op_chunks_have_none(op_thread *t);
/* Drops the chunks of earlier windows that the thread had pinned. */
void op_chunks_drop_stale(const op_thread *t);
/* Returns chunks of windows up to this one that have no open records. A pinned chunk waits for its
 * owner's next window or exit. */
void op_chunks_release(uint32_t window);

#endif
