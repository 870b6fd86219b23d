/* The key averages of a whole result, grouped as requested. */
#include "core/error.h"
#include "core/fault.h"
#include "result/device_use.h"
#include "result/group.h"
#include "result/stack_ids.h"

static bool group_all(op_grouping *g) {
    uint64_t n = g->r->columns.count;
    for (uint64_t row = 0; row < n; row++)
        if (!op_grouping_add(g, row))
            return false;
    return op_grouping_finish(g);
}

/* FLOPs are counted by the groups by inputs. */
static void keep_group_of_row(op_grouping *g) {
    op_result *r = g->r;
    free(r->input_group);
    r->input_group = g->of_row;
    r->input_group_count = g->count;
    g->of_row = NULL;
}

static void keep_for_devices(op_grouping *g) {
    g->r->device_group = g->of_row;
    g->r->device_group_count = g->count;
    g->of_row = NULL;
}

static void forget_groups(op_result *r) {
    free(r->groups);
    free(r->samples);
    r->groups = NULL;
    r->samples = NULL;
    op_device_use_forget(r);
}

static int make_groups(op_result *r, int by, uint32_t stack_depth) {
    uint64_t n = r->columns.count;
    op_grouping g = {.r = r,
                     .by_inputs = (enum op_group_by)(by & (OP_GROUP_BY_SHAPES | OP_GROUP_BY_INPUTS)),
                     .by_overload = (by & OP_GROUP_BY_OVERLOAD) != 0};
    int rc = r->memory_count ? op_result_memory_columns(r, &g.memory) : OP_OK;
    if (rc != OP_OK)
        return rc;
    uint32_t *stacks = stack_depth ? op_stack_ids(r, stack_depth) : NULL;
    g.stacks = stacks;
    g.of_row = op_malloc(n * sizeof(uint32_t) + 1);
    if (by == OP_GROUP_BY_NAME && !stack_depth)
        op_grouping_by_name(&g);
    bool ok = g.of_row && (stacks || !stack_depth) && op_device_time_sum(r, &g.device) == OP_OK;
    ok = ok && group_all(&g);
    if (ok && by == OP_GROUP_BY_INPUTS && !stack_depth)
        keep_group_of_row(&g);
    else if (ok && op_uses_devices(&r->columns))
        keep_for_devices(&g);
    free(stacks);
    op_grouping_release(&g);
    return ok ? OP_OK
              : op_error_set(OP_ENOMEM, "no memory to group %llu events", (unsigned long long)n);
}

int op_result_groups(op_result *r, int by, uint32_t stack_depth, const op_group **rows, uint64_t *count,
                     const int64_t **samples) {
    if (r->folded && (by != OP_GROUP_BY_NAME || stack_depth))
        return op_error_set(OP_ESTATE, "the events were summed up by name and discarded");
    if (!r->folded) {
        forget_groups(r);
        int rc = make_groups(r, by, stack_depth);
        if (rc != OP_OK)
            return rc;
    }
    *rows = r->groups;
    *count = r->group_count;
    *samples = r->samples;
    return OP_OK;
}
