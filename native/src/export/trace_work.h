/* Device data as members of an event's "args", each preceded by a comma; and the device properties. */
#ifndef OP_TRACE_WORK_H
#define OP_TRACE_WORK_H

#include "export/trace_writer.h"

void op_trace_put_work(op_trace *t, uint32_t row);
void op_trace_put_call(op_trace *t, uint64_t row);
void op_trace_put_devices(op_trace *t);

#endif
