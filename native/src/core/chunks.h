/* The room that threads record into. All with the collector's lock held. */
#ifndef OP_CHUNKS_H
#define OP_CHUNKS_H

#include "core/record.h"

/* Another chunk for a thread whose own is full. Writing one to the disk drops the lock for a while;
 * false: there is no room, or the window was closed meanwhile. */
bool op_chunks_refill(op_thread *t);
/* The chunk that it has goes on into the thread's window. */
void op_chunks_reuse(op_thread *t);
/* The thread's chunk goes to the full ones. */
void op_chunks_put_away(op_thread *t);
void op_chunks_have_none(op_thread *t);
/* Chunks of windows gone by that the thread had pinned. */
void op_chunks_drop_stale(const op_thread *t);
/* Chunks of a window gone by that nobody can touch any more go back. A pinned one waits for its
 * living owner's next window, or its exit. */
void op_chunks_release(uint32_t window);

#endif
