/* Full chunks, and where they go when the pool runs short: a file written with write(2). */
#ifndef OP_SPILL_H
#define OP_SPILL_H

#include "core/event.h"

#include <stdbool.h>

/* A chunk in the file: header, events, a word of padding where the argument words are odd in
 * number, so that the next header is aligned, argument words. */
static inline uint64_t op_spilled_bytes(const op_chunk *c) {
    return sizeof *c + c->count * sizeof(op_event) + (c->arg_words + 1) / 2 * 2 * sizeof(uint32_t);
}
static inline const uint32_t *op_spilled_args(const op_chunk *c) {
    return (const uint32_t *)c + op_spilled_bytes(c) / sizeof(uint32_t) - c->arg_words;
}

/* All with the collector's lock held, which they drop while they write or wait. */
bool op_spill_one(void);              /* true: wrote a chunk, or waited for others, so try again */
op_chunk *op_spill_take_oldest(void); /* of the window, and that nothing open lies in; NULL: none */
void op_spill_start_drain(void);
/* Afterwards no drain thread runs: one left running makes the user's os.fork() warn. */
void op_spill_join_drain(void);
void op_wait_until_unlisted(int tid); /* a thread that was joined; needs no lock */
void op_spill_pause(void);            /* from its return to op_spill_resume() nobody writes */
void op_spill_resume(void);
void op_spill_reset(void);
bool op_spill_file(void); /* its descriptor is of it, if need be once more; false: there is no file */
void op_spill_close(void);
void op_spill_forget(void); /* after a fork, in the child */

#endif
