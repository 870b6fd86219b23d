/* What devices did for each row of the key averages: sums per row and step. */
#ifndef OP_DEVICE_USE_H
#define OP_DEVICE_USE_H

#include "core/event.h"
#include "result/result.h"

#include <stdbool.h>

/* Where a stream's capture began or ended, and how many are open from there on. */
typedef struct op_capture {
    int64_t at;
    int32_t open;
} op_capture;

/* The sums in the making. A group gets a place among them when something is first added to it. */
typedef struct op_device_sums {
    const op_result *r;
    uint32_t *of_group; /* place; 0: none */
    uint32_t *noted;    /* by group: the last addition, to add nothing twice */
    uint32_t thing;
    int64_t *values;
    uint32_t count, capacity, columns;
    uint32_t *launchers; /* by group, see op_device_use */
    uint8_t *roles;      /* by name: 1 + op_call_role; 0: not determined yet */
    uint8_t *calls;      /* by row: flags of a call */
    op_capture *captures;
    uint32_t capture_count;
    int32_t captures_before; /* captures already open when the window began */
    uint64_t unmatched_launches, unmatched_kernels, untimed, unsized, undirected;
} op_device_sums;

typedef struct op_amount {
    int measure;
    int64_t amount;
} op_amount;

/* Adds to the whole, or to the rows of an event and of those around it. False: no memory. */
void op_device_sums_add_whole(op_device_sums *s, int32_t step, const op_amount *amounts, int count);
bool op_device_sums_add(op_device_sums *s, int32_t row, int32_t step, const op_amount *amounts,
                        int count);
static inline int64_t *op_device_sums_at(const op_device_sums *s, uint32_t place, int measure,
                                         int32_t step) {
    uint32_t column = step < 0 ? s->columns - 1 : (uint32_t)step;
    return &s->values[((uint64_t)place * OP_USE_MEASURES + (uint32_t)measure) * s->columns + column];
}
/* The step of device work: that of its launch, if known. */
int32_t op_device_step(const op_columns *c, uint64_t row);
/* The row charged with work: an op, or the call that launched it; -1: none. */
int32_t op_device_charged(const op_columns *c, uint64_t row);
/* The runtime call that `call` is part of, or `call` itself. */
int32_t op_device_outermost(op_device_sums *s, int32_t call);
bool op_is_launch(op_device_sums *s, uint64_t row); /* of work that was recorded */

/* device_busy.c. Call them once all places exist. OP_OK or OP_ENOMEM. */
int op_device_busy_add(op_device_sums *s);
int op_device_queue_add(op_device_sums *s);

/* device_launchers.c; NULL: no memory. */
uint32_t *op_device_launchers(const op_result *r);

bool op_uses_devices(const op_columns *columns);
void op_device_use_forget(op_result *result);

#endif
