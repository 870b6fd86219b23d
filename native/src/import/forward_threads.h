/* Matches the threads of a trace to torch's thread numbers. */
#ifndef OP_FORWARD_THREADS_H
#define OP_FORWARD_THREADS_H

#include "result/result.h"

/* Sets torch's numbers of a result's threads, as far as its backward ops show them. */
int op_forward_threads_find(op_result *result);

#endif
