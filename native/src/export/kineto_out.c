/* Writes an imported trace again: events from columns and extras, everything else unchanged. */
#include "core/error.h"
#include "core/fault.h"
#include "core/json_out.h"
#include "core/names.h"
#include "result/imported.h"
#include "result/packed_args.h"
#include "result/result.h"

typedef struct rewriting {
    op_json json;
    const op_result *result;
    const op_trace_side *side; /* NULL: the trace alone; else beside others */
    uint64_t first_id;         /* for the side's async events and arrows */
    op_buffer piece;           /* members of one event */
    bool no_memory;
} rewriting;

uint64_t op_trace_mark_slot(uint32_t name, int on_device, int is_annotation) {
    return (uint64_t)name << 2 | (uint64_t)(on_device != 0) << 1 | (uint64_t)(is_annotation != 0);
}

static const op_trace_mark *mark_of(const rewriting *w, uint64_t row) {
    const op_columns *c = &w->result->columns;
    if (!w->side)
        return NULL;
    uint64_t slot = op_trace_mark_slot(op_names_group(c->name[row]), c->kind[row] >= OP_KERNEL,
                                       c->scope[row] == OP_SCOPE_USER);
    uint32_t mark = slot < w->side->mark_slots ? w->side->mark_of[slot] : 0;
    return mark ? &w->side->marks[mark - 1] : NULL;
}

