/* Key averages: one hash lookup per event, rows in the order of their first start. */
#include "result/group.h"

#include "core/fault.h"
#include "core/names.h"
#include "result/inputs.h"

#include <string.h>

const char *op_group_column(uint32_t index) {
#define NAME(name) #name,
    static const char *const names[] = {OP_EACH_STEP_COLUMN(NAME)};
    return index < OP_STEP_COLUMNS ? names[index] : NULL;
}

static bool inputs_at(const op_result *r, uint64_t row, op_inputs *out) {
    uint32_t at = r->columns.args[row];
    return at && op_inputs_of(r->args + at - 1, r->args + r->arg_words, out);
}

static bool rehash(op_grouping *g, uint64_t slots) {
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

static bool make_room(op_grouping *g) {
    if (g->count < g->capacity)
        return true;
    uint64_t capacity = g->capacity ? g->capacity * 2 : 256;
    op_group *groups = op_realloc(g->groups, capacity * sizeof *groups);
    if (groups)
        g->groups = groups;
    uint64_t *hashes = groups ? op_realloc(g->hashes, capacity * sizeof *hashes) : NULL;
    if (hashes)
        g->hashes = hashes;
    size_t cells = OP_STEP_COLUMNS * g->r->step_count;
    int64_t *samples = hashes ? op_realloc(g->samples, (capacity * cells + 1) * sizeof *samples) : NULL;
    if (samples)
        g->samples = samples;
    if (!samples || !rehash(g, capacity * 2))
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

static group_key key_of(const op_grouping *g, uint64_t row) {
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

static bool same_key(const op_grouping *g, const op_group *row, const group_key *k) {
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

/* The group of an event's key, created if necessary. */
static bool find_group(op_grouping *g, uint64_t row, uint32_t *group) {
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
                                         .start_ns = c->start_ns[row],
                                         .min_ns = INT64_MAX,
                                         .is_async = (c->flags[row] & OP_FLAG_ASYNC) != 0};
        size_t cells = OP_STEP_COLUMNS * g->r->step_count;
        if (cells)
            memset(g->samples + g->count * cells, 0, cells * sizeof *g->samples);
        g->slots[at] = (uint32_t)++g->count;
    }
    *group = g->slots[at] - 1;
    return true;
}

/* If the key is just a name and two bits, only the first event with it is hashed. This covers all host
 * events, and so most events, since devices have fewer than the host launches. */
static uint32_t *short_cut(const op_grouping *g, uint64_t row) {
    const op_columns *c = &g->r->columns;
    if (!g->of_name || c->name[row] >= g->name_count || op_is_on_device(c->kind[row]))
        return NULL;
    uint32_t bits = (c->scope[row] == OP_SCOPE_USER) | (c->flags[row] & OP_FLAG_BACKGROUND ? 2 : 0);
    return &g->of_name[(uint64_t)c->name[row] * 4 + bits];
}

typedef struct op_flop_counts {
    int64_t whole, counted; /* including what runs inside; not counted by an outer event */
} op_flop_counts;

/* From all formulas if they were requested, else from those evaluated as the ops ran. */
static op_flop_counts flops_at(const op_result *r, uint64_t row) {
    if (r->flops)
        return (op_flop_counts){r->flops[row], r->flops[r->columns.count + row]};
    if (!r->work)
        return (op_flop_counts){0, 0};
    return (op_flop_counts){r->work[row].flops, r->work[row].flops - r->work[row].inner_flops};
}

static void add_to_group(const op_grouping *g, op_group *group, uint64_t row) {
    const op_columns *c = &g->r->columns;
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
    group->retained += op_memory_retained(g->r, row);
    op_flop_counts flops = flops_at(g->r, row);
    group->flops += flops.whole;
    group->counted_flops += flops.counted;
    if (g->r->work) {
        const op_work *work = &g->r->work[row];
        group->bytes += work->bytes;
        group->counted_bytes += work->bytes - work->inner_bytes;
        group->nodes += work->nodes;
        group->counted_nodes += work->nodes - work->inner_nodes;
        group->counted_retained += work->retained - work->inner_retained;
    }
    if (c->duration_ns[row] >= 0) {
        group->total_ns += on_device ? 0 : c->duration_ns[row];
        if (c->duration_ns[row] < group->min_ns)
            group->min_ns = c->duration_ns[row];
        if (c->duration_ns[row] > group->max_ns)
            group->max_ns = c->duration_ns[row];
    }
    if (c->start_ns[row] < group->start_ns) {
        group->start_ns = c->start_ns[row];
        group->first_event = (uint32_t)row;
    }
}

/* Adds to the group's samples, by column and step. */
static void add_to_step(const op_grouping *g, uint32_t group, uint64_t row) {
    const op_columns *c = &g->r->columns;
    uint64_t steps = g->r->step_count;
    int64_t *cell = g->samples + OP_STEP_COLUMNS * steps * group + (uint64_t)c->step[row];
    cell[OP_STEP_count * steps]++;
    cell[OP_STEP_views * steps] += (c->flags[row] & OP_FLAG_VIEW) != 0;
    if (g->device.total_ns) {
        cell[OP_STEP_device_total_ns * steps] += g->device.total_ns[row];
        cell[OP_STEP_self_device_ns * steps] += g->device.self_ns[row];
    }
    if (op_is_on_device(c->kind[row]))
        return;
    if (g->r->work) {
        const op_work *work = &g->r->work[row];
        cell[OP_STEP_bytes * steps] += work->bytes;
        cell[OP_STEP_counted_bytes * steps] += work->bytes - work->inner_bytes;
        cell[OP_STEP_nodes * steps] += work->nodes;
        cell[OP_STEP_counted_nodes * steps] += work->nodes - work->inner_nodes;
        cell[OP_STEP_counted_retained * steps] += work->retained - work->inner_retained;
    }
    if (c->duration_ns[row] >= 0)
        cell[OP_STEP_total_ns * steps] += c->duration_ns[row];
    cell[OP_STEP_self_ns * steps] += c->self_ns[row];
    if (g->r->memory_count) {
        cell[OP_STEP_cpu_memory * steps] += g->memory.cpu[row];
        cell[OP_STEP_device_memory * steps] += g->memory.device[row];
    }
    cell[OP_STEP_retained * steps] += op_memory_retained(g->r, row);
    op_flop_counts flops = flops_at(g->r, row);
    if (flops.whole && !op_is_recursive(g->r, row))
        cell[OP_STEP_flops * steps] += flops.whole;
    cell[OP_STEP_counted_flops * steps] += flops.counted;
}

bool op_grouping_find(op_grouping *g, uint64_t row, uint32_t *group) {
    uint32_t *known = short_cut(g, row);
    if (known && *known)
        *group = *known - 1;
    else if (!find_group(g, row, group))
        return false;
    if (known)
        *known = *group + 1;
    return true;
}

bool op_grouping_add(op_grouping *g, uint64_t row) {
    const op_columns *c = &g->r->columns;
    if (c->flags[row] & OP_FLAG_CREDITED) { /* its bytes belong to another event */
        if (g->of_row)
            g->of_row[row] = OP_NO_GROUP;
        return true;
    }
    uint32_t index;
    if (!op_grouping_find(g, row, &index))
        return false;
    if (g->of_row)
        g->of_row[row] = index;
    add_to_group(g, &g->groups[index], row);
    if (c->step[row] >= 0)
        add_to_step(g, index, row);
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

/* Reorders samples from group by group to column by column. */
static void place_samples(const op_grouping *g, const placed *order, int64_t *samples) {
    uint64_t steps = g->r->step_count;
    for (uint64_t column = 0; steps && column < OP_STEP_COLUMNS; column++)
        for (uint64_t i = 0; i < g->count; i++)
            memcpy(samples + (column * g->count + i) * steps,
                   g->samples + (order[i].group * (uint64_t)OP_STEP_COLUMNS + column) * steps,
                   steps * sizeof *samples);
}

static void place_rows(const op_grouping *g, const uint32_t *place) {
    for (uint64_t row = 0; g->of_row && row < g->r->columns.count; row++)
        if (g->of_row[row] != OP_NO_GROUP)
            g->of_row[row] = place[g->of_row[row]];
}

bool op_grouping_finish(op_grouping *g) {
    uint32_t *place = op_malloc((g->count + 1) * sizeof *place);
    op_group *sorted = op_malloc((g->count + 1) * sizeof *sorted);
    placed *order = op_malloc((g->count + 1) * sizeof *order);
    int64_t *samples = op_malloc((g->count * OP_STEP_COLUMNS * g->r->step_count + 1) * sizeof *samples);
    bool ok = place && sorted && order && samples;
    if (ok) {
        for (uint64_t i = 0; i < g->count; i++)
            order[i] = (placed){.start_ns = g->groups[i].start_ns, .group = (uint32_t)i};
        qsort(order, g->count, sizeof *order, earliest_first);
        for (uint64_t i = 0; i < g->count; i++) {
            place[order[i].group] = (uint32_t)i;
            sorted[i] = g->groups[order[i].group];
            if (sorted[i].min_ns == INT64_MAX)
                sorted[i].min_ns = 0;
        }
        place_samples(g, order, samples);
        place_rows(g, place);
        g->r->groups = sorted;
        g->r->samples = samples;
        g->r->group_count = g->count;
    } else {
        free(sorted);
        free(samples);
    }
    free(place);
    free(order);
    return ok;
}

void op_grouping_release(op_grouping *g) {
    free(g->groups);
    free(g->samples);
    free(g->of_row);
    free(g->of_name);
    free(g->hashes);
    free(g->slots);
    op_device_time_free(&g->device);
}

/* If this fails, every event is hashed: slower, but correct. */
void op_grouping_by_name(op_grouping *g) {
    g->name_count = op_names_count() + 1;
    g->of_name = op_calloc(g->name_count * 4, sizeof *g->of_name);
}
