/* Views: ops that return their input and run nothing else. */
#ifndef OP_VIEWS_H
#define OP_VIEWS_H

#include "result/segment.h"

void op_views_settle(const op_segment *rows);

#endif
