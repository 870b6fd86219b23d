/* What a call of a device's runtime or driver does, and which way a copy went. Both follow from the
 * names, which Kineto, CUPTI and rocprof share. */
#ifndef OP_DEVICE_CALLS_H
#define OP_DEVICE_CALLS_H

#include "opprof.h"

#include <stdbool.h>

typedef enum op_call_role {
    OP_CALL_OTHER,
    OP_CALL_LAUNCH, /* of a kernel or a graph */
    OP_CALL_SYNC,   /* the host waits for the device */
    OP_CALL_COPY,   /* a copy that returns when it is done: also a wait if it involves the host */
    OP_CALL_BEGIN_CAPTURE, /* until the capture ends, launches go into a graph and run nothing */
    OP_CALL_END_CAPTURE
} op_call_role;

op_call_role op_call_role_of(const char *name, size_t length);

/* Direction of a copy, in the order of op_use_of_device; OP_COPY_UNKNOWN if its name does not say. */
typedef enum op_copy_direction {
    OP_COPY_HTOD,
    OP_COPY_DTOH,
    OP_COPY_DTOD,
    OP_COPY_PTOP,
    OP_COPY_HTOH,
    OP_COPY_UNKNOWN
} op_copy_direction;

op_copy_direction op_copy_direction_of(const char *name, size_t length);
/* Bytes that a recorded copy moved; -1: unknown. */
int64_t op_copy_bytes(const op_result *result, uint64_t row);

#endif
