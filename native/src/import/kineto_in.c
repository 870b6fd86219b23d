/* Reads a trace in Kineto's format as it arrives. Bytes are kept until their event or member is
 * complete; then only op_read_event and op_imported keep its data. */
#include "core/error.h"
#include "core/event.h"
#include "core/fault.h"
#include "core/json_scalar.h"
#include "import/args_in.h"
#include "import/kineto_event.h"
#include "import/kineto_rows.h"
#include "import/trace_lanes.h"
#include "result/packed_args.h"

#include <string.h>

#define LARGEST_VALUE ((size_t)64 << 20) /* per event, or other member of the file's object */
#define MOST_EVENTS ((uint64_t)INT32_MAX)

static int fail_at(const op_trace_reader *r, const char *at, const char *problem) {
    uint64_t byte = r->passed + (uint64_t)(at - r->buffer.bytes);
    return op_error_set(OP_EFORMAT, "byte %llu: %s", (unsigned long long)byte, problem);
}

static int too_large(const op_trace_reader *r, const char *at) {
    return op_error_set(
        OP_ELIMIT,
        "the event or member at byte %llu has more than %zu MiB of JSON: remove it from the file",
        (unsigned long long)(r->passed + (uint64_t)(at - r->buffer.bytes)), LARGEST_VALUE >> 20);
}

int op_trace_open(op_trace_reader **out, uint64_t max_events, uint64_t max_bytes) {
    op_trace_reader *r = op_calloc(1, sizeof *r);
    *out = NULL;
    if (!r)
        return op_trace_no_memory();
    r->imported = op_calloc(1, sizeof *r->imported);
    r->pending = op_malloc(OP_MOST_PENDING * sizeof *r->pending);
    r->max_events = max_events && max_events < MOST_EVENTS ? max_events : MOST_EVENTS;
    r->max_bytes = max_bytes ? max_bytes : UINT64_MAX;
    r->read.first_ns = INT64_MAX;
    r->read.last_ns = INT64_MIN;
    if (!r->imported || !r->pending || op_args_prepare(r->imported)) {
        op_trace_close(r);
        return op_trace_no_memory();
    }
    *out = r;
    return OP_OK;
}

void op_trace_close(op_trace_reader *r) {
    if (!r)
        return;
    op_imported_free(r->imported);
    op_scan_free(&r->scan);
    op_buffer_free(&r->buffer);
    op_buffer_free(&r->words);
    op_buffer_free(&r->blocks);
    op_buffer_free(&r->labels);
    op_buffer_free(&r->name);
    op_string_table_free(&r->names);
    op_buffer_free(&r->name_ids);
    op_names_return(&r->loans);
    free(r->read.events);
    op_key_map_free(&r->lanes);
    free(r->pending);
    free(r);
}

/* ---- the file's object ------------------------------------------------------------------ */

static int start(op_trace_reader *r) {
    op_scan *j = &r->scan;
    static const char mark[] = "\xef\xbb\xbf"; /* of UTF-8 text */
    size_t there = (size_t)(j->end - j->at);
    if (r->passed == 0 && there && memcmp(j->at, mark, there < 3 ? there : 3) == 0) {
        if (there < 3 && !j->is_last)
            return OP_SCAN_MORE;
        j->at += there < 3 ? there : 3;
    }
    char c = op_scan_peek(j);
    if (j->at == j->end && !j->is_last)
        return OP_SCAN_MORE;
    if (c != '{' && c != '[') {
        j->problem = j->at == j->end ? "the file is empty" : "neither an object nor a list of events";
        return OP_SCAN_BAD;
    }
    j->at++;
    r->is_list = c == '[';
    r->state = r->is_list ? IN_EVENTS : IN_OBJECT;
    r->has_events = r->is_list;
    r->first = true;
    return OP_SCAN_OK;
}

static int keep_member(op_trace_reader *r, const op_span *key, const op_span *value) {
    op_buffer *b = &r->imported->members;
    static const char base[] = "baseTimeNanoseconds";
    int64_t number;
    if (key->length == sizeof base - 1 && memcmp(key->text, base, sizeof base - 1) == 0 &&
        op_scan_integer(value, &number))
        r->imported->base_ns = number;
    if ((b->used && op_buffer_add(b, ", ", 2)) || op_buffer_add(b, "\"", 1) ||
        op_buffer_add(b, key->text, key->length) || op_buffer_add(b, "\": ", 3) ||
        op_json_copy(b, value, r->scan.has_constant))
        return op_trace_no_memory();
    return OP_OK;
}

