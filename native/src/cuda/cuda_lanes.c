#include "cuda/cuda_lanes.h"

#include "core/event.h"
#include "core/fault.h"
#include "core/grow.h"

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

int64_t op_cuda_lanes_find(op_cuda_lanes *l, const op_cuda_work *work) {
    uint32_t device = work->kind == OP_SYNC ? device_of(l, work->work.context) : work->device;
    if (l->last < l->count && l->lanes[l->last].device == device &&
        l->lanes[l->last].stream == work->stream)
        return l->last;
    uint32_t *lane = op_key_map_at(&l->by_stream, device, work->stream);
    if (!lane || !OP_HAS_ROOM(l->lanes, l->count, l->capacity, 16))
        return -1;
    if (!*lane) {
        l->lanes[l->count] = (op_cuda_lane){.device = device, .stream = work->stream};
        *lane = ++l->count;
    }
    return l->last = *lane - 1;
}

void op_cuda_lanes_free(op_cuda_lanes *l) {
    free(l->lanes);
    op_key_map_free(&l->by_stream);
    free(l->contexts);
    *l = (op_cuda_lanes){0};
}
