/* From buffers to records, while a window is open: on a thread of its own, so that the buffers suffice
 * for long windows; what is left, by who stops. */
#ifndef OP_CUPTI_DRAIN_H
#define OP_CUPTI_DRAIN_H

#include "cuda/cuda_window.h"

void op_cupti_drain_open(const op_cupti_library *library, const op_cupti_clock *clock,
                         uint64_t most_bytes);
void op_cupti_drain_clear(void);        /* forgets the records, and what came since the last window */
void op_cupti_drain_until(uint64_t ns); /* calls that begin later, by CUPTI's clock, are our own */
void op_cupti_drain_start(void);
void op_cupti_drain_join(void);
void op_cupti_drain_now(void);
/* Whether, by the records so far, more captures of streams have begun than ended. */
bool op_cupti_drain_is_capturing(void);
/* The last of them; CUPTI itself had no room for so many. */
void op_cupti_drain_stop(uint64_t dropped);

/* What begins from here on belongs to no window, until none of the reasons (bits) is left. */
void op_cupti_drain_pause(unsigned why, bool paused);
/* With the lock held. */
const op_cuda_records *op_cupti_drain_records(const op_cuda_pause **pauses, uint32_t *pause_count);
void op_cupti_drain_lock(void); /* the records, and for fork */
void op_cupti_drain_unlock(void);

#endif
