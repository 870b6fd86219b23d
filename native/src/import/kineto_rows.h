/* Turns the events of a trace into columns. */
#ifndef OP_KINETO_ROWS_H
#define OP_KINETO_ROWS_H

#include "import/read_event.h"
#include "result/result.h"

/* Fills in columns and steps, and threads if there are none yet. The result must already have
 * `imported` and `args`. */
int op_rows_build(op_read_events *read, op_result *result);

#endif