static int read_member(op_trace_reader *r) {
    static const char events[] = "traceEvents";
    op_scan *j = &r->scan;
    bool more;
    op_span key, value;
    j->has_constant = false;
    int rc = op_scan_next(j, '}', &r->first, &more);
    if (rc == OP_SCAN_OK && !more)
        r->state = AT_END;
    if (rc != OP_SCAN_OK || !more || (rc = op_scan_key(j, &key)))
        return rc;
    if (key.length != sizeof events - 1 || memcmp(key.text, events, key.length) != 0) {
        rc = op_scan_value(j, &value);
        if (rc == OP_SCAN_OK)
            r->failed = keep_member(r, &key, &value);
        return rc;
    }
    char c = op_scan_peek(j);
    if (j->at == j->end && !j->is_last)
        return OP_SCAN_MORE;
    if (c != '[' || r->has_events) {
        j->problem = r->has_events ? "traceEvents appears twice" : "traceEvents is not a list";
        return OP_SCAN_BAD;
    }
    j->at++;
    r->has_events = r->first = true;
    r->state = IN_EVENTS;
    return OP_SCAN_OK;
}

static int read_item(op_trace_reader *r) {
    op_scan *j = &r->scan;
    bool more;
    int rc = op_scan_next(j, ']', &r->first, &more);
    if (rc != OP_SCAN_OK)
        return rc;
    if (!more) {
        r->state = r->is_list ? AT_END : IN_OBJECT;
        r->first = false;
        return OP_SCAN_OK;
    }
    char c = op_scan_peek(j);
    if (j->at == j->end && !j->is_last)
        return OP_SCAN_MORE;
    if (c != '{') {
        j->problem = j->at == j->end ? "the text ends here" : "an event that is not an object";
        return OP_SCAN_BAD;
    }
    return op_trace_read_event(r);
}

static int read_on(op_trace_reader *r) {
    switch (r->state) {
    case AT_START:
        return start(r);
    case IN_OBJECT:
        return read_member(r);
    case IN_EVENTS:
        return read_item(r);
    default:
        op_scan_peek(&r->scan);
        r->scan.problem = "more text after the trace's end";
        return r->scan.at < r->scan.end ? OP_SCAN_BAD : OP_SCAN_MORE;
    }
}

/* ---- the file --------------------------------------------------------------------------- */

/* Reads all that is complete. The rest is read again when there is more; if it is long, only after
 * twice as many bytes, so that the total cost is a few times its length. */
static int read_all(op_trace_reader *r) {
    op_scan *j = &r->scan;
    j->at = r->buffer.bytes;
    j->end = r->buffer.bytes + r->buffer.used;
    for (;;) {
        const char *before = j->at;
        bool first = r->first;
        int rc = read_on(r);
        if (rc == OP_SCAN_OK && (size_t)(j->at - before) > LARGEST_VALUE)
            return r->failed = too_large(r, before);
        if (rc == OP_SCAN_OK && r->failed == OP_OK)
            continue;
        if (rc == OP_SCAN_MORE) {
            j->at = before;
            r->first = first;
            break;
        }
        if (r->failed != OP_OK)
            return r->failed;
        return r->failed = rc == OP_SCAN_NOMEM ? op_trace_no_memory() : fail_at(r, j->at, j->problem);
    }
    size_t rest = (size_t)(j->end - j->at);
    if (rest > LARGEST_VALUE)
        return r->failed = too_large(r, j->at);
    if (rest)
        memmove(r->buffer.bytes, j->at, rest);
    r->passed += r->buffer.used - rest;
    r->buffer.used = rest;
    r->wait_for = 2 * rest < LARGEST_VALUE ? 2 * rest : LARGEST_VALUE + 1;
    return OP_OK;
}

int op_trace_feed(op_trace_reader *r, const char *bytes, uint64_t count) {
    if (r->failed)
        return r->failed;
    if (r->passed + r->buffer.used + count > r->max_bytes)
        return r->failed =
                   op_error_set(OP_ELIMIT, "more than %llu bytes of JSON: raise the limit to read it",
                                (unsigned long long)r->max_bytes);
    if (op_buffer_add(&r->buffer, bytes, count))
        return r->failed = op_trace_no_memory();
    return r->buffer.used < r->wait_for ? OP_OK : read_all(r);
}

static int finish(op_trace_reader *r, op_result *result) {
    op_trace_apply_labels(r);
    result->args = (uint32_t *)(void *)r->words.bytes;
    result->arg_words = r->words.used / 4;
    r->words = (op_buffer){0};
    result->imported = r->imported;
    r->imported = NULL;
    result->names = r->loans;
    r->loans = (op_name_loans){0};
    op_buffer_free(&r->buffer);
    op_buffer_free(&r->blocks);
    return op_rows_build(&r->read, result);
}

int op_trace_finish(op_trace_reader *r, op_result **out) {
    *out = NULL;
    r->scan.is_last = true;
    if (!r->failed && (r->buffer.used || r->state != AT_END) && !read_all(r) && r->state != AT_END)
        r->failed = fail_at(r, r->buffer.bytes, "the text ends here");
    if (!r->failed && !r->has_events)
        r->failed = op_error_set(OP_EFORMAT, "not a trace: it has no traceEvents");
    if (r->failed)
        return r->failed;
    op_result *result = op_result_new();
    if (!result)
        return r->failed = op_trace_no_memory();
    int rc = finish(r, result);
    r->failed = rc ? rc : op_error_set(OP_ESTATE, "the trace was already read to its end");
    if (rc)
        op_result_free(result);
    else
        *out = result;
    return rc;
}
