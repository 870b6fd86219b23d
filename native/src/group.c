/* Key averages: one hash lookup an event, rows in the order of their first start. */
#include "device_time.h"
#include "device_use.h"
#include "error.h"
#include "fault.h"
#include "inputs.h"
#include "names.h"
#include "result.h"
#include "stack_ids.h"

#include <string.h>

static bool inputs_at(const op_result *r, uint64_t row, op_inputs *out) {
    uint32_t at = r->columns.args[row];
    return at && op_inputs_of(r->args + at - 1, r->args + r->arg_words, out);
}

typedef struct grouping {
    op_result *r;
    enum op_group_by by_inputs;
    bool by_overload;
    const uint32_t *stacks; /* by row; NULL: they do not count */
    op_memory_columns memory;
    op_group *groups;
    uint64_t count, capacity;
    uint64_t *hashes; /* of each group */
    uint32_t *slots;  /* group + 1; 0: empty */
    uint64_t mask;
    uint32_t *of_row;
    uint32_t
        *of_name; /* by name and the key's bits: group + 1; 0: not met. NULL: more counts than these */
    uint64_t name_count;
    op_device_time device;
} grouping;

static bool rehash(grouping *g, uint64_t slots) {
    uint32_t *fresh = op_calloc(slots, sizeof *fresh);
    if (!fresh)
        return false;
    free(g->slots);
    g->slots = fresh;
    g->mask = slots - 1;
    for (uint64_t i = 0; i < g->count; i++) {
        uint64_t at = g->hashes[i] & g->mask;
        while (fresh[at])
            at = (at + 1) & g->mask;
        fresh[at] = (uint32_t)i + 1;
    }
    return true;
}

static bool make_room(grouping *g) {
    if (g->count < g->capacity)
        return true;
    uint64_t capacity = g->capacity ? g->capacity * 2 : 256;
    op_group *groups = op_realloc(g->groups, capacity * sizeof *groups);
    if (groups)
        g->groups = groups;
    uint64_t *hashes = groups ? op_realloc(g->hashes, capacity * sizeof *hashes) : NULL;
    if (hashes)
        g->hashes = hashes;
    if (!groups || !hashes || !rehash(g, capacity * 2))
        return false;
    g->capacity = capacity;
    return true;
}

typedef struct group_key {
    uint32_t name;
    uint8_t is_user_annotation, background;
    int32_t device_type;
    uint32_t overload, stack;
    bool has_inputs;
    op_inputs inputs;
    uint64_t hash;
} group_key;

static group_key key_of(const grouping *g, uint64_t row) {
    const op_columns *c = &g->r->columns;
    group_key k = {.name = op_names_group(c->name[row]),
                   .is_user_annotation = c->scope[row] == OP_SCOPE_USER,
                   .background = (c->flags[row] & OP_FLAG_BACKGROUND) != 0,
                   .device_type = op_device_type_of(c, g->r->threads, row),
                   .overload = g->by_overload ? op_result_overload(g->r, row) : OP_NAME_NONE,
                   .stack = g->stacks ? g->stacks[row] : 0};
    k.hash = ((uint64_t)k.name << 2 | (uint64_t)k.is_user_annotation << 1 | k.background) *
             0x9e3779b97f4a7c15u;
    k.hash += (uint64_t)k.device_type;
    k.hash ^= ((uint64_t)k.overload << 32 | k.stack) * 0xc2b2ae3d27d4eb4fu;
    if (g->by_inputs && inputs_at(g->r, row, &k.inputs)) {
        k.has_inputs = true;
        k.hash ^= g->by_inputs == OP_GROUP_BY_SHAPES ? op_inputs_shape_hash(k.inputs)
                                                     : op_inputs_hash(k.inputs);
    }
    k.hash ^= k.hash >> 32;
    return k;
}

static bool same_key(const grouping *g, const op_group *row, const group_key *k) {
    if (row->name != k->name || row->is_user_annotation != k->is_user_annotation ||
        row->background != k->background || row->device_type != k->device_type)
        return false;
    if (g->by_overload && op_result_overload(g->r, row->args_event) != k->overload)
        return false;
    if (g->stacks && g->stacks[row->args_event] != k->stack)
        return false;
    op_inputs theirs;
    bool has = g->by_inputs && inputs_at(g->r, row->args_event, &theirs);
    if (has != k->has_inputs || !has)
        return has == k->has_inputs;
    return g->by_inputs == OP_GROUP_BY_SHAPES ? op_inputs_same_shapes(theirs, k->inputs)
                                              : op_inputs_same(theirs, k->inputs);
}

