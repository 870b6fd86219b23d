#include "core/tick_map.h"

#include "core/error.h"
#include "core/fault.h"
#include "opprof.h"

int op_tick_map_make(op_tick_map *out, const op_timeline *pairs) {
    out->count = pairs->count - 1;
    out->lines = op_malloc(out->count * sizeof *out->lines);
    if (!out->lines)
        return op_error_set(OP_ENOMEM, "no memory for the clock's lines");
    const op_clock_pair *first = &pairs->pairs[0];
    for (uint32_t i = 0; i < out->count; i++) {
        out->lines[i] = op_clock_through(&pairs->pairs[i], &pairs->pairs[i + 1]);
        /* Joined end to end, so steps of the wall clock within the window have no effect. */
        out->lines[i].base_ns = (int64_t)(pairs->pairs[i].monotonic_ns - first->monotonic_ns);
    }
    return OP_OK;
}

void op_tick_map_free(op_tick_map *l) {
    free(l->lines);
    *l = (op_tick_map){0};
}
