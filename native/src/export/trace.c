/* Writes Chrome trace events like Kineto's, straight from the columns to a file descriptor. Each name
 * is escaped once, however often it occurs. */
#include "core/error.h"
#include "core/fault.h"
#include "core/names.h"
#include "export/trace_args.h"
#include "export/trace_device.h"
#include "export/trace_labels.h"
#include "export/trace_modules.h"
#include "export/trace_work.h"
#include "export/trace_writer.h"
#include "result/imported.h"

/* Times count from the beginning of a week, so that the traces of a job's processes have the same zero,
 * as with Kineto. Kineto's zero is up to three months back: a reader that stores microseconds in a
 * double then loses the last nanosecond, and slices no longer nest. */
#define BASE_SECONDS (7 * 24 * 3600)

/* ---- host events ---------------------------------------------------------------------------- */

static bool is_instant(uint8_t kind) { return kind == OP_MEMORY || kind == OP_MARK; }

static void put_phase_and_category(op_json *out, const op_columns *c, uint64_t row) {
    switch (c->kind[row]) {
    case OP_PYTHON_CALL:
    case OP_C_CALL:
        PUT(out, ",\n{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"");
        break;
    case OP_MARK:
    case OP_MEMORY:
        PUT(out, ",\n{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"cpu_instant_event\",\"name\":\"");
        break;
    case OP_RUNTIME:
        PUT(out, ",\n{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"");
        break;
    case OP_DRIVER:
        PUT(out, ",\n{\"ph\":\"X\",\"cat\":\"cuda_driver\",\"name\":\"");
        break;
    default:
        if (c->scope[row] == OP_SCOPE_USER)
            PUT(out, ",\n{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"");
        else
            PUT(out, ",\n{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"");
    }
}

/* `nn.Module: Linear_1` is module 1 of its class. */
static void put_module_id(op_json *out, uint32_t name) {
    static const char prefix[] = "nn.Module: ";
    uint32_t length;
    const char *text = op_names_text(name, &length);
    if (length < sizeof prefix || memcmp(text, prefix, sizeof prefix - 1) != 0)
        return;
    uint32_t digits = 0;
    while (digits < length && text[length - 1 - digits] >= '0' && text[length - 1 - digits] <= '9')
        digits++;
    if (digits == 0)
        return;
    PUT(out, "\"Python module id\":");
    op_json_bytes(out, text + length - digits, digits);
    PUT(out, ",");
}

static void put_call_args(op_trace *t, uint64_t row) {
    const op_columns *c = &t->r->columns;
    op_json *out = &t->out;
    PUT(out, "\"Python id\":");
    op_json_unsigned(out, row + 1);
    PUT(out, ",\"Python parent id\":");
    /* 0 for none: readers reject Kineto's null as a number */
    op_json_unsigned(out, c->parent[row] >= 0 ? t->calls[c->parent[row]] : 0);
    PUT(out, ",");
    if (c->kind[row] == OP_PYTHON_CALL)
        put_module_id(out, c->name[row]);
}

/* Ids that link an op to its backward op and to an execution trace. */
static void put_op_args(op_trace *t, uint64_t row) {
    const op_columns *c = &t->r->columns;
    op_json *out = &t->out;
    PUT(out, "\"External id\":");
    op_json_unsigned(out, op_result_id(t->r, row));
    PUT(out, ",\"Record function id\":");
    op_json_unsigned(out, row + 1);
    PUT(out, ",");
    if (c->sequence_nr[row] >= 0) {
        PUT(out, "\"Sequence number\":");
        op_json_signed(out, c->sequence_nr[row]);
        PUT(out, ",\"Fwd thread id\":");
        op_json_unsigned(out, c->forward_thread[row]);
        PUT(out, ",");
    }
}

static void put_event_args(op_trace *t, uint64_t row) {
    const op_columns *c = &t->r->columns;
    op_json *out = &t->out;
    PUT(out, ",\"args\":{");
    switch (c->kind[row]) {
    case OP_PYTHON_CALL:
    case OP_C_CALL:
        put_call_args(t, row);
        break;
    case OP_MEMORY:
        op_trace_put_memory(t, row);
        break;
    case OP_MARK:
        op_trace_put_args(t, row);
        break;
    case OP_RUNTIME:
    case OP_DRIVER:
        op_trace_correlation(t, row);
        op_trace_put_call(t, row);
        PUT(out, "}}");
        return;
    default:
        put_op_args(t, row);
        op_trace_put_args(t, row);
        op_trace_put_modules(t, row);
        op_trace_put_counters(t, row);
        op_trace_put_stack(t, row);
    }
    if (c->flags[row] & OP_FLAG_UNFINISHED && !is_instant(c->kind[row]))
        PUT(out, "\"finished\":false,");
    PUT(out, "\"Ev Idx\":");
    op_json_unsigned(out, row);
    PUT(out, "}}");
}

static void put_arrows(op_trace *t, uint64_t row, const op_place *at) {
    const op_columns *c = &t->r->columns;
    if (t->flows.of_row && t->flows.of_row[row])
        op_trace_arrow(t, c->forward_thread[row] ? OP_BACKWARD : OP_FORWARD, t->flows.of_row[row], at,
                       c->start_ns[row]);
    if (t->launched && t->launched[row])
        op_trace_arrow(t, OP_LAUNCH, row + 1, at, c->start_ns[row]);
}

/* Includes the overload, `aten::transpose.int`, as in torch's traces. */
static void put_name(op_trace *t, uint64_t row) {
    op_trace_name(t, t->r->columns.name[row]);
    uint32_t overload = op_result_overload(t->r, row);
    if (overload != OP_NAME_NONE) {
        PUT(&t->out, ".");
        op_trace_name(t, overload);
    }
}

/* Slices must nest in their track. An event that ended out of order, and a call that partly overlaps a
 * range, becomes a pair of async events on its own track. */
static void put_async(op_trace *t, uint64_t row, const op_place *at) {
    const op_columns *c = &t->r->columns;
    for (int part = 0; part < 2; part++) {
        op_json_text(&t->out, part ? ",\n{\"ph\":\"e\",\"id\":" : ",\n{\"ph\":\"b\",\"id\":");
        op_json_unsigned(&t->out, row + 1);
        op_json_text(&t->out, op_trace_is_call(c, row) ? ",\"cat\":\"python_function\",\"name\":\""
                              : c->scope[row] == OP_SCOPE_USER
                                  ? ",\"cat\":\"user_annotation\",\"name\":\""
                                  : ",\"cat\":\"cpu_op\",\"name\":\"");
        put_name(t, row);
        op_trace_place(t, at, c->start_ns[row] + (part ? op_trace_duration(t->r, row) : 0));
        if (part)
            PUT(&t->out, "}");
        else
            put_event_args(t, row);
    }
}

static void put_event(op_trace *t, uint64_t row) {
    const op_columns *c = &t->r->columns;
    const op_place *at = &t->places[c->thread[row]];
    if (c->flags[row] & (OP_FLAG_ASYNC | OP_FLAG_CROSSING)) {
        put_async(t, row, at);
        return;
    }
    put_phase_and_category(&t->out, c, row);
    put_name(t, row);
    op_trace_place(t, at, c->start_ns[row]);
    if (!is_instant(c->kind[row])) {
        PUT(&t->out, ",\"dur\":");
        op_json_microseconds(&t->out, op_trace_duration(t->r, row));
    }
    put_event_args(t, row);
    put_arrows(t, row, at);
}

/* ---- all of it --------------------------------------------------------------------------- */

static void put_window(op_trace *t, uint64_t events) {
    PUT(&t->out, ",\n{\"ph\":\"X\",\"cat\":\"Trace\",\"name\":\"pytest-opprof (0)\",\"pid\":\"Spans\","
                 "\"tid\":\"pytest-opprof\",\"ts\":");
    op_trace_time(t, 0);
    PUT(&t->out, ",\"dur\":");
    op_json_microseconds(&t->out, t->r->trace_duration);
    PUT(&t->out, ",\"args\":{\"Op count\":");
    op_json_unsigned(&t->out, events);
    PUT(&t->out,
        "}},\n{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":\"Spans\",\"tid\":0,\"ts\":");
    op_trace_time(t, 0);
    PUT(&t->out, ",\"args\":{\"sort_index\":");
    op_json_unsigned(&t->out, OP_SORT_SPANS);
    PUT(&t->out,
        "}},\n{\"ph\":\"i\",\"s\":\"g\",\"name\":\"Record Window End\",\"pid\":\"\",\"tid\":\"\","
        "\"ts\":");
    op_trace_time(t, t->r->trace_duration);
    PUT(&t->out, "}");
}

static void put_trace(op_trace *t, const char *metadata, const char *name) {
    const op_columns *c = &t->r->columns;
    int64_t base = t->r->trace_start / 1000000000 / BASE_SECONDS * BASE_SECONDS * 1000000000;
    t->from_base = t->r->trace_start - base;
    PUT(&t->out, "{\"schemaVersion\": 1, ");
    op_trace_put_devices(t);
    if (*metadata) {
        op_json_text(&t->out, metadata);
        PUT(&t->out, ", ");
    }
    PUT(&t->out, "\"displayTimeUnit\": \"ms\", \"baseTimeNanoseconds\": ");
    op_json_signed(&t->out, base);
    PUT(&t->out,
        ", \"traceEvents\": [\n{\"ph\":\"i\",\"s\":\"g\",\"name\":\"Iteration Start: pytest-opprof\","
        "\"pid\":\"Traces\",\"tid\":\"Trace pytest-opprof\",\"ts\":");
    op_trace_time(t, 0);
    PUT(&t->out, "}");
    op_trace_put_labels(t);
    for (uint64_t row = 0; row < c->count && !t->out.failed; row++)
        if (!op_is_on_device(c, row))
            put_event(t, row);
    for (uint64_t i = 0; i < t->lanes.count && !t->out.failed; i++)
        op_trace_put_device_event(t, &t->lanes.slices[i]);
    put_window(t, c->count);
    PUT(&t->out, "\n], \"traceName\": \"");
    op_json_escaped(&t->out, name, strlen(name));
    PUT(&t->out, "\"}\n");
    op_json_flush(&t->out);
}

static int prepare(op_trace *t) {
    uint64_t frame_count;
    int rc = op_result_cpp_frames(t->r, &t->frames, &frame_count); /* may intern new names */
    if (rc != OP_OK)
        return rc;
    t->name_count = op_names_count() + 2;
    t->names = op_calloc(t->name_count, sizeof *t->names);
    if (!t->names || !op_trace_name_places(t))
        return op_error_set(OP_ENOMEM, "no memory to write the trace");
    rc = op_flows_find(&t->flows, t->r);
    if (rc == OP_OK)
        rc = op_lanes_lay(&t->lanes, t->r);
    if (rc == OP_OK && (!op_trace_note_launches(t) || !op_trace_find_calls(t)))
        rc = op_error_set(OP_ENOMEM, "no memory to write the trace");
    return rc;
}

static void clean_up(op_trace *t) {
    for (uint32_t i = 0; t->names && i < t->name_count; i++)
        free(t->names[i].text);
    free(t->names);
    free(t->places);
    free(t->flows.of_row);
    free(t->lanes.slices);
    free(t->launched);
    free(t->calls);
    free(t->modules);
    op_json_free(&t->out);
}

int op_result_write_trace(const op_result *r, int fd, const char *metadata, const char *trace_name) {
    if (r->imported)
        return op_imported_write(r, fd, metadata);
    op_trace t = {.r = r, .pid = r->pid};
    int rc = op_json_open(&t.out, fd) ? prepare(&t)
                                      : op_error_set(OP_ENOMEM, "no memory to write the trace");
    if (rc == OP_OK)
        put_trace(&t, metadata, trace_name);
    int failed = t.out.failed;
    clean_up(&t);
    if (rc != OP_OK || !failed)
        return rc;
    errno = failed;
    return op_error_errno("the trace");
}