/* The group of an event's key, made if need be. */
static bool find_group(grouping *g, uint64_t row, uint32_t *group) {
    const op_columns *c = &g->r->columns;
    group_key k = key_of(g, row);
    if (!make_room(g))
        return false;
    uint64_t at = k.hash & g->mask;
    while (g->slots[at] &&
           !(g->hashes[g->slots[at] - 1] == k.hash && same_key(g, &g->groups[g->slots[at] - 1], &k)))
        at = (at + 1) & g->mask;
    if (!g->slots[at]) {
        g->hashes[g->count] = k.hash;
        g->groups[g->count] = (op_group){.name = k.name,
                                         .first_event = (uint32_t)row,
                                         .args_event = (uint32_t)row,
                                         .kind = c->kind[row],
                                         .scope = c->scope[row],
                                         .background = k.background,
                                         .is_user_annotation = k.is_user_annotation,
                                         .device_type = k.device_type,
                                         .min_ns = INT64_MAX,
                                         .is_async = (c->flags[row] & OP_FLAG_ASYNC) != 0};
        g->slots[at] = (uint32_t)++g->count;
    }
    *group = g->slots[at] - 1;
    return true;
}

/* Where the key is no more than a name and two bits, it is hashed the first time only: any event of
 * the host, and most, since a device has fewer than it launches. */
static uint32_t *short_cut(const grouping *g, uint64_t row) {
    const op_columns *c = &g->r->columns;
    if (!g->of_name || c->name[row] >= g->name_count || op_is_on_device(c->kind[row]))
        return NULL;
    uint32_t bits = (c->scope[row] == OP_SCOPE_USER) | (c->flags[row] & OP_FLAG_BACKGROUND ? 2 : 0);
    return &g->of_name[(uint64_t)c->name[row] * 4 + bits];
}

static bool assign(grouping *g, uint64_t row) {
    const op_columns *c = &g->r->columns;
    if (c->flags[row] & OP_FLAG_CREDITED) { /* its bytes are another event's */
        g->of_row[row] = OP_NO_GROUP;
        return true;
    }
    uint32_t *known = short_cut(g, row), index;
    if (known && *known)
        index = *known - 1;
    else if (!find_group(g, row, &index))
        return false;
    if (known)
        *known = index + 1;
    g->of_row[row] = index;
    op_group *group = &g->groups[index];
    bool on_device = op_is_on_device(c->kind[row]);
    group->count++;
    group->views += (c->flags[row] & OP_FLAG_VIEW) != 0;
    group->self_ns += on_device ? 0 : c->self_ns[row];
    group->device_total_ns += g->device.total_ns ? g->device.total_ns[row] : 0;
    group->self_device_ns += g->device.self_ns ? g->device.self_ns[row] : 0;
    if (g->r->memory_count) {
        group->cpu_memory += g->memory.cpu[row];
        group->self_cpu_memory += g->memory.self_cpu[row];
        group->device_memory += g->memory.device[row];
        group->self_device_memory += g->memory.self_device[row];
    }
    if (g->r->flops) {
        group->flops += g->r->flops[row];
        group->counted_flops += g->r->flops[c->count + row];
    }
    if (c->duration_ns[row] >= 0) {
        group->total_ns += on_device ? 0 : c->duration_ns[row];
        if (c->duration_ns[row] < group->min_ns)
            group->min_ns = c->duration_ns[row];
        if (c->duration_ns[row] > group->max_ns)
            group->max_ns = c->duration_ns[row];
    }
    if (c->start_ns[row] < c->start_ns[group->first_event])
        group->first_event = (uint32_t)row;
    return true;
}

static bool sample(grouping *g) {
    const op_columns *c = &g->r->columns;
    uint64_t steps = g->r->step_count, plane = g->count * steps;
    int64_t *samples = op_calloc(plane * 10 + 1, sizeof *samples);
    if (!samples)
        return false;
    for (uint64_t row = 0; row < c->count; row++) {
        if (c->step[row] < 0 || g->of_row[row] == OP_NO_GROUP)
            continue;
        uint64_t at = g->of_row[row] * steps + (uint64_t)c->step[row];
        samples[at]++;
        samples[9 * plane + at] += (c->flags[row] & OP_FLAG_VIEW) != 0;
        if (g->device.total_ns) {
            samples[3 * plane + at] += g->device.total_ns[row];
            samples[4 * plane + at] += g->device.self_ns[row];
        }
        if (op_is_on_device(c->kind[row]))
            continue;
        if (c->duration_ns[row] >= 0)
            samples[plane + at] += c->duration_ns[row];
        samples[2 * plane + at] += c->self_ns[row];
        if (g->r->memory_count) {
            samples[5 * plane + at] += g->memory.cpu[row];
            samples[8 * plane + at] += g->memory.device[row];
        }
        if (g->r->flops) {
            samples[6 * plane + at] += g->r->flops[row];
            samples[7 * plane + at] += g->r->flops[c->count + row];
        }
    }
    g->r->samples = samples;
    return true;
}

