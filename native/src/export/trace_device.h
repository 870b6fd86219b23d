/* Device events of a trace. */
#ifndef OP_TRACE_DEVICE_H
#define OP_TRACE_DEVICE_H

#include "export/trace_writer.h"

bool op_trace_note_launches(op_trace *t);
void op_trace_put_device_event(op_trace *t, const op_lane_slice *slice);

#endif
