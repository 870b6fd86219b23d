/* Device work, as time of the ops that launched it. */
#ifndef OP_DEVICE_TIME_H
#define OP_DEVICE_TIME_H

#include "core/event.h"
#include "opprof.h"

#include <stdbool.h>

/* By row, nanoseconds; for a device event, its own duration in both. NULL: nothing ran on a device. */
typedef struct op_device_time {
    int64_t *total_ns; /* launched in the event */
    int64_t *self_ns;  /* launched by it, but not by an op or range inside it */
} op_device_time;

int op_device_time_sum(const op_result *r, op_device_time *out);
void op_device_time_free(op_device_time *times);

/* Whether ops are charged with it: a kernel, a copy or a fill. */
bool op_is_device_work(uint8_t kind);
/* The op or range that is charged for the work of `launcher`; the call itself if it is in none. */
int32_t op_device_owner(const op_columns *c, int32_t launcher);

static inline bool op_is_on_device(uint8_t kind) { return kind >= OP_KERNEL; }

/* Torch's number of the type of device that an event ran on; 0: the host. */
static inline int32_t op_device_type_of(const op_columns *c, const op_thread_info *threads,
                                        uint64_t row) {
    return op_is_on_device(c->kind[row]) ? threads[c->thread[row]].device_type : 0;
}

#endif
