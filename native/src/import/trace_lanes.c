/* The threads and streams of a trace, found by their events' pid and tid. */
#include "import/trace_lanes.h"

#include "core/event.h"
#include "core/fault.h"

#include <string.h>

static uint32_t lane_hash(const op_lane *lane) {
    uint64_t h = (uint64_t)lane->pid << 32 | lane->tid;
    h = (h ^ (uint64_t)lane->device_type << 24) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(h >> 32);
}

static bool lanes_make_room(op_trace_reader *r) {
    op_imported *i = r->imported;
    if (i->lane_count < r->lane_capacity)
        return true;
    uint32_t capacity = r->lane_capacity ? r->lane_capacity * 2 : 64;
    op_lane *lanes = op_realloc(i->lanes, capacity * sizeof *lanes);
    if (lanes)
        i->lanes = lanes;
    uint32_t *slots = lanes ? op_calloc((size_t)capacity * 2, sizeof *slots) : NULL;
    if (!slots)
        return false;
    free(r->slots);
    r->slots = slots;
    r->slot_mask = capacity * 2 - 1;
    r->lane_capacity = capacity;
    for (uint32_t lane = 0; lane < i->lane_count; lane++) {
        uint32_t at = lane_hash(&lanes[lane]) & r->slot_mask;
        while (slots[at])
            at = (at + 1) & r->slot_mask;
        slots[at] = lane + 1;
    }
    return true;
}

static uint32_t *lane_slot(const op_trace_reader *r, const op_lane *lane) {
    const op_lane *lanes = r->imported->lanes;
    uint32_t at = lane_hash(lane) & r->slot_mask;
    for (; r->slots[at]; at = (at + 1) & r->slot_mask) {
        const op_lane *known = &lanes[r->slots[at] - 1];
        if (known->pid == lane->pid && known->tid == lane->tid &&
            known->device_type == lane->device_type)
            break;
    }
    return &r->slots[at];
}

int op_trace_find_lane(op_trace_reader *r, const op_span *pid, const op_span *tid, uint8_t device_type,
                       uint32_t *out) {
    op_string_table *texts = &r->imported->texts;
    op_lane lane = {.device_type = device_type,
                    .pid = op_string_table_intern(texts, OP_TEXT_PLAIN, pid->text, pid->length),
                    .tid = op_string_table_intern(texts, OP_TEXT_PLAIN, tid->text, tid->length)};
    if (!lane.pid || !lane.tid || !lanes_make_room(r))
        return op_trace_no_memory();
    uint32_t *slot = lane_slot(r, &lane);
    if (!*slot) {
        r->imported->lanes[r->imported->lane_count] = lane;
        *slot = ++r->imported->lane_count;
    }
    *out = *slot - 1;
    return OP_OK;
}

int op_trace_label_lane(op_trace_reader *r, const op_span *pid, const op_span *tid,
                        const op_span *args) {
    op_string_table *t = &r->imported->texts;
    op_lane label = {.pid = op_string_table_intern(t, OP_TEXT_PLAIN, pid->text, pid->length),
                     .tid = op_string_table_intern(t, OP_TEXT_PLAIN, tid->text, tid->length),
                     .label = op_string_table_intern(t, OP_TEXT_PLAIN, args->text, args->length)};
    if (!label.pid || !label.tid || !label.label || op_buffer_add(&r->labels, &label, sizeof label))
        return op_trace_no_memory();
    return OP_OK;
}

/* A label does not name a type of device: a pid and tid may be both a thread and a stream. */
void op_trace_apply_labels(op_trace_reader *r) {
    for (size_t at = 0; r->slots && at < r->labels.used; at += sizeof(op_lane)) {
        op_lane label;
        memcpy(&label, r->labels.bytes + at, sizeof label);
        for (uint8_t device_type = 0; device_type <= OP_MOST_DEVICE_TYPES; device_type++) {
            label.device_type = device_type;
            uint32_t lane = *lane_slot(r, &label);
            if (lane)
                r->imported->lanes[lane - 1].label = label.label;
        }
    }
}
