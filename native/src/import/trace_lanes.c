/* The threads and streams of a trace, found by their events' pid and tid. */
#include "import/trace_lanes.h"

#include "core/event.h"
#include "core/grow.h"

#include <string.h>

static uint64_t track_of(const op_lane *lane) { return (uint64_t)lane->pid << 32 | lane->tid; }

int op_trace_find_lane(op_trace_reader *r, const op_span *pid, const op_span *tid, uint8_t device_type,
                       uint32_t *out) {
    op_string_table *texts = &r->imported->texts;
    op_lane lane = {.device_type = device_type,
                    .pid = op_string_table_intern(texts, OP_TEXT_PLAIN, pid->text, pid->length),
                    .tid = op_string_table_intern(texts, OP_TEXT_PLAIN, tid->text, tid->length)};
    op_imported *i = r->imported;
    uint32_t *known =
        lane.pid && lane.tid ? op_key_map_at(&r->lanes, track_of(&lane), device_type) : NULL;
    if (!known || !OP_HAS_ROOM(i->lanes, i->lane_count, r->lane_capacity, 64))
        return op_trace_no_memory();
    if (!*known) {
        i->lanes[i->lane_count] = lane;
        *known = ++i->lane_count;
    }
    *out = *known - 1;
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
    for (size_t at = 0; at < r->labels.used; at += sizeof(op_lane)) {
        op_lane label;
        memcpy(&label, r->labels.bytes + at, sizeof label);
        for (uint8_t device_type = 0; device_type <= OP_MOST_DEVICE_TYPES; device_type++) {
            const uint32_t *lane = op_key_map_find(&r->lanes, track_of(&label), device_type);
            if (lane && *lane)
                r->imported->lanes[*lane - 1].label = label.label;
        }
    }
}
