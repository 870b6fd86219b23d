/* What reading a trace in Kineto's format needs while it lasts. It goes from JSON text to events
 * (kineto_in.c), and from events to columns (kineto_rows.c). */
#ifndef OP_TRACE_READER_H
#define OP_TRACE_READER_H

#include "core/error.h"
#include "core/names.h"
#include "import/read_event.h"
#include "result/imported.h"

#define OP_MOST_PENDING 64 /* async events begun and not ended; each end looks through them */

enum op_trace_state { AT_START, IN_OBJECT, IN_EVENTS, AT_END };

struct op_trace_reader {
    op_scan scan; /* over `buffer` */
    op_buffer buffer;
    uint64_t passed; /* bytes of the file before `buffer` */
    size_t wait_for; /* bytes in `buffer` before it is worth another try */
    enum op_trace_state state;
    bool first, is_list, has_events;
    int failed; /* what every later call returns */
    uint64_t max_events, max_bytes;
    op_imported *imported;
    op_read_events read;
    op_buffer words;       /* argument blocks */
    op_buffer blocks;      /* by the id of the text of shapes: its block, a word each */
    op_buffer labels;      /* op_lane each: what the file calls threads */
    op_buffer name;        /* unescaped */
    op_string_table names; /* of events: of calls, and others */
    op_buffer name_ids;    /* by the id of such a text less 1: the name's, a word each */
    op_name_loans loans;   /* of these */
    uint32_t *slots;       /* lanes + 1 by hash */
    uint32_t lane_capacity, slot_mask;
    uint64_t *pending; /* indexes of async events, the latest last */
    uint32_t pending_count;
};

static inline int op_trace_no_memory(void) {
    return op_error_set(OP_ENOMEM, "no memory to read the trace");
}

#endif
