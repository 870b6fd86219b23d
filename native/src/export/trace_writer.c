#include "export/trace_writer.h"

#include "core/fault.h"
#include "core/names.h"

void op_trace_name(op_trace *t, uint32_t id) {
    if (id >= t->name_count)
        id = OP_NAME_OVERFLOW;
    op_escaped_name *name = &t->names[id];
    if (__builtin_expect(name->text == NULL, 0)) {
        uint32_t n;
        const char *text = op_names_text(id, &n);
        char *copy = op_malloc((size_t)n * 6 + 1);
        if (!copy) {
            op_json_escaped(&t->out, text, n);
            return;
        }
        name->length = (uint32_t)(op_json_escape(copy, text, n) - copy);
        name->text = copy;
    }
    op_json_bytes(&t->out, name->text, name->length);
}

/* An arrow begins or ends at the slice that contains its time. */
void op_trace_arrow(op_trace *t, enum op_arrow end, uint64_t id, const op_place *at, int64_t at_ns) {
    static const char *const phases[] = {[OP_LAUNCH] = "s\"",
                                         [OP_LAUNCHED] = "f\",\"bp\":\"e\"",
                                         [OP_FORWARD] = "s\"",
                                         [OP_BACKWARD] = "f\",\"bp\":\"e\""};
    PUT(&t->out, ",\n{\"ph\":\"");
    op_json_text(&t->out, phases[end]);
    PUT(&t->out, ",\"id\":");
    op_json_unsigned(&t->out, id);
    op_json_text(&t->out, end == OP_LAUNCH || end == OP_LAUNCHED
                              ? ",\"cat\":\"ac2g\",\"name\":\"ac2g"
                              : ",\"cat\":\"fwdbwd\",\"name\":\"fwdbwd");
    op_trace_place(t, at, at_ns);
    PUT(&t->out, "}");
}

int64_t op_trace_duration(const op_result *r, uint64_t row) {
    int64_t duration = r->columns.duration_ns[row];
    if (duration < 0)
        duration = r->trace_duration - r->columns.start_ns[row];
    return duration < 0 ? 0 : duration;
}

/* The op or range around a runtime call, to which the call belongs. */
static uint64_t op_around(const op_columns *c, uint64_t row) {
    bool is_call = c->kind[row] == OP_RUNTIME || c->kind[row] == OP_DRIVER;
    return is_call && c->parent[row] >= 0 ? (uint64_t)c->parent[row] : row;
}

void op_trace_correlation(op_trace *t, uint64_t call_row) {
    PUT(&t->out, "\"External id\":");
    op_json_unsigned(&t->out, op_result_id(t->r, op_around(&t->r->columns, call_row)));
    PUT(&t->out, ",\"correlation\":");
    op_json_unsigned(&t->out, op_result_id(t->r, call_row));
}
