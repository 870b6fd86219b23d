/* Tracks of events: their ids, names and order. */
#ifndef OP_TRACE_LABELS_H
#define OP_TRACE_LABELS_H

#include "export/trace_writer.h"

bool op_trace_name_places(op_trace *t);
op_place op_trace_stream(const op_thread_info *stream, uint32_t track);
void op_trace_put_labels(op_trace *t);

#endif
