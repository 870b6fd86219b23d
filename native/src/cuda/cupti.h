/* CUPTI as a source of windows: what it records between their start and their stop.
 *
 * Three locks, in order: that of who starts and stops (which may wait for CUPTI's own); the
 * collector's; that of the records, and that of the buffers, which wait for nothing. CUPTI is never
 * called with the collector's lock held: a thread inside CUPTI may allocate, and be recorded for it. */
#ifndef OP_CUPTI_H
#define OP_CUPTI_H

#include "cuda/cuda_window.h"

/* Before the window opens. Whether something was started. */
bool op_cupti_window_start(void);
/* When the devices have done what they were given; then all of it is on record. */
void op_cupti_window_stop(void);
void op_cupti_window_update(void); /* what is complete by now is on record, and recording goes on */
void op_cupti_window_forget(void); /* the records of a window that was stopped */
/* What begins from here on, and until it is resumed for the same reason, belongs to no window. */
enum op_cupti_pause { OP_CUPTI_WITH_ALL = 1, OP_CUPTI_ALONE = 2 };
void op_cupti_window_pause(enum op_cupti_pause why, bool paused);

/* NULL: none were asked for, or it could not be started. Until they are unlocked they stay as they are.
 */
const op_cuda_records *op_cupti_records_lock(const op_cuda_pause **pauses, uint32_t *pause_count);
void op_cupti_records_unlock(void);
struct op_cuda_device *op_cupti_devices(uint32_t *count); /* the caller frees it; NULL: not known */
uint32_t op_cupti_recorded(void);                         /* enum op_cuda_recorded */

void op_cupti_fork_announced(void);
void op_cupti_before_fork(void);
void op_cupti_after_fork_in_parent(void);
void op_cupti_after_fork_in_child(void);

#endif
