/* State while a trace in Kineto's format is read: from JSON text to events (kineto_in.c), then to
 * columns (kineto_rows.c). */
#ifndef OP_TRACE_READER_H
#define OP_TRACE_READER_H

#include "core/error.h"
#include "core/key_map.h"
#include "core/names.h"
#include "import/read_event.h"
#include "result/imported.h"

#define OP_MOST_PENDING 64 /* open async events; each end searches them */

enum op_trace_state { AT_START, IN_OBJECT, IN_EVENTS, AT_END };

struct op_trace_reader {
    op_scan scan; /* over `buffer` */
    op_buffer buffer;
    uint64_t passed; /* bytes of the file before `buffer` */
    size_t wait_for; /* bytes in `buffer` before the next try */
    enum op_trace_state state;
    bool first, is_list, has_events;
    int failed; /* returned by every later call */
    uint64_t max_events, max_bytes;
    op_imported *imported;
    op_read_events read;
    op_buffer words;       /* argument blocks */
    op_buffer blocks;      /* by id of a shapes text: its block, one word each */
    op_buffer labels;      /* an op_lane each: the file's names of threads */
    op_buffer name;        /* unescaped */
    op_string_table names; /* of events, calls apart from others */
    op_buffer name_ids;    /* by id of such a text minus 1: the name's id, one word each */
    op_name_loans loans;   /* of these */
    op_key_map lanes;      /* lane + 1, by process and thread, and by type of device */
    uint32_t lane_capacity;
    uint64_t *pending; /* indexes of open async events, the latest last */
    uint32_t pending_count;
};

static inline int op_trace_no_memory(void) {
    return op_error_set(OP_ENOMEM, "no memory to read the trace");
}

#endif
