/* Which thread of a trace has which of torch's numbers. */
#ifndef OP_FORWARD_THREADS_H
#define OP_FORWARD_THREADS_H

#include "result/result.h"

/* Gives the threads of a result torch's numbers, as far as its backward ops tell them. */
int op_forward_threads_find(op_result *result);

#endif
