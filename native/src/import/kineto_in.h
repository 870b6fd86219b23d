/* Reading a trace in Kineto's format: from JSON text to events (kineto_in.c), from events to columns
 * (kineto_rows.c), and which host event launched what (correlate.c). */
#ifndef OP_KINETO_IN_H
#define OP_KINETO_IN_H

#include "core/event.h"
#include "result/imported.h"
#include "result/result.h"

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
} op_read_events;

/* Writes into `link` of each device's event 1 + the index of what launched it, 0 for none known. The
 * events are in the order of the columns, so that the answer does not depend on that of the file. */
int op_correlate(op_read_events *read);
/* Fills in the columns, threads and steps of a result whose `imported` and `args` are there. */
int op_rows_build(op_read_events *read, op_result *result);
/* Gives the threads of a result torch's numbers, as far as its backward ops tell them. */
int op_forward_threads_find(op_result *result);

/* The arguments of one event (args_in.c). */
typedef struct op_read_args {
    int64_t correlation, external_id, sequence_nr; /* -1: none */
    uint32_t forward_thread;
    bool is_unfinished;
    int64_t address, bytes, allocated, reserved;
    int64_t device_type, device_index;
    op_span dims; /* length 0: none */
} op_read_args;

/* Numbers the keys it looks for; before any other text is kept. */
int op_args_prepare(op_imported *imported);
/* Reads a JSON object, and keeps all of its members as extras. */
int op_args_read(op_imported *imported, const op_span *object, bool has_constant, op_read_args *out);
/* Adds an argument block to `words`: `*at` is 1 + its offset, 0 where it would be too long. */
int op_args_put_shapes(op_buffer *words, const op_span *dims, uint32_t *at);
int op_args_put_memory(op_buffer *words, const op_read_args *args, uint32_t *at);

#endif
