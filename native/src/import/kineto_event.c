/* Reads one trace event: whether it fits the columns, and its values. */
#include "import/kineto_event.h"

#include "core/error.h"
#include "core/event.h"
#include "core/fault.h"
#include "core/json_scalar.h"
#include "core/names.h"
#include "import/args_in.h"
#include "import/trace_lanes.h"
#include "import/trace_members.h"
#include "result/packed_args.h"

#include <string.h>

/* Flows, counters and names are not work, nor is `Trace`, the profiler's own span. */
static bool looks_like_work(const op_members *m) {
    if (op_member_is(&m->ph, "b"))
        return m->cat.length > 2 && op_category_find(m->cat.text + 1, m->cat.length - 2) >= 0;
    return op_member_is(&m->ph, "X") && !op_member_is(&m->cat, "Trace");
}

static int keep_as_it_stands(op_trace_reader *r, const op_members *m, const op_span *event) {
    if (op_packed_args_add_all(r->imported, &r->imported->others, event, r->scan.has_constant))
        return op_trace_no_memory();
    r->imported->other_count++;
    r->imported->unread_count += looks_like_work(m);
    return OP_OK;
}

/* Notes the profiler's window and the names of threads. */
static int note(op_trace_reader *r, const op_members *m) {
    int64_t at;
    if (op_member_is(&m->ph, "i") && op_scan_nanoseconds(&m->ts, &at) && m->name.length > 2) {
        if (m->name.length > 17 && memcmp(m->name.text + 1, "Iteration Start:", 16) == 0 &&
            at < r->read.first_ns)
            r->read.first_ns = at;
        if (op_member_is(&m->name, "Record Window End") && at > r->read.last_ns)
            r->read.last_ns = at;
        return OP_OK;
    }
    if (!op_member_is(&m->ph, "M") || !op_member_is(&m->name, "thread_name") ||
        !op_member_is_plain(&m->pid) || !op_member_is_plain(&m->tid) || m->args.length < 2 ||
        *m->args.text != '{')
        return OP_OK;
    return op_trace_label_lane(r, &m->pid, &m->tid, &m->args);
}

static int add_extras(op_trace_reader *r, const op_members *m, op_read_event *e, op_read_args *args) {
    op_imported *i = r->imported;
    bool constant = r->scan.has_constant;
    int rc = op_packed_args_begin(i, &e->extras);
    for (int k = 0; rc == OP_OK && k < m->others; k++) {
        uint32_t key =
            op_string_table_intern(&i->texts, OP_TEXT_MEMBER, m->keys[k].text, m->keys[k].length);
        if (!key || op_packed_args_add(i, &i->extra_bytes, key, &m->values[k], constant))
            rc = op_trace_no_memory();
    }
    if (rc == OP_OK && m->args.length && op_args_read(i, &m->args, constant, args))
        rc = op_trace_no_memory();
    if (rc == OP_OK && op_packed_args_end(&i->extra_bytes))
        rc = op_trace_no_memory();
    if (i->extra_bytes.used == e->extras) { /* only the end marker */
        i->extra_bytes.used = e->extras - 1;
        e->extras = 0;
    }
    return rc;
}

/* Many events have the same shapes; they share one block. */
static int add_shapes(op_trace_reader *r, const op_span *dims, uint32_t *at) {
    uint32_t id = op_string_table_intern(&r->imported->texts, OP_TEXT_PLAIN, dims->text, dims->length);
    size_t end = ((size_t)id + 1) * 4, before = r->blocks.used;
    if (!id)
        return op_trace_no_memory();
    if (end > before) {
        char *fresh = op_buffer_extend(&r->blocks, end - before);
        if (!fresh)
            return op_trace_no_memory();
        memset(fresh, 0, end - before);
    }
    memcpy(at, r->blocks.bytes + end - 4, 4);
    if (*at)
        return OP_OK;
    if (op_args_put_shapes(&r->words, dims, at))
        return op_trace_no_memory();
    memcpy(r->blocks.bytes + end - 4, at, 4);
    return OP_OK;
}

