/* FLOPs, from a formula that is evaluated once for each distinct op and its inputs. */
#include "core/error.h"
#include "core/fault.h"
#include "core/names.h"
#include "result/flop_formulas.h"
#include "result/result.h"

#include <string.h>

/* A formula tells the FLOPs of an op with all that runs inside it; an op without one has those of
 * what is inside it. `counted` has the formulas that no other one is around: they add up. */
static void spread(const op_result *r, const int64_t *per_group, uint8_t *covered, int64_t *flops,
                   int64_t *counted) {
    const op_columns *c = &r->columns;
    for (uint64_t row = 0; row < c->count; row++) { /* in preorder a parent comes before its children */
        uint32_t group = r->input_group[row];
        int32_t parent = c->parent[row];
        bool by_formula = group != OP_NO_GROUP && per_group[group] >= 0;
        flops[row] = by_formula ? per_group[group] : -1;
        covered[row] = parent >= 0 && (covered[parent] || flops[parent] >= 0);
        counted[row] = by_formula && !covered[row] ? flops[row] : 0;
    }
    /* covered turns into: has a formula */
    for (uint64_t row = 0; row < c->count; row++) {
        covered[row] = flops[row] >= 0;
        if (!covered[row])
            flops[row] = 0;
    }
    for (uint64_t row = c->count; row-- > 0;) {
        int32_t parent = c->parent[row];
        if (parent >= 0 && !covered[parent])
            flops[parent] += flops[row];
    }
}

static int64_t flops_of_group(const op_result *r, const op_group *group) {
    const op_columns *c = &r->columns;
    uint32_t args = c->args[group->args_event], length;
    op_inputs inputs;
    if (c->kind[group->args_event] != OP_TORCH || !args ||
        !op_inputs_of(r->args + args - 1, r->args + r->arg_words, &inputs))
        return -1;
    return op_flops_of(op_flop_formula(op_names_text(c->name[group->args_event], &length)), inputs);
}

int op_result_count_flops(op_result *r, const int64_t *told, uint64_t count) {
    uint64_t n = r->columns.count;
    if (!r->input_group || count != r->input_group_count)
        return op_error_set(OP_ESTATE, "FLOPs are of the rows by inputs, and those were not asked for");
    int64_t *flops = op_malloc(2 * n * sizeof *flops + 1);
    int64_t *per_group = op_malloc(count * sizeof *per_group + 1);
    uint8_t *covered = op_malloc(n + 1);
    if (!flops || !covered || !per_group) {
        free(flops);
        free(covered);
        free(per_group);
        return op_error_set(OP_ENOMEM, "no memory for the FLOPs of %llu events", (unsigned long long)n);
    }
    for (uint64_t i = 0; i < count; i++)
        per_group[i] = told[i] == OP_FLOPS_BY_FORMULA ? flops_of_group(r, &r->groups[i]) : told[i];
    spread(r, per_group, covered, flops, flops + n);
    free(covered);
    free(per_group);
    free(r->flops);
    r->flops = flops;
    return OP_OK;
}

const int64_t *op_result_flops(const op_result *r) { return r->flops; }
