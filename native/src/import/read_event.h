/* The events of a trace, between its text and the columns. */
#ifndef OP_READ_EVENT_H
#define OP_READ_EVENT_H

#include <stdbool.h>
#include <stdint.h>

/* An event as read; its members that the columns have no place for are extras. */
typedef struct op_read_event {
    int64_t start_ns;    /* from the file's time 0 */
    int64_t duration_ns; /* -1: begun (ph b) and not ended */
    int64_t sequence_nr; /* of a device's event: its External id */
    int64_t link; /* correlation of a call or of a device's event, External id of an op; -1: none */
    uint32_t name, lane, args, extras, forward_thread;
    uint8_t kind, category, flags, scope;
} op_read_event;

typedef struct op_read_events {
    op_read_event *events;
    uint64_t count, capacity;
    int64_t first_ns, last_ns;     /* of the window, from the file's time 0 */
    bool has_xpu, has_privateuse1; /* whose devices' events have CUDA's categories */
    bool are_open_at_end;          /* the unfinished ones, whatever end they were given */
} op_read_events;

#endif
