/* Trace files: results written as one, and read from one. */
#ifndef OPPROF_TRACE_H
#define OPPROF_TRACE_H

#include "opprof_result.h"

#ifdef __cplusplus
extern "C" {
#endif

/* cffi: begin */
/* Chrome trace events. `metadata` is JSON members ("a": 1, "b": 2) or "". */
int op_result_write_trace(const op_result *result, int fd, const char *metadata,
                          const char *trace_name);

/* A trace in Kineto's format, fed in pieces of any size. Numbers of 0: no limit but the format's own.
 * OP_EFORMAT names the byte that is wrong, OP_ELIMIT the limit that was met; then nothing more can
 * be fed. The result is the caller's. */
typedef struct op_trace_reader op_trace_reader;
int op_trace_open(op_trace_reader **out, uint64_t max_events, uint64_t max_bytes);
int op_trace_feed(op_trace_reader *reader, const char *bytes, uint64_t count);
int op_trace_finish(op_trace_reader *reader, op_result **out);
void op_trace_close(op_trace_reader *reader);
/* Of such a result, as JSON: the members of the file's object without its events, and the members
 * of an event's args. Both lack their braces; the second belongs to the result until the next call. */
const char *op_result_members(const op_result *result, uint64_t *length);
int op_result_event_args(op_result *result, uint64_t row, const char **text, uint64_t *length);
/* Events that the columns do not hold, kept as they stood. */
uint64_t op_result_other_events(const op_result *result);

/* Events that a program lists, as torch.profiler's results do, nested by their times as those of a
 * file. */
typedef struct op_listed_event {
    int64_t start_ns, end_ns; /* from the window's start */
    int64_t sequence_nr;      /* -1: none */
    int64_t link; /* number of an op or a call; of a device's event the number of its cause; -1: none */
    int64_t bytes; /* of an event of kind OP_MEMORY */
    int64_t flops; /* with what runs inside it; 0: not told */
    uint32_t name; /* 1 + index of a text; `shapes` too, whose text is a JSON list, or 0 */
    uint32_t shapes;
    uint32_t thread; /* index */
    uint32_t forward_thread;
    int32_t device_type, device_index; /* of memory */
    uint8_t kind, scope, flags;
} op_listed_event;
typedef struct op_event_list {
    const op_listed_event *events;
    uint64_t count;
    const char *const *texts; /* UTF-8 */
    const uint32_t *text_lengths;
    const uint32_t *text_groups; /* of a name 1 + index of the text, before it, under which its events
                                  * are summed up; 0: of none */
    uint32_t text_count;
    const op_thread_info *threads;
    uint32_t thread_count;
    int64_t window_ns; /* the window's start, since the epoch */
} op_event_list;
/* The result is the caller's; `order` gets the index of the event of each row. */
int op_events_read(const op_event_list *list, uint32_t *order, op_result **out);

/* Results of such traces as one trace, side by side. How the events of one name are marked: `label`
 * follows their name, `category` their category; `args` is a member of their args. "": nothing. */
typedef struct op_trace_mark {
    const char *label, *category, *color, *args;
} op_trace_mark;
typedef struct op_trace_side {
    const op_result *result;
    const uint32_t *mark_of; /* by op_trace_mark_slot(): 1 + index of the mark, 0: none */
    uint64_t mark_slots;
    const op_trace_mark *marks;
    const int64_t *from_ns, *to_ns; /* what time becomes what; at least one, the earliest first */
    uint64_t points;
    const int64_t *pids, *tids; /* by thread */
} op_trace_side;
/* Where an event's mark is found: by its name, whether it ran on a device, and is an annotation. */
uint64_t op_trace_mark_slot(uint32_t name, int on_device, int is_annotation);
/* `members` is as `metadata` above; `events` are more events, with commas between, or "". */
int op_trace_write_sides(const op_trace_side *sides, uint32_t count, int fd, const char *members,
                         const char *events);
/* cffi: end */

#ifdef __cplusplus
}
#endif
#endif
