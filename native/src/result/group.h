/* Key averages while they are summed up; an added event may be discarded. */
#ifndef OP_GROUP_H
#define OP_GROUP_H

#include "result/device_time.h"
#include "result/result.h"

#include <stdbool.h>

/* Members of op_group that are summed up per step. Add a new one here, in op_group and in group.c; in
 * op_called_from and called_from.c too if a failure is to name its line. */
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
    const uint32_t *stacks; /* by row; NULL: stacks are not part of the key */
    op_memory_columns memory;
    op_group *groups;
    int64_t *samples; /* of each group, by column and step */
    uint64_t count, capacity;
    uint64_t *hashes; /* of each group */
    uint32_t *slots;  /* group + 1; 0: empty */
    uint64_t mask;
    uint32_t *of_row; /* NULL: not needed */
    uint32_t
        *of_name; /* by name and the key's bits: group + 1; 0: not seen yet. NULL: the key has more */
    uint64_t name_count;
    op_device_time device;
} op_grouping;

void op_grouping_by_name(op_grouping *g); /* only if the key is just the name and two bits */
/* The row's group, created if necessary. Of groups that start together, the first created is first. */
bool op_grouping_find(op_grouping *g, uint64_t row, uint32_t *group);
bool op_grouping_add(op_grouping *g, uint64_t row);
bool op_grouping_finish(op_grouping *g); /* moves the rows to the result */
void op_grouping_release(op_grouping *g);

#endif
