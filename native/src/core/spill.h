/* Moves full chunks to a file with write(2) when the pool runs short. */
#ifndef OP_SPILL_H
#define OP_SPILL_H

#include "core/event.h"

#include <stdbool.h>

/* A chunk in the file: header, events, a padding word if the number of argument words is odd, which
 * aligns the next header, then the argument words. */
static inline uint64_t op_spilled_bytes(const op_chunk *c) {
    return sizeof *c + c->count * sizeof(op_event) + (c->arg_words + 1) / 2 * 2 * sizeof(uint32_t);
}
static inline const uint32_t *op_spilled_args(const op_chunk *c) {
    return (const uint32_t *)c + op_spilled_bytes(c) / sizeof(uint32_t) - c->arg_words;
}

/* All need the collector's lock, which they drop while they write or wait. */
bool op_spill_one(void);              /* true: it wrote a chunk or waited for others, so try again */
op_chunk *op_spill_take_oldest(void); /* of the window, without open records; NULL: none */
void op_spill_start_drain(void);
/* Afterwards no drain thread runs: if one did, the user's os.fork() would warn. */
void op_spill_join_drain(void);
void op_wait_until_unlisted(int tid); /* for a joined thread; needs no lock */
void op_spill_pause(void);            /* nobody writes from its return until op_spill_resume() */
void op_spill_resume(void);
void op_spill_reset(void);
bool op_spill_file(void); /* makes or reopens the file if necessary; false: it could not */
void op_spill_close(void);
void op_spill_forget(void); /* in the child, after a fork */

#endif
