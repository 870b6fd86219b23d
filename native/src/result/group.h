/* Key averages while they are summed up: what was added may be let go. */
#ifndef OP_GROUP_H
#define OP_GROUP_H

#include "result/device_time.h"
#include "result/result.h"

#include <stdbool.h>

/* What is summed up step by step: members of op_group. A new one is added to here, to op_group and in
 * group.c. */
#define OP_EACH_STEP_COLUMN(X)                                                                         \
    X(count)                                                                                           \
    X(total_ns)                                                                                        \
    X(self_ns)                                                                                         \
    X(device_total_ns)                                                                                 \
    X(self_device_ns)                                                                                  \
    X(cpu_memory)                                                                                      \
    X(flops)                                                                                           \
    X(counted_flops)                                                                                   \
    X(device_memory)                                                                                   \
    X(views)                                                                                           \
    X(bytes)                                                                                           \
    X(counted_bytes)                                                                                   \
    X(nodes)                                                                                           \
    X(counted_nodes)                                                                                   \
    X(retained)                                                                                        \
    X(counted_retained)
#define OP_STEP_COLUMN(name) OP_STEP_##name,
enum op_step_column { OP_EACH_STEP_COLUMN(OP_STEP_COLUMN) OP_STEP_COLUMNS };

typedef struct op_grouping {
    op_result *r;
    enum op_group_by by_inputs;
    bool by_overload;
    const uint32_t *stacks; /* by row; NULL: they do not count */
    op_memory_columns memory;
    op_group *groups;
    int64_t *samples; /* of each group, by column and step */
    uint64_t count, capacity;
    uint64_t *hashes; /* of each group */
    uint32_t *slots;  /* group + 1; 0: empty */
    uint64_t mask;
    uint32_t *of_row; /* NULL: nobody asks */
    uint32_t
        *of_name; /* by name and the key's bits: group + 1; 0: not met. NULL: more counts than these */
    uint64_t name_count;
    op_device_time device;
} op_grouping;

void op_grouping_by_name(op_grouping *g); /* nothing but the name and two bits keeps events apart */
/* The row's group, made if need be: of those that begin at once the first to be made comes first. */
bool op_grouping_find(op_grouping *g, uint64_t row, uint32_t *group);
bool op_grouping_add(op_grouping *g, uint64_t row);
bool op_grouping_finish(op_grouping *g); /* the result has the rows */
void op_grouping_release(op_grouping *g);

#endif
