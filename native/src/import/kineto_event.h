/* One event of a trace. */
#ifndef OP_KINETO_EVENT_H
#define OP_KINETO_EVENT_H

#include "import/trace_reader.h"

/* At the `{` of an event. Returns an enum op_scan_status; `failed` has the event's own error. */
int op_trace_read_event(op_trace_reader *r);

#endif
