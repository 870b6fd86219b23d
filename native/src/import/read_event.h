/* The events of a trace, between text and columns. */
#ifndef OP_READ_EVENT_H
#define OP_READ_EVENT_H

#include <stdbool.h>
#include <stdint.h>

/* An event as read; members without a column are extras. */
typedef struct op_read_event {
    int64_t start_ns;    /* since the file's time 0 */
    int64_t duration_ns; /* -1: begun (ph b) but not ended */
    int64_t sequence_nr; /* of a device event: its External id */
    int64_t link;        /* of a call or device event: correlation; of an op: External id; -1: none */
    uint32_t name, lane, args, extras, forward_thread;
    uint8_t kind, category, flags, scope;
} op_read_event;

typedef struct op_read_events {
    op_read_event *events;
    uint64_t count, capacity;
    int64_t first_ns, last_ns;     /* of the window, since the file's time 0 */
    bool has_xpu, has_privateuse1; /* devices whose events have CUDA's categories */
    bool are_open_at_end;          /* unfinished events are open at the end, whatever end they have */
} op_read_events;

#endif
