/* FLOPs, from a formula evaluated once for each distinct op and its inputs. */
#include "result/flops.h"

#include "core/error.h"
#include "core/fault.h"
#include "core/names.h"
#include "result/flop_formulas.h"

#include <string.h>

/* The given FLOPs of an op cover all that runs inside it. An op without any gets the sum of its inner
 * ops. `counted` leaves out what an outer op covers, so its values add up. */
static void spread(const op_columns *c, uint8_t *covered, int64_t *flops, int64_t *counted) {
    for (uint64_t row = 0; row < c->count; row++) { /* in preorder a parent comes before its children */
        int32_t parent = c->parent[row];
        covered[row] = parent >= 0 && (covered[parent] || flops[parent] >= 0);
        counted[row] = flops[row] >= 0 && !covered[row] ? flops[row] : 0;
    }
    /* from here on, covered means: has given FLOPs */
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

int64_t *op_flops_prepare(const op_result *r) {
    return op_malloc(2 * r->columns.count * sizeof(int64_t) + 1);
}

int op_flops_keep(op_result *r, int64_t *flops) {
    uint64_t n = r->columns.count;
    uint8_t *covered = flops ? op_malloc(n + 1) : NULL;
    if (!covered) {
        free(flops);
        return op_error_set(OP_ENOMEM, "no memory for the FLOPs of %llu events", (unsigned long long)n);
    }
    spread(&r->columns, covered, flops, flops + n);
    free(covered);
    if (r->flops) { /* the caller may still read it */
        memcpy(r->flops, flops, 2 * n * sizeof *flops);
        free(flops);
    } else {
        r->flops = flops;
    }
    return OP_OK;
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

static bool is_told_inside(const op_result *r, uint64_t row) {
    uint32_t args = r->columns.args[row];
    return args && op_inputs_flops(r->args + args - 1, r->args + r->arg_words) < 0;
}

/* Lines were summed up before there were users' formulas. */
static void sum_by_line(op_result *r) {
    for (uint64_t i = 0; i < r->called_from_count; i++)
        r->called_from[i].flops = 0;
    for (uint64_t row = 0; r->work && row < r->columns.count; row++)
        if (r->work[row].called_from && r->flops[row] && !op_is_recursive(r, row))
            r->called_from[r->work[row].called_from - 1].flops += r->flops[row];
}

int op_result_count_flops(op_result *r, const int64_t *told, uint64_t count) {
    uint64_t n = r->columns.count;
    if (!r->input_group || count != r->input_group_count)
        return op_error_set(OP_ESTATE,
                            "FLOPs are counted for rows by inputs: ask for those rows first");
    int64_t *flops = op_flops_prepare(r);
    int64_t *per_group = op_malloc(count * sizeof *per_group + 1);
    for (uint64_t i = 0; per_group && i < count; i++)
        per_group[i] = told[i] == OP_FLOPS_BY_FORMULA ? flops_of_group(r, &r->groups[i]) : told[i];
    for (uint64_t row = 0; per_group && flops && row < n; row++) {
        bool is_known = r->input_group[row] != OP_NO_GROUP && !is_told_inside(r, row);
        flops[row] = is_known ? per_group[r->input_group[row]] : -1;
    }
    if (!per_group) {
        free(flops);
        flops = NULL;
    }
    free(per_group);
    int rc = op_flops_keep(r, flops);
    if (rc == OP_OK)
        sum_by_line(r);
    return rc;
}

const int64_t *op_result_flops(const op_result *r) { return r->flops; }