typedef struct placed {
    int64_t start_ns;
    uint32_t group;
} placed;

static int earliest_first(const void *a, const void *b) {
    const placed *x = a, *y = b;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return (x->group > y->group) - (x->group < y->group);
}

static bool order_by_start(grouping *g) {
    uint32_t *place = op_malloc((g->count + 1) * sizeof *place);
    op_group *sorted = op_malloc((g->count + 1) * sizeof *sorted);
    placed *order = op_malloc((g->count + 1) * sizeof *order);
    if (!place || !sorted || !order) {
        free(place);
        free(sorted);
        free(order);
        return false;
    }
    for (uint64_t i = 0; i < g->count; i++)
        order[i] = (placed){.start_ns = g->r->columns.start_ns[g->groups[i].first_event],
                            .group = (uint32_t)i};
    qsort(order, g->count, sizeof *order, earliest_first);
    for (uint64_t i = 0; i < g->count; i++) {
        place[order[i].group] = (uint32_t)i;
        sorted[i] = g->groups[order[i].group];
        if (sorted[i].min_ns == INT64_MAX)
            sorted[i].min_ns = 0;
    }
    for (uint64_t row = 0; row < g->r->columns.count; row++)
        if (g->of_row[row] != OP_NO_GROUP)
            g->of_row[row] = place[g->of_row[row]];
    free(place);
    free(order);
    free(g->groups);
    g->groups = sorted;
    return true;
}

static bool group_all(grouping *g) {
    uint64_t n = g->r->columns.count;
    for (uint64_t row = 0; row < n; row++)
        if (!assign(g, row))
            return false;
    return order_by_start(g) && sample(g);
}

/* The groups by inputs are what FLOPs are counted by. */
static void keep_group_of_row(grouping *g) {
    op_result *r = g->r;
    free(r->input_group);
    r->input_group = g->of_row;
    r->input_group_count = g->count;
    g->of_row = NULL;
}

static void keep_for_devices(grouping *g) {
    g->r->device_group = g->of_row;
    g->r->device_group_count = g->count;
    g->of_row = NULL;
}

int op_result_groups(op_result *r, int by, uint32_t stack_depth, const op_group **rows, uint64_t *count,
                     const int64_t **samples) {
    free(r->groups);
    free(r->samples);
    r->groups = NULL;
    r->samples = NULL;
    op_device_use_forget(r);
    uint64_t n = r->columns.count;
    grouping g = {.r = r,
                  .by_inputs = (enum op_group_by)(by & (OP_GROUP_BY_SHAPES | OP_GROUP_BY_INPUTS)),
                  .by_overload = (by & OP_GROUP_BY_OVERLOAD) != 0};
    int rc = r->memory_count ? op_result_memory_columns(r, &g.memory) : OP_OK;
    if (rc != OP_OK)
        return rc;
    uint32_t *stacks = stack_depth ? op_stack_ids(r, stack_depth) : NULL;
    g.stacks = stacks;
    g.of_row = op_malloc(n * sizeof(uint32_t) + 1);
    g.name_count = op_names_count() + 1;
    if (by == OP_GROUP_BY_NAME && !stack_depth) /* without it all are hashed: slower, and no worse */
        g.of_name = op_calloc(g.name_count * 4, sizeof *g.of_name);
    bool ok = g.of_row && (stacks || !stack_depth) && op_device_time_sum(r, &g.device) == OP_OK;
    ok = ok && group_all(&g);
    if (ok && by == OP_GROUP_BY_INPUTS && !stack_depth)
        keep_group_of_row(&g);
    else if (ok && op_uses_devices(&r->columns))
        keep_for_devices(&g);
    free(stacks);
    free(g.of_row);
    free(g.of_name);
    free(g.hashes);
    free(g.slots);
    op_device_time_free(&g.device);
    if (!ok) {
        free(g.groups);
        return op_error_set(OP_ENOMEM, "no memory to group %llu events", (unsigned long long)n);
    }
    r->groups = g.groups;
    *rows = r->groups;
    *count = g.count;
    *samples = r->samples;
    return OP_OK;
}
