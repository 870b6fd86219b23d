#include "cuda/cuda_lanes.h"

#include "core/event.h"
#include "core/fault.h"

#include <string.h>

static uint32_t device_of(const op_cuda_lanes *l, uint32_t context) {
    for (uint32_t i = 0; i < l->context_count; i++)
        if (l->contexts[i].context == context)
            return l->contexts[i].device;
    return 0;
}

bool op_cuda_lanes_learn(op_cuda_lanes *l, const op_cuda_work *work) {
    for (uint32_t i = l->context_count; i-- > 0;)
        if (l->contexts[i].context == work->work.context)
            return true;
    struct op_cuda_context *grown =
        op_realloc(l->contexts, ((size_t)l->context_count + 1) * sizeof *grown);
    if (!grown)
        return false;
    l->contexts = grown;
    grown[l->context_count++] =
        (struct op_cuda_context){.context = work->work.context, .device = work->device};
    return true;
}

static uint32_t *slot_of(const op_cuda_lanes *l, uint32_t device, uint32_t stream) {
    uint64_t h = ((uint64_t)device << 32 | stream) * 0x9e3779b97f4a7c15u;
    uint32_t at = (uint32_t)(h >> 32) & l->mask;
    while (l->slots[at] &&
           (l->lanes[l->slots[at] - 1].device != device || l->lanes[l->slots[at] - 1].stream != stream))
        at = (at + 1) & l->mask;
    return &l->slots[at];
}

static bool make_room(op_cuda_lanes *l) {
    if (l->count < l->capacity)
        return true;
    uint32_t capacity = l->capacity ? l->capacity * 2 : 16;
    op_cuda_lane *lanes = op_realloc(l->lanes, capacity * sizeof *lanes);
    if (lanes)
        l->lanes = lanes;
    uint32_t *slots = lanes ? op_calloc((size_t)capacity * 2, sizeof *slots) : NULL;
    if (!slots)
        return false;
    free(l->slots);
    l->slots = slots;
    l->mask = capacity * 2 - 1;
    l->capacity = capacity;
    for (uint32_t i = 0; i < l->count; i++)
        *slot_of(l, lanes[i].device, lanes[i].stream) = i + 1;
    return true;
}

int64_t op_cuda_lanes_find(op_cuda_lanes *l, const op_cuda_work *work) {
    uint32_t device = work->kind == OP_SYNC ? device_of(l, work->work.context) : work->device;
    if (l->last < l->count && l->lanes[l->last].device == device &&
        l->lanes[l->last].stream == work->stream)
        return l->last;
    if (!make_room(l))
        return -1;
    uint32_t *slot = slot_of(l, device, work->stream);
    if (!*slot) {
        l->lanes[l->count] = (op_cuda_lane){.device = device, .stream = work->stream};
        *slot = ++l->count;
    }
    return l->last = *slot - 1;
}

void op_cuda_lanes_free(op_cuda_lanes *l) {
    free(l->lanes);
    free(l->slots);
    free(l->contexts);
    *l = (op_cuda_lanes){0};
}
