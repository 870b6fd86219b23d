/* CUPTI as a source of windows: what it records between their start and stop.
 * Lock order: that of start and stop (which may wait for CUPTI's own), the collector's, then those of
 * records and of buffers, which wait for nothing. CUPTI is never called with the collector's lock held,
 * because a thread inside CUPTI may allocate and be recorded. */
#ifndef OP_CUPTI_H
#define OP_CUPTI_H

#include "cuda/cuda_window.h"

/* Call it before the window opens. Returns whether recording started. */
bool op_cupti_window_start(void);
/* Waits for the devices, then collects everything. */
void op_cupti_window_stop(void);
void op_cupti_window_update(void); /* collects what is complete; recording continues */
void op_cupti_window_forget(void); /* discards the records of a stopped window */
/* Until resumed for the same reason, whatever begins belongs to no window. */
enum op_cupti_pause { OP_CUPTI_WITH_ALL = 1, OP_CUPTI_ALONE = 2 };
void op_cupti_window_pause(enum op_cupti_pause why, bool paused);

/* NULL: none requested, or recording could not start. They stay unchanged until they are unlocked. */
const op_cuda_records *op_cupti_records_lock(const op_cuda_pause **pauses, uint32_t *pause_count);
void op_cupti_records_unlock(void);
struct op_cuda_device *op_cupti_devices(uint32_t *count); /* the caller frees it; NULL: unknown */
uint32_t op_cupti_recorded(void);                         /* enum op_cuda_recorded */

void op_cupti_fork_announced(void);
void op_cupti_before_fork(void);
void op_cupti_lock_for_fork(void); /* with the collector's lock held */
void op_cupti_after_fork_in_parent(void);
void op_cupti_after_fork_in_child(void);

#endif
