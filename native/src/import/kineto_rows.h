/* From the events of a trace to columns. */
#ifndef OP_KINETO_ROWS_H
#define OP_KINETO_ROWS_H

#include "import/read_event.h"
#include "result/result.h"

/* Fills in the columns, steps and, where they are not there, threads of a result whose `imported` and
 * `args` are there. */
int op_rows_build(op_read_events *read, op_result *result);

#endif
