/* Turns buffers into records while a window is open, on its own thread so that the buffers suffice for
 * long windows. Whoever stops the window drains the rest. */
#ifndef OP_CUPTI_DRAIN_H
#define OP_CUPTI_DRAIN_H

#include "cuda/cuda_window.h"

void op_cupti_drain_open(const op_cupti_library *library, const op_cupti_clock *clock,
                         uint64_t most_bytes);
void op_cupti_drain_clear(void);        /* discards the records, and buffers since the last window */
void op_cupti_drain_until(uint64_t ns); /* later calls, by CUPTI's clock, are our own */
void op_cupti_drain_start(void);
void op_cupti_drain_join(void);
void op_cupti_drain_now(void);
/* Whether the records so far have more begins than ends of stream captures. */
bool op_cupti_drain_is_capturing(void);
/* Drains the rest; CUPTI itself dropped `dropped` records. */
void op_cupti_drain_stop(uint64_t dropped);

/* Until no reason (bit) is left, whatever begins belongs to no window. */
void op_cupti_drain_pause(unsigned why, bool paused);
/* Needs the lock. */
const op_cuda_records *op_cupti_drain_records(const op_cuda_pause **pauses, uint32_t *pause_count);
void op_cupti_drain_lock(void); /* of the records; also for fork */
void op_cupti_drain_unlock(void);

#endif