/* The last point at or before a time, or the first. */
static uint64_t point_at(const op_trace_side *side, int64_t at_ns) {
    uint64_t low = 0, high = side->points;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (side->from_ns[middle] <= at_ns)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static int64_t shown_at(const rewriting *w, int64_t at_ns) {
    const op_result *r = w->result;
    if (!w->side)
        return r->trace_start - r->imported->base_ns + at_ns;
    uint64_t point = point_at(w->side, at_ns);
    return w->side->to_ns[point] + at_ns - w->side->from_ns[point];
}

/* If a side waits for the others between two steps, what contains both becomes longer. An event without
 * contents keeps its length. */
static int64_t shown_duration(const rewriting *w, uint64_t row) {
    const op_columns *c = &w->result->columns;
    int64_t start = c->start_ns[row], duration = c->duration_ns[row];
    if (duration < 0)
        duration = w->result->trace_duration - start;
    if (!w->side || c->kind[row] >= OP_KERNEL || duration == 0)
        return duration;
    /* Its last instant: an event that ends where the next step begins does not wait for that. */
    return shown_at(w, start + duration - 1) + 1 - shown_at(w, start);
}

static void put_text(rewriting *w, uint32_t id) {
    size_t length;
    const char *text = op_string_table_text(&w->result->imported->texts, id, &length);
    op_json_bytes(&w->json, text, length);
}

static void put_members(rewriting *w, uint64_t row, char mark, const char *before, const char *after) {
    const op_imported *i = w->result->imported;
    w->piece.used = 0;
    w->no_memory |= op_packed_args_of_row(i, i->extras[row], mark, &w->piece) != 0;
    if (!w->piece.used)
        return;
    op_json_text(&w->json, before);
    op_json_bytes(&w->json, w->piece.bytes, w->piece.used);
    op_json_text(&w->json, after);
}

static void put_args(rewriting *w, uint64_t row) {
    const op_trace_mark *mark = mark_of(w, row);
    if (!mark) {
        put_members(w, row, OP_TEXT_ARG, ", \"args\": {", "}");
        return;
    }
    PUT(&w->json, ", \"args\": {");
    put_members(w, row, OP_TEXT_ARG, "", ", ");
    op_json_text(&w->json, mark->args);
    PUT(&w->json, "}");
}

static void put_lane(rewriting *w, uint32_t thread) {
    const op_lane *lane = &w->result->imported->lanes[thread];
    PUT(&w->json, "\", \"pid\": ");
    if (w->side)
        op_json_signed(&w->json, w->side->pids[thread]);
    else
        put_text(w, lane->pid);
    PUT(&w->json, ", \"tid\": ");
    if (w->side)
        op_json_signed(&w->json, w->side->tids[thread]);
    else
        put_text(w, lane->tid);
}

/* Members that an event beside others gets anew: its own numbers could clash with other files'. */
static void put_side_members(rewriting *w, uint64_t row, const op_trace_mark *mark) {
    const op_columns *c = &w->result->columns;
    if (c->flags[row] & OP_FLAG_ASYNC) {
        PUT(&w->json, ", \"id\": ");
        op_json_unsigned(&w->json, w->first_id + row);
    } else if (c->kind[row] == OP_MARK || c->kind[row] == OP_MEMORY) {
        PUT(&w->json, ", \"s\": \"t\"");
    }
    if (mark && *mark->color) {
        PUT(&w->json, ", \"cname\": \"");
        op_json_text(&w->json, mark->color);
        PUT(&w->json, "\"");
    }
}

static void put_place(rewriting *w, uint64_t row, char phase, int64_t at_ns) {
    const op_result *r = w->result;
    const op_columns *c = &r->columns;
    const op_trace_mark *mark = mark_of(w, row);
    uint32_t length;
    const char *name = op_names_text(c->name[row], &length);
    const char ph[2] = {phase, 0};
    PUT(&w->json, "{\"ph\": \"");
    op_json_text(&w->json, ph);
    PUT(&w->json, "\", \"cat\": \"");
    op_json_text(&w->json, op_categories[r->imported->category[row]].name);
    if (mark)
        op_json_text(&w->json, mark->category);
    PUT(&w->json, "\", \"name\": \"");
    op_json_escaped(&w->json, name, length);
    if (mark)
        op_json_text(&w->json, mark->label);
    put_lane(w, c->thread[row]);
    PUT(&w->json, ", \"ts\": ");
    op_json_microseconds(&w->json, at_ns);
    if (w->side)
        put_side_members(w, row, mark);
    else
        put_members(w, row, OP_TEXT_MEMBER, ", ", "");
}

static void put_row(rewriting *w, uint64_t row) {
    const op_columns *c = &w->result->columns;
    bool is_async = c->flags[row] & OP_FLAG_ASYNC, is_instant = c->kind[row] == OP_MARK;
    int64_t start = shown_at(w, c->start_ns[row]);
    is_instant |= c->kind[row] == OP_MEMORY;
    put_place(w, row, is_async ? 'b' : is_instant ? 'i' : 'X', start);
    if (!is_async && !is_instant) {
        PUT(&w->json, ", \"dur\": ");
        op_json_microseconds(&w->json, shown_duration(w, row));
    }
    put_args(w, row);
    PUT(&w->json, "}");
    if (is_async && (c->duration_ns[row] >= 0 || w->side)) {
        PUT(&w->json, ",\n");
        put_place(w, row, 'e', start + shown_duration(w, row));
        PUT(&w->json, "}");
    }
}

/* Written before the rows, so that an unmatched end still matches nothing when it is read again. */
static void put_others(rewriting *w) {
    const op_imported *i = w->result->imported;
    const char *at = i->others.bytes;
    for (uint64_t k = 0; k < i->other_count && !w->no_memory; k++) {
        op_json_text(&w->json, k ? ",\n{" : "{");
        w->piece.used = 0;
        w->no_memory |= op_packed_args_write(i, &at, OP_TEXT_MEMBER, &w->piece) != 0;
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
    put_others(w);
    for (uint64_t row = 0; row < r->columns.count && !w->json.failed; row++) {
        if (row || i->other_count)
            PUT(&w->json, ",\n");
        put_row(w, row);
    }
    PUT(&w->json, "\n]}\n");
    op_json_flush(&w->json);
}

static int finish(rewriting *w, bool opened) {
    int failed = w->json.failed;
    op_json_free(&w->json);
    op_buffer_free(&w->piece);
    if (!opened || w->no_memory)
        return op_error_set(OP_ENOMEM, "no memory to write the trace");
    errno = failed;
    return failed ? op_error_errno("the trace") : OP_OK;
}

int op_imported_write(const op_result *r, int fd, const char *metadata) {
    rewriting w = {.result = r};
    bool opened = op_json_open(&w.json, fd);
    if (opened)
        put_trace(&w, metadata);
    return finish(&w, opened);
}

/* ---- several traces side by side --------------------------------------------------------- */

static void put_arrow_end(rewriting *w, uint64_t row, uint64_t id, bool is_launch) {
    op_json_text(&w->json, is_launch ? ",\n{\"ph\": \"s\"" : ",\n{\"ph\": \"f\", \"bp\": \"e\"");
    PUT(&w->json, ", \"id\": ");
    op_json_unsigned(&w->json, id);
    PUT(&w->json, ", \"cat\": \"ac2g\", \"name\": \"ac2g");
    put_lane(w, w->result->columns.thread[row]);
    PUT(&w->json, ", \"ts\": ");
    op_json_microseconds(&w->json, shown_at(w, w->result->columns.start_ns[row]));
    PUT(&w->json, "}");
}

static void put_side(rewriting *w, bool *first) {
    const op_columns *c = &w->result->columns;
    for (uint64_t row = 0; row < c->count && !w->json.failed && !w->no_memory; row++) {
        op_json_text(&w->json, *first ? "" : ",\n");
        *first = false;
        put_row(w, row);
        if (c->launcher[row] >= 0) {
            put_arrow_end(w, (uint64_t)c->launcher[row], w->first_id + row, true);
            put_arrow_end(w, row, w->first_id + row, false);
        }
    }
    w->first_id += c->count;
}

int op_trace_write_sides(const op_trace_side *sides, uint32_t count, int fd, const char *members,
                         const char *events) {
    rewriting w = {.first_id = 1};
    bool opened = op_json_open(&w.json, fd), first = !*events;
    if (opened) {
        PUT(&w.json, "{");
        op_json_text(&w.json, members);
        op_json_text(&w.json, *members ? ", \"traceEvents\": [\n" : "\"traceEvents\": [\n");
        op_json_text(&w.json, events);
        for (uint32_t i = 0; i < count; i++) {
            w.side = &sides[i];
            w.result = sides[i].result;
            put_side(&w, &first);
        }
        PUT(&w.json, "\n]}\n");
        op_json_flush(&w.json);
    }
    return finish(&w, opened);
}

/* ---- members and extras --------------------------------------------------------------------- */

const char *op_result_members(const op_result *r, uint64_t *length) {
    *length = r->imported ? r->imported->members.used : 0;
    return *length ? r->imported->members.bytes : "";
}

uint64_t op_result_other_events(const op_result *r) {
    return r->imported ? r->imported->other_count : 0;
}

uint64_t op_result_unread_events(const op_result *r) {
    return r->imported ? r->imported->unread_count : 0;
}

int op_result_event_args(op_result *r, uint64_t row, const char **text, uint64_t *length) {
    *text = "";
    *length = 0;
    if (!r->imported || row >= r->columns.count)
        return OP_OK;
    op_buffer *answer = &r->imported->answer;
    answer->used = 0;
    if (op_packed_args_of_row(r->imported, r->imported->extras[row], OP_TEXT_ARG, answer))
        return op_error_set(OP_ENOMEM, "no memory for the arguments of an event");
    *text = answer->used ? answer->bytes : "";
    *length = answer->used;
    return OP_OK;
}
