/* Views: ops that give back what they were given, and run nothing else. */
#ifndef OP_VIEWS_H
#define OP_VIEWS_H

#include "result/segment.h"

void op_views_settle(const op_segment *rows);

#endif