static int take_args(op_trace_reader *r, op_read_event *e, const op_read_args *a) {
    bool on_device = e->kind >= OP_KERNEL;
    bool calls = e->kind == OP_RUNTIME || e->kind == OP_DRIVER;
    e->link = on_device || calls ? a->correlation : a->external_id;
    e->sequence_nr = on_device ? a->external_id : a->sequence_nr;
    if (on_device && a->external_id == a->correlation)
        e->sequence_nr = -1; /* some versions write the call's number as External id */
    if (a->is_unfinished && e->kind != OP_MEMORY)
        e->flags |= OP_FLAG_UNFINISHED;
    if (e->kind == OP_TORCH && e->sequence_nr >= 0)
        e->forward_thread = a->forward_thread;
    if (e->forward_thread)
        e->scope = OP_SCOPE_BACKWARD;
    if (e->kind == OP_MEMORY)
        return op_args_put_memory(&r->words, a, &e->args) ? op_trace_no_memory() : OP_OK;
    return a->dims.length ? add_shapes(r, &a->dims, &e->args) : OP_OK;
}

static void refine_kind(op_trace_reader *r, const op_span *name, op_read_event *e) {
    const char *category = op_categories[e->category].name;
    static const char memory[] = "[memory]", out_of_memory[] = "[OutOfMemory]", builtin[] = "<built-in";
    if (e->kind == OP_MARK && (op_key_is(name, memory) || op_key_is(name, out_of_memory)))
        e->kind = OP_MEMORY;
    if (e->kind == OP_PYTHON_CALL && name->length >= sizeof builtin - 1 &&
        memcmp(name->text, builtin, sizeof builtin - 1) == 0)
        e->kind = OP_C_CALL;
    r->read.has_xpu |= strncmp(category, "xpu_", 4) == 0;
    r->read.has_privateuse1 |= strncmp(category, "privateuse1", 11) == 0;
}

static int add_event(op_trace_reader *r, op_read_event **out) {
    op_read_events *read = &r->read;
    if (read->count == r->max_events)
        return op_error_set(OP_ELIMIT, "more than %llu events: raise the limit to read it",
                            (unsigned long long)r->max_events);
    if (read->count == read->capacity) {
        uint64_t capacity = read->capacity ? read->capacity + read->capacity / 2 : 1024;
        op_read_event *grown = op_realloc(read->events, capacity * sizeof *grown);
        if (!grown)
            return op_trace_no_memory();
        read->events = grown;
        read->capacity = capacity;
    }
    *out = &read->events[read->count];
    return OP_OK;
}

/* Each name is looked up once: the reader keeps the ids of texts. */
static int take_name(op_trace_reader *r, op_read_event *e, const op_span *name) {
    bool is_call = e->kind == OP_PYTHON_CALL;
    uint32_t text = op_string_table_intern(&r->names, is_call ? 'c' : 'n', name->text, name->length);
    if (!text)
        return op_trace_no_memory();
    uint32_t known = (uint32_t)(r->name_ids.used / 4);
    if (text > known) { /* texts are numbered consecutively from 1 */
        uint32_t id = is_call ? op_names_lend_call(name->text, name->length, &r->loans)
                              : op_names_lend(name->text, name->length, OP_NAME_NONE, &r->loans);
        if (id == OP_NAME_OVERFLOW)
            return op_error_set(OP_ELIMIT,
                                "this process holds traces with %u distinct names: close some "
                                "before reading more",
                                op_names_count());
        if (id == OP_NAME_NONE || op_buffer_add(&r->name_ids, &id, 4))
            return op_trace_no_memory();
    }
    memcpy(&e->name, r->name_ids.bytes + ((size_t)text - 1) * 4, 4);
    return OP_OK;
}

static int take_event(op_trace_reader *r, const op_members *m, const op_span *name,
                      const op_read_event *is) {
    op_read_event *e = NULL;
    op_read_args args = {.correlation = -1,
                         .external_id = -1,
                         .sequence_nr = -1,
                         .allocated = -1,
                         .reserved = -1,
                         .device_index = -1};
    int rc = add_event(r, &e);
    if (rc != OP_OK)
        return rc;
    *e = *is;
    if ((rc = take_name(r, e, name)) != OP_OK)
        return rc;
    refine_kind(r, name, e);
    if ((rc = op_trace_find_lane(r, &m->pid, &m->tid, op_categories[e->category].device_type,
                                 &e->lane)) ||
        (rc = add_extras(r, m, e, &args)) || (rc = take_args(r, e, &args)))
        return rc;
    if (e->duration_ns < 0)
        r->pending[r->pending_count++] = r->read.count;
    int64_t end = e->start_ns + (e->duration_ns > 0 ? e->duration_ns : 0);
    r->read.first_ns = e->start_ns < r->read.first_ns ? e->start_ns : r->read.first_ns;
    r->read.last_ns = end > r->read.last_ns ? end : r->read.last_ns;
    r->read.count++;
    return OP_OK;
}

