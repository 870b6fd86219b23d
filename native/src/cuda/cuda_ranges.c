#include "cuda/cuda_ranges.h"

#include "core/error.h"
#include "core/fault.h"

#define SLOTS_A_LINE (64 / (uint32_t)sizeof(uint32_t))

static int no_memory(void) {
    return op_error_set(OP_ENOMEM, "no memory to find how long ranges lasted on devices");
}

static bool is_range(const op_columns *c, uint64_t row) {
    return c->scope[row] == OP_SCOPE_USER && c->kind[row] <= OP_NVTX &&
           !(c->flags[row] & OP_FLAG_ASYNC);
}

int op_cuda_ranges_open(op_cuda_ranges *out, const op_columns *c) {
    *out = (op_cuda_ranges){.columns = c, .mask = 63};
    out->nearest = op_malloc(c->count * sizeof *out->nearest + 1);
    out->slots = op_calloc((size_t)out->mask + 1, sizeof *out->slots);
    if (!out->nearest || !out->slots)
        return no_memory();
    for (uint64_t row = 0; row < c->count; row++)
        out->nearest[row] = is_range(c, row)      ? (uint32_t)row + 1
                            : c->parent[row] >= 0 ? out->nearest[c->parent[row]]
                                                  : 0;
    return OP_OK;
}

/* Ranges begin and are looked up in the order of rows, so neighbouring rows share a cache line. */
static uint32_t *slot_of(const op_cuda_ranges *r, uint32_t row, uint32_t lane) {
    uint64_t h = ((uint64_t)(row / SLOTS_A_LINE) << 32 | lane) * 0x9e3779b97f4a7c15u;
    uint32_t at = ((uint32_t)(h >> 32) * SLOTS_A_LINE + row % SLOTS_A_LINE) & r->mask;
    while (r->slots[at] &&
           (r->extents[r->slots[at] - 1].row != row || r->extents[r->slots[at] - 1].lane != lane))
        at = (at + 1) & r->mask;
    return &r->slots[at];
}

static bool make_room(op_cuda_ranges *r) {
    if (r->count < r->capacity)
        return true;
    uint32_t capacity = r->capacity ? r->capacity * 2 : 16;
    op_cuda_extent *extents = op_realloc(r->extents, capacity * sizeof *extents);
    if (extents)
        r->extents = extents;
    uint32_t *slots = extents ? op_calloc((size_t)capacity * 4, sizeof *slots) : NULL;
    if (!slots)
        return false;
    free(r->slots);
    r->slots = slots;
    r->mask = capacity * 4 - 1;
    r->capacity = capacity;
    for (uint32_t i = 0; i < r->count; i++)
        *slot_of(r, extents[i].row, extents[i].lane) = i + 1;
    return true;
}

/* 1 + its index, created if necessary together with those of the ranges around it; 0: no memory. */
static uint32_t extent_of(op_cuda_ranges *r, uint32_t row, uint32_t lane) {
    uint32_t first = 0, inner = 0;
    if (r->last && r->extents[r->last - 1].row == row && r->extents[r->last - 1].lane == lane)
        return r->last;
    for (uint32_t range = row + 1; range;) {
        uint32_t *slot = slot_of(r, range - 1, lane);
        uint32_t found = *slot;
        if (!found) {
            if (!make_room(r))
                return 0;
            r->extents[r->count] =
                (op_cuda_extent){.row = range - 1, .lane = lane, .start = UINT64_MAX};
            *slot_of(r, range - 1, lane) = ++r->count;
        }
        uint32_t place = found ? found : r->count;
        if (inner)
            r->extents[inner - 1].around = place;
        first = first ? first : place;
        if (found)
            break;
        inner = place;
        int32_t parent = r->columns->parent[range - 1];
        range = parent >= 0 ? r->nearest[parent] : 0;
    }
    r->last = first;
    return first;
}

int op_cuda_ranges_extend(op_cuda_ranges *r, uint32_t launcher, uint32_t lane, uint64_t start,
                          uint64_t end) {
    uint32_t range = r->nearest[launcher];
    if (!range)
        return OP_OK;
    uint32_t place = extent_of(r, range - 1, lane);
    if (!place)
        return no_memory();
    for (; place; place = r->extents[place - 1].around) {
        op_cuda_extent *e = &r->extents[place - 1];
        e->start = start < e->start ? start : e->start;
        e->end = end > e->end ? end : e->end;
    }
    return OP_OK;
}

void op_cuda_ranges_close(op_cuda_ranges *r) {
    free(r->extents);
    free(r->slots);
    free(r->nearest);
    *r = (op_cuda_ranges){0};
}
