/* Members of an event's "args", each followed by a comma. */
#ifndef OP_TRACE_ARGS_H
#define OP_TRACE_ARGS_H

#include "export/trace_writer.h"

void op_trace_put_args(op_trace *t, uint64_t row); /* Input Dims and similar, ranges' values */
void op_trace_put_counters(op_trace *t, uint64_t row);
void op_trace_put_stack(op_trace *t, uint64_t row);  /* C++ */
void op_trace_put_memory(op_trace *t, uint64_t row); /* for an event of kind OP_MEMORY */

#endif
