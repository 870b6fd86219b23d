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
