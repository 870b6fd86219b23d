/* The threads and streams of a trace, found by their events' pid and tid. */
#ifndef OP_TRACE_LANES_H
#define OP_TRACE_LANES_H

#include "import/trace_reader.h"

/* The lane of a pid and tid, created if necessary. */
int op_trace_find_lane(op_trace_reader *r, const op_span *pid, const op_span *tid, uint8_t device_type,
                       uint32_t *out);
/* The file's name of a thread; `args` is JSON. */
int op_trace_label_lane(op_trace_reader *r, const op_span *pid, const op_span *tid,
                        const op_span *args);
void op_trace_apply_labels(op_trace_reader *r);

#endif