/* Whether an open async event has this id; -1: no memory. */
static int has_id(const op_imported *i, const op_read_event *e, const op_span *id) {
    static const char key[] = "\"id\": ";
    op_buffer text = {0};
    int rc = op_packed_args_of_row(i, e->extras, OP_TEXT_MEMBER, &text);
    size_t before = sizeof key - 1;
    bool same = rc == 0 && text.used == before + id->length && memcmp(text.bytes, key, before) == 0 &&
                memcmp(text.bytes + before, id->text, id->length) == 0;
    op_buffer_free(&text);
    return rc ? rc : same;
}

/* Ends the open async event with the same id, category, name and lane. */
static int end_async(op_trace_reader *r, const op_members *m, const op_span *name, op_read_event *end,
                     bool *found) {
    *found = false;
    if (m->others != 1 || m->args.length)
        return OP_OK;
    int rc = take_name(r, end, name);
    if (rc == OP_OK)
        rc = op_trace_find_lane(r, &m->pid, &m->tid, 0, &end->lane);
    for (uint32_t k = r->pending_count; rc == OP_OK && k-- > 0;) {
        op_read_event *e = &r->read.events[r->pending[k]];
        if (e->name != end->name || e->category != end->category || e->lane != end->lane ||
            e->start_ns > end->start_ns)
            continue;
        int same = has_id(r->imported, e, &m->values[0]);
        if (same < 0)
            return op_trace_no_memory();
        if (!same)
            continue;
        *found = true;
        e->duration_ns = end->start_ns - e->start_ns;
        r->read.last_ns = end->start_ns > r->read.last_ns ? end->start_ns : r->read.last_ns;
        memmove(&r->pending[k], &r->pending[k + 1], (--r->pending_count - k) * sizeof *r->pending);
        break;
    }
    return rc;
}

/* Whether the event fits the columns; fills in what its category and phase determine. */
static bool is_modelled(const op_trace_reader *r, const op_members *m, op_read_event *e) {
    *e = (op_read_event){.link = -1, .sequence_nr = -1};
    if (m->ph.length != 3 || *m->ph.text != '"' || m->cat.length < 2 || m->cat.is_escaped ||
        m->too_many || !op_member_is_plain(&m->pid) || !op_member_is_plain(&m->tid) ||
        !op_scan_nanoseconds(&m->ts, &e->start_ns) || (m->args.length && *m->args.text != '{'))
        return false;
    int category = op_category_find(m->cat.text + 1, m->cat.length - 2);
    if (category < 0)
        return false;
    e->category = (uint8_t)category;
    e->kind = op_categories[category].kind;
    e->scope = op_categories[category].scope;
    switch (m->ph.text[1]) {
    case 'X':
        return e->kind != OP_MARK && op_scan_nanoseconds(&m->dur, &e->duration_ns) &&
               e->duration_ns >= 0;
    case 'i':
        return e->kind == OP_MARK && m->dur.length == 0;
    case 'b':
        e->flags = OP_FLAG_ASYNC;
        e->duration_ns = -1;
        return e->kind < OP_KERNEL && e->kind != OP_MARK && m->dur.length == 0 &&
               r->pending_count < OP_MOST_PENDING;
    case 'e':
        return e->kind < OP_KERNEL && r->pending_count > 0;
    default:
        return false;
    }
}

int op_trace_read_event(op_trace_reader *r) {
    op_members m;
    op_read_event e;
    op_span name;
    const char *start = r->scan.at;
    r->scan.has_constant = false;
    int rc = op_members_scan(&r->scan, &m);
    if (rc != OP_SCAN_OK)
        return rc;
    const op_span event = {.text = start, .length = (size_t)(r->scan.at - start)};
    bool modelled = is_modelled(r, &m, &e) && op_member_text(r, &m.name, &name);
    bool taken = modelled;
    if (r->failed)
        return OP_SCAN_OK;
    if (modelled && m.ph.text[1] == 'e')
        r->failed = end_async(r, &m, &name, &e, &taken);
    else if (modelled)
        r->failed = take_event(r, &m, &name, &e);
    else
        r->failed = note(r, &m);
    if (r->failed == OP_OK && !taken)
        r->failed = keep_as_it_stands(r, &m, &event);
    return OP_SCAN_OK;
}
