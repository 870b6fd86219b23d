/* Call paths while they are summed up; an added event may be discarded. */
#ifndef OP_PATHS_H
#define OP_PATHS_H

#include "core/key_map.h"
#include "result/result.h"

#include <stdbool.h>

typedef struct op_tracing {
    op_path *paths; /* callers before callees */
    uint64_t count, capacity;
    op_key_map by_caller; /* path + 1, by parent and name */
    int32_t *of_row;      /* -1: outside of steps, or not on the host */
} op_tracing;

bool op_tracing_find(op_tracing *t, const op_result *r, uint64_t row); /* after the parent's */
void op_tracing_add(const op_tracing *t, const op_columns *c, uint64_t row);
void op_tracing_release(op_tracing *t);

#endif
