/* The calls and torch modules that an event ran in. */
#ifndef OP_TRACE_MODULES_H
#define OP_TRACE_MODULES_H

#include "export/trace_writer.h"

bool op_trace_find_calls(op_trace *t);
void op_trace_put_modules(op_trace *t, uint64_t row);

#endif
