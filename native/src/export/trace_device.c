#include "export/trace_device.h"

#include "core/fault.h"
#include "export/trace_labels.h"
#include "export/trace_work.h"
#include "export/trace_writer.h"

/* A range on a device was not launched; it contains what was. */
static bool has_launch(const op_columns *c, uint32_t row) {
    return c->launcher[row] >= 0 && c->kind[row] != OP_DEVICE_RANGE;
}

bool op_trace_note_launches(op_trace *t) {
    const op_columns *c = &t->r->columns;
    for (uint64_t i = 0; i < t->lanes.count; i++) {
        uint32_t row = t->lanes.slices[i].row;
        if (!has_launch(c, row))
            continue;
        if (!t->launched && !(t->launched = op_calloc(c->count, 1)))
            return false;
        t->launched[c->launcher[row]] = 1;
    }
    return true;
}

static const char *category(uint8_t kind) {
    switch (kind) {
    case OP_MEMCPY:
        return "gpu_memcpy";
    case OP_MEMSET:
        return "gpu_memset";
    case OP_SYNC:
        return "cuda_sync";
    case OP_DEVICE_RANGE:
        return "gpu_user_annotation";
    default:
        return "kernel";
    }
}

/* Like Kineto's, a range names no stream, because readers would count it as work. */
static void put_range_args(op_trace *t, uint32_t row) {
    int32_t range = t->r->columns.launcher[row];
    PUT(&t->out, ",\"args\":{");
    if (range >= 0) {
        PUT(&t->out, "\"External id\":");
        op_json_unsigned(&t->out, op_result_id(t->r, (uint64_t)range));
    }
    PUT(&t->out, "}}");
}

static void put_args(op_trace *t, uint32_t row, const op_thread_info *stream) {
    const op_columns *c = &t->r->columns;
    PUT(&t->out, ",\"args\":{");
    if (c->launcher[row] >= 0) {
        op_trace_correlation(t, (uint64_t)c->launcher[row]);
        PUT(&t->out, ",");
    }
    PUT(&t->out, "\"device\":");
    op_json_signed(&t->out, stream->device_index);
    PUT(&t->out, ",\"stream\":");
    op_json_signed(&t->out, stream->resource);
    op_trace_put_work(t, row);
    if (c->duration_ns[row] < 0)
        PUT(&t->out, ",\"finished\":false");
    PUT(&t->out, "}}");
}

void op_trace_put_device_event(op_trace *t, const op_lane_slice *slice) {
    const op_columns *c = &t->r->columns;
    uint32_t row = slice->row;
    const op_thread_info *stream = &t->r->threads[c->thread[row]];
    op_place at = op_trace_stream(stream, slice->track);
    PUT(&t->out, ",\n{\"ph\":\"X\",\"cat\":\"");
    op_json_text(&t->out, category(c->kind[row]));
    PUT(&t->out, "\",\"name\":\"");
    op_trace_name(t, c->name[row]);
    op_trace_place(t, &at, c->start_ns[row]);
    PUT(&t->out, ",\"dur\":");
    op_json_microseconds(&t->out, op_trace_duration(t->r, row));
    if (c->kind[row] == OP_DEVICE_RANGE)
        put_range_args(t, row);
    else
        put_args(t, row, stream);
    if (has_launch(c, row))
        op_trace_arrow(t, OP_LAUNCHED, (uint64_t)c->launcher[row] + 1, &at, c->start_ns[row]);
}
