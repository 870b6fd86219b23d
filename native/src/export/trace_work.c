/* CUPTI's data about calls and work, as the args that Kineto writes. */
#include "export/trace_work.h"

#include "core/real_text.h"
#include "cuda/cuda_devices.h"
#include "cuda/cupti_abi.h"
#include "cuda/occupancy.h"
#include "export/trace_writer.h"

static void put_number(op_json *out, const char *key, int64_t value) {
    PUT(out, ",\"");
    op_json_text(out, key);
    PUT(out, "\":");
    op_json_signed(out, value);
}

static void put_real(op_json *out, const char *key, double value) {
    char text[OP_REAL_BYTES];
    PUT(out, ",\"");
    op_json_text(out, key);
    PUT(out, "\":");
    op_json_text(out, op_real_text(text, 9, value));
}

static void put_three(op_json *out, const char *key, int64_t x, int64_t y, int64_t z) {
    PUT(out, ",\"");
    op_json_text(out, key);
    PUT(out, "\":[");
    op_json_signed(out, x);
    PUT(out, ",");
    op_json_signed(out, y);
    PUT(out, ",");
    op_json_signed(out, z);
    PUT(out, "]");
}

static void put_graph(op_json *out, const op_device_work *w) {
    if (!w->graph_node)
        return;
    put_number(out, "graph id", w->graph);
    put_number(out, "graph node id", (int64_t)w->graph_node);
}

/* How far a kernel fills its device: blocks and warps per multiprocessor, share of its threads. */
static void put_load(op_trace *t, const op_device_work *w, int32_t device) {
    if (device < 0 || (uint32_t)device >= t->r->device_count)
        return;
    const op_cuda_device *d = &t->r->devices[device];
    int processors = d->values[OP_DEVICE_PROCESSORS];
    if (processors <= 0)
        return;
    double blocks = (double)w->grid[0] * w->grid[1] * w->grid[2] / processors;
    double threads = (double)w->block[0] * w->block[1] * w->block[2];
    put_real(&t->out, "blocks per SM", blocks);
    put_real(&t->out, "warps per SM", blocks * threads / 32);
    int occupancy = op_occupancy_percent(d, w);
    if (occupancy >= 0)
        put_number(&t->out, "est. achieved occupancy %", occupancy);
}

static void put_kernel(op_trace *t, const op_device_work *w, int32_t device) {
    op_json *out = &t->out;
    put_number(out, "queued", 0);
    put_number(out, "registers per thread", w->registers);
    put_number(out, "shared memory", (int64_t)w->static_shared + w->dynamic_shared);
    put_load(t, w, device);
    put_three(out, "grid", w->grid[0], w->grid[1], w->grid[2]);
    put_three(out, "block", w->block[0], w->block[1], w->block[2]);
    put_graph(out, w);
}

static void put_bytes(op_json *out, const op_device_work *w, int64_t duration_ns) {
    put_number(out, "bytes", (int64_t)w->bytes);
    if (duration_ns > 0) /* bytes per nanosecond */
        put_real(out, "memory bandwidth (GB/s)", (double)w->bytes / (double)duration_ns);
    put_graph(out, w);
}

static void put_sync(op_trace *t, const op_device_work *w, uint32_t row) {
    bool waits_for_event =
        w->sync_type == OP_CUPTI_EVENT_SYNCHRONIZE || w->sync_type == OP_CUPTI_STREAM_WAIT_EVENT;
    PUT(&t->out, ",\"cuda_sync_kind\":\"");
    op_trace_name(t, t->r->columns.name[row]);
    PUT(&t->out, "\"");
    if (!waits_for_event)
        return;
    bool known = w->waited_stream != OP_CUPTI_NO_STREAM;
    put_number(&t->out, "wait_on_stream", known ? (int64_t)w->waited_stream : -1);
    /* Same numbering as the call's own "correlation". */
    put_number(&t->out, "wait_on_cuda_event_record_corr_id",
               w->waited_call < 0 ? -1 : (int64_t)op_result_id(t->r, (uint64_t)w->waited_call));
    put_number(&t->out, "wait_on_cuda_event_id",
               w->value == OP_CUPTI_NO_STREAM ? -1 : (int64_t)w->value);
}

void op_trace_put_work(op_trace *t, uint32_t row) {
    const op_columns *c = &t->r->columns;
    op_device_work w;
    if (!op_result_device_work(t->r, row, &w))
        return;
    put_number(&t->out, "context", w.context);
    switch (c->kind[row]) {
    case OP_KERNEL:
        put_kernel(t, &w, t->r->threads[c->thread[row]].device_index);
        break;
    case OP_SYNC:
        put_sync(t, &w, row);
        break;
    default:
        put_bytes(&t->out, &w, c->duration_ns[row]);
    }
}

void op_trace_put_call(op_trace *t, uint64_t row) {
    op_device_call call;
    if (op_result_device_call(t->r, row, &call))
        put_number(&t->out, "cbid", call.callback);
}

void op_trace_put_devices(op_trace *t) {
    PUT(&t->out, "\"deviceProperties\": [");
    for (uint32_t i = 0; i < t->r->device_count; i++) {
        const op_cuda_device *d = &t->r->devices[i];
        op_json_text(&t->out, i ? ", {\"id\":" : "{\"id\":");
        op_json_unsigned(&t->out, i);
        PUT(&t->out, ",\"name\":\"");
        op_json_escaped(&t->out, d->name, strlen(d->name));
        PUT(&t->out, "\"");
        put_number(&t->out, "totalGlobalMem", (int64_t)d->bytes);
        for (int k = 0; k < OP_DEVICE_ATTRIBUTES; k++)
            put_number(&t->out, op_device_attributes[k], d->values[k]);
        PUT(&t->out, "}");
    }
    PUT(&t->out, "], ");
}
