/* A trace that was read, written again: its events from the columns and what was kept beside them,
 * and all else as it stood. */
#include "error.h"
#include "fault.h"
#include "imported.h"
#include "json_out.h"
#include "names.h"
#include "result.h"

typedef struct rewriting {
    op_json json;
    const op_result *result;
    op_buffer piece; /* members of one event */
    bool no_memory;
} rewriting;

static void put_text(rewriting *w, uint32_t id) {
    size_t length;
    const char *text = op_texts_text(&w->result->imported->texts, id, &length);
    op_json_bytes(&w->json, text, length);
}

static void put_members(rewriting *w, uint64_t row, char mark, const char *before, const char *after) {
    const op_imported *i = w->result->imported;
    w->piece.used = 0;
    w->no_memory |= op_extras_of_row(i, i->extras[row], mark, &w->piece) != 0;
    if (!w->piece.used)
        return;
    op_json_text(&w->json, before);
    op_json_bytes(&w->json, w->piece.bytes, w->piece.used);
    op_json_text(&w->json, after);
}

static void put_place(rewriting *w, uint64_t row, char phase, int64_t at_ns) {
    const op_result *r = w->result;
    const op_columns *c = &r->columns;
    const op_lane *lane = &r->imported->lanes[c->thread[row]];
    uint32_t length;
    const char *name = op_names_text(c->name[row], &length);
    const char ph[2] = {phase, 0};
    PUT(&w->json, "{\"ph\": \"");
    op_json_text(&w->json, ph);
    PUT(&w->json, "\", \"cat\": \"");
    op_json_text(&w->json, op_categories[r->imported->category[row]].name);
    PUT(&w->json, "\", \"name\": \"");
    op_json_escaped(&w->json, name, length);
    PUT(&w->json, "\", \"pid\": ");
    put_text(w, lane->pid);
    PUT(&w->json, ", \"tid\": ");
    put_text(w, lane->tid);
    PUT(&w->json, ", \"ts\": ");
    op_json_microseconds(&w->json, at_ns);
    put_members(w, row, OP_TEXT_MEMBER, ", ", "");
}

static void put_row(rewriting *w, uint64_t row) {
    const op_result *r = w->result;
    const op_columns *c = &r->columns;
    bool is_async = c->flags[row] & OP_FLAG_ASYNC, is_instant = c->kind[row] == OP_MARK;
    int64_t start = r->trace_start - r->imported->base_ns + c->start_ns[row];
    int64_t duration = c->duration_ns[row];
    if (duration < 0 && !is_async)
        duration = r->trace_duration - c->start_ns[row];
    is_instant |= c->kind[row] == OP_MEMORY;
    put_place(w, row, is_async ? 'b' : is_instant ? 'i' : 'X', start);
    if (!is_async && !is_instant) {
        PUT(&w->json, ", \"dur\": ");
        op_json_microseconds(&w->json, duration);
    }
    put_members(w, row, OP_TEXT_ARG, ", \"args\": {", "}");
    PUT(&w->json, "}");
    if (is_async && duration >= 0) {
        PUT(&w->json, ",\n");
        put_place(w, row, 'e', start + duration);
        PUT(&w->json, "}");
    }
}

static void put_others(rewriting *w) {
    const op_imported *i = w->result->imported;
    const char *at = i->others.bytes;
    for (uint64_t k = 0; k < i->other_count && !w->no_memory; k++) {
        op_json_text(&w->json, k || w->result->columns.count ? ",\n{" : "{");
        w->piece.used = 0;
        w->no_memory |= op_extras_write(i, &at, OP_TEXT_MEMBER, &w->piece) != 0;
        op_json_bytes(&w->json, w->piece.bytes, w->piece.used);
        PUT(&w->json, "}");
    }
}

static void put_trace(rewriting *w, const char *metadata) {
    const op_result *r = w->result;
    const op_imported *i = r->imported;
    PUT(&w->json, "{");
    op_json_bytes(&w->json, i->members.bytes, i->members.used);
    if (i->members.used && *metadata)
        PUT(&w->json, ", ");
    op_json_text(&w->json, metadata);
    if (i->members.used || *metadata)
        PUT(&w->json, ", ");
    PUT(&w->json, "\"traceEvents\": [\n");
    for (uint64_t row = 0; row < r->columns.count && !w->json.failed; row++) {
        if (row)
            PUT(&w->json, ",\n");
        put_row(w, row);
    }
    put_others(w);
    PUT(&w->json, "\n]}\n");
    op_json_flush(&w->json);
}

int op_imported_write(const op_result *r, int fd, const char *metadata) {
    rewriting w = {.result = r};
    bool opened = op_json_open(&w.json, fd);
    if (opened)
        put_trace(&w, metadata);
    int failed = w.json.failed;
    op_json_free(&w.json);
    op_buffer_free(&w.piece);
    if (!opened || w.no_memory)
        return op_error_set(OP_ENOMEM, "no memory to write the trace");
    errno = failed;
    return failed ? op_error_errno("the trace") : OP_OK;
}

/* ---- what was kept ---------------------------------------------------------------------- */

const char *op_result_members(const op_result *r, uint64_t *length) {
    *length = r->imported ? r->imported->members.used : 0;
    return *length ? r->imported->members.bytes : "";
}

uint64_t op_result_other_events(const op_result *r) {
    return r->imported ? r->imported->other_count : 0;
}

int op_result_event_args(op_result *r, uint64_t row, const char **text, uint64_t *length) {
    *text = "";
    *length = 0;
    if (!r->imported || row >= r->columns.count)
        return OP_OK;
    op_buffer *answer = &r->imported->answer;
    answer->used = 0;
    if (op_extras_of_row(r->imported, r->imported->extras[row], OP_TEXT_ARG, answer))
        return op_error_set(OP_ENOMEM, "no memory for the arguments of an event");
    *text = answer->used ? answer->bytes : "";
    *length = answer->used;
    return OP_OK;
}
