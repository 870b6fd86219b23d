/* Views, once all columns are there: ops that give back what they were given, and run nothing else. */
#ifndef OP_VIEWS_H
#define OP_VIEWS_H

#include "result.h"

int op_views_settle(const op_result *result, const op_writable *columns);

#endif
