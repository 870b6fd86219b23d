/* Trace files: write results to them, and read them. */
#ifndef OPPROF_TRACE_H
#define OPPROF_TRACE_H

#include "opprof_result.h"

#ifdef __cplusplus
extern "C" {
#endif

/* cffi: begin */
/* Chrome trace events. `metadata` is JSON members ("a": 1, "b": 2), or "". */
int op_result_write_trace(const op_result *result, int fd, const char *metadata,
                          const char *trace_name);

/* Reads a trace in Kineto's format, fed in pieces of any size. Limits of 0 leave only the format's own.
 * OP_EFORMAT names the invalid byte, OP_ELIMIT the exceeded limit; then feed no more. The caller owns
 * the result. */
typedef struct op_trace_reader op_trace_reader;
int op_trace_open(op_trace_reader **out, uint64_t max_events, uint64_t max_bytes);
int op_trace_feed(op_trace_reader *reader, const char *bytes, uint64_t count);
int op_trace_finish(op_trace_reader *reader, op_result **out);
void op_trace_close(op_trace_reader *reader);
/* JSON members of an imported result, without braces: those of the file's object except its events, and
 * those of an event's args. The result owns the second until the next call. */
const char *op_result_members(const op_result *result, uint64_t *length);
int op_result_event_args(op_result *result, uint64_t row, const char **text, uint64_t *length);
/* Events that the columns cannot hold, kept unchanged; and those of them that look like work. */
uint64_t op_result_other_events(const op_result *result);
uint64_t op_result_unread_events(const op_result *result);

/* Events listed by a program, as torch.profiler's results do; nested by time like those of a file. */
typedef struct op_listed_event {
    int64_t start_ns, end_ns; /* from the window's start */
    int64_t sequence_nr;      /* -1: none */
    int64_t link;  /* number of an op or call; for a device event, the number of its cause; -1: none */
    int64_t bytes; /* of an event of kind OP_MEMORY */
    int64_t flops; /* including what runs inside it; 0: unknown */
    uint32_t name; /* 1 + index of a text; so is `shapes`, whose text is a JSON list, or 0 */
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
    const uint32_t *text_groups; /* by text: 1 + index of an earlier text, the name under which its
                                    events are summed up; 0: none */
    uint32_t text_count;
    const op_thread_info *threads;
    uint32_t thread_count;
    int64_t window_ns; /* start of the window, since the epoch */
} op_event_list;
/* The caller owns the result; `order` receives the index of each row's event. */
int op_events_read(const op_event_list *list, uint32_t *order, op_result **out);

/* Several imported results as one trace, side by side. A mark applies to the events of one row of the
 * groups: `label` is appended to the name, `category` to the category; `args` is a member of their
 * args;
 * "": none. */
typedef struct op_trace_mark {
    const char *label, *category, *color, *args;
} op_trace_mark;
typedef struct op_trace_side {
    const op_result *result;
    const uint32_t *mark_of; /* by op_trace_mark_slot(): 1 + index of the mark; 0: none */
    uint64_t mark_slots;
    const op_trace_mark *marks;
    const int64_t *from_ns, *to_ns; /* maps times to times; at least one point, earliest first */
    uint64_t points;
    const int64_t *pids, *tids; /* by thread */
} op_trace_side;
/* Index of an event's mark, by the group of its name, whether it ran on a device and whether it is an
 * annotation. */
uint64_t op_trace_mark_slot(uint32_t name, int on_device, int is_annotation);
/* `members` is like `metadata` above; `events` are further events, separated by commas, or "". */
int op_trace_write_sides(const op_trace_side *sides, uint32_t count, int fd, const char *members,
                         const char *events);
/* cffi: end */

#ifdef __cplusplus
}
#endif
#endif
