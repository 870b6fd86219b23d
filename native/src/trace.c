/* Chrome trace events, as Kineto writes them, straight from the columns to a file descriptor.
 * Every name goes through one JSON string writer, escaped once however often it occurs. */
#include "error.h"
#include "fault.h"
#include "fields.h"
#include "imported.h"
#include "inputs.h"
#include "names.h"
#include "result.h"

#include <stdio.h>
#include <string.h>

#define BUFFER (1u << 20)
#define LARGEST_PIECE 512u /* room asked for before a number, a key or one character */

typedef struct escaped_name {
    char *text; /* NULL: not yet */
    size_t length;
} escaped_name;

typedef struct writer {
    int fd;
    char *buffer, *at;
    int failed; /* errno */
    uint64_t pid;
    escaped_name *names; /* by id */
    uint32_t name_count;
} writer;

static void flush(writer *w) {
    const char *from = w->buffer;
    while (!w->failed && from < w->at) {
        ssize_t n = op_write(w->fd, from, (size_t)(w->at - from));
        if (n < 0 && errno != EINTR)
            w->failed = errno;
        else if (n > 0)
            from += n;
    }
    w->at = w->buffer;
}

static void reserve(writer *w, size_t bytes) {
    if ((size_t)(w->buffer + BUFFER - w->at) < bytes)
        flush(w);
}

static void put_bytes(writer *w, const char *text, size_t n) {
    while (n > 0) {
        reserve(w, LARGEST_PIECE);
        size_t room = (size_t)(w->buffer + BUFFER - w->at), piece = n < room ? n : room;
        memcpy(w->at, text, piece);
        w->at += piece;
        text += piece;
        n -= piece;
    }
}

/* A constant length makes the copy a few moves. */
static inline void put_literal(writer *w, const char *text, size_t n) {
    if (__builtin_expect((size_t)(w->buffer + BUFFER - w->at) < n, 0)) {
        put_bytes(w, text, n);
        return;
    }
    memcpy(w->at, text, n);
    w->at += n;
}

#define PUT(w, literal) put_literal(w, literal, sizeof(literal) - 1)

static void put_text(writer *w, const char *text) { put_bytes(w, text, strlen(text)); }

static void put_unsigned(writer *w, uint64_t value) {
    static const char pairs[] = "0001020304050607080910111213141516171819"
                                "2021222324252627282930313233343536373839"
                                "4041424344454647484950515253545556575859"
                                "6061626364656667686970717273747576777879"
                                "8081828384858687888990919293949596979899";
    char digits[20], *at = digits + sizeof digits;
    while (value >= 100) {
        at -= 2;
        memcpy(at, pairs + value % 100 * 2, 2);
        value /= 100;
    }
    if (value >= 10) {
        at -= 2;
        memcpy(at, pairs + value * 2, 2);
    } else {
        *--at = (char)('0' + value);
    }
    size_t n = (size_t)(digits + sizeof digits - at);
    reserve(w, LARGEST_PIECE);
    memcpy(w->at, at, n);
    w->at += n;
}

static void put_signed(writer *w, int64_t value) {
    if (value < 0)
        PUT(w, "-");
    put_unsigned(w, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

/* Nanoseconds as microseconds with three decimals. */
static void put_microseconds(writer *w, int64_t ns) {
    if (ns < 0) {
        PUT(w, "-");
        ns = -ns;
    }
    put_unsigned(w, (uint64_t)ns / 1000);
    reserve(w, LARGEST_PIECE);
    uint32_t rest = (uint32_t)((uint64_t)ns % 1000);
    *w->at++ = '.';
    *w->at++ = (char)('0' + rest / 100);
    *w->at++ = (char)('0' + rest / 10 % 10);
    *w->at++ = (char)('0' + rest % 10);
}

/* ---- strings ---------------------------------------------------------------------------- */

/* Length of the UTF-8 character at `s`; 0 where the bytes are none. Surrogates are allowed: they
 * are what "surrogatepass" makes of a Python string. */
static uint32_t character(const uint8_t *s, size_t n, uint32_t *code) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t length = *s < 0x80 ? 1 : *s >> 5 == 6 ? 2 : *s >> 4 == 14 ? 3 : *s >> 3 == 30 ? 4 : 0;
    if (length == 0 || length > n)
        return 0;
    *code = length == 1 ? *s : *s & (0x7fu >> length);
    for (uint32_t i = 1; i < length; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (s[i] & 0x3f);
    }
    return *code < least[length] || *code > 0x10ffff ? 0 : length;
}

/* Writes the JSON string's inside to `out` (six bytes a byte at most) and returns its end. */
static char *escape(char *out, const char *text, size_t n) {
    static const char hex[] = "0123456789abcdef";
    const uint8_t *s = (const uint8_t *)text;
    while (n) {
        uint32_t code = 0xfffd, length = character(s, n, &code);
        if (code == '"' || code == '\\') {
            *out++ = '\\';
            *out++ = (char)code;
        } else if (code < 0x20 || code == 0x7f || (code >= 0xd800 && code < 0xe000) || !length) {
            uint32_t unit = length ? code : 0xfffd; /* not UTF-8: the replacement character */
            *out++ = '\\';
            *out++ = 'u';
            for (int shift = 12; shift >= 0; shift -= 4)
                *out++ = hex[unit >> shift & 15];
        } else {
            memcpy(out, s, length);
            out += length;
        }
        uint32_t step = length ? length : 1;
        s += step;
        n -= step;
    }
    return out;
}

static void put_escaped(writer *w, const char *text, size_t n) {
    char piece[6 * 64];
    while (n) {
        size_t take = n < 64 ? n : 64;
        while (take < n && take > 60 && ((uint8_t)text[take] & 0xc0) == 0x80)
            take--; /* do not cut a character */
        put_bytes(w, piece, (size_t)(escape(piece, text, take) - piece));
        text += take;
        n -= take;
    }
}

static void put_name(writer *w, uint32_t id) {
    if (id >= w->name_count)
        id = OP_NAME_OVERFLOW;
    escaped_name *name = &w->names[id];
    if (!name->text) {
        uint32_t n;
        const char *text = op_names_text(id, &n);
        char *copy = op_malloc((size_t)n * 6 + 1);
        if (!copy) {
            put_escaped(w, text, n);
            return;
        }
        name->length = (size_t)(escape(copy, text, n) - copy);
        name->text = copy;
    }
    put_bytes(w, name->text, name->length);
}

/* ---- inputs ----------------------------------------------------------------------------- */

enum input_part { DIMS, STRIDES, TYPES, VALUES };

static void put_double(writer *w, int64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    char text[40];
    snprintf(text, sizeof text, "%.17g", value);
    put_text(w, text);
}

/* JSON has no word for what is no number: it goes as a string. */
static void put_json_double(writer *w, int64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    bool is_number = value - value == 0;
    if (!is_number)
        PUT(w, "\"");
    put_double(w, bits);
    if (!is_number)
        PUT(w, "\"");
}

static void put_value(writer *w, const uint32_t *token) {
    uint32_t tag = *token & 0xff, n = *token >> 16;
    switch (tag) {
    case OP_INPUT_INT:
        put_signed(w, op_input_word(token, 0));
        break;
    case OP_INPUT_DOUBLE:
        put_double(w, op_input_word(token, 0));
        break;
    case OP_INPUT_BOOL:
        put_text(w, n ? "True" : "False");
        break;
    case OP_INPUT_TEXT:
        put_escaped(w, (const char *)(token + 1), n);
        break;
    case OP_INPUT_INT_LIST:
    case OP_INPUT_DOUBLE_LIST:
    case OP_INPUT_BOOL_LIST:
        PUT(w, "[");
        for (uint32_t i = 0; i < n; i++) {
            if (i)
                PUT(w, ", ");
            if (tag == OP_INPUT_DOUBLE_LIST)
                put_double(w, op_input_word(token, i));
            else if (tag == OP_INPUT_INT_LIST)
                put_signed(w, op_input_word(token, i));
            else
                put_text(w, op_input_word(token, i) ? "True" : "False");
        }
        PUT(w, "]");
        break;
    default:
        break;
    }
}

static const char *type_name(uint32_t token) {
    switch (token & 0xff) {
    case OP_INPUT_TENSOR:
    case OP_INPUT_TENSOR_WIDE:
    case OP_INPUT_TENSOR_UNSTRIDED:
        return op_dtype_name(token >> 8 & 0xff);
    case OP_INPUT_TENSOR_LIST:
        return "TensorList";
    case OP_INPUT_INT:
    case OP_INPUT_DOUBLE:
    case OP_INPUT_BOOL:
        return "Scalar";
    case OP_INPUT_INT_LIST:
    case OP_INPUT_DOUBLE_LIST:
    case OP_INPUT_BOOL_LIST:
        return "ScalarList";
    default:
        return "";
    }
}

static void put_sizes(writer *w, const uint32_t *token, enum input_part part) {
    uint32_t tag = *token & 0xff, n = *token >> 16;
    bool known = tag == OP_INPUT_TENSOR || tag == OP_INPUT_TENSOR_WIDE ||
                 (tag == OP_INPUT_TENSOR_UNSTRIDED && part == DIMS);
    PUT(w, "[");
    for (uint32_t i = 0; known && i < n; i++) {
        if (i)
            PUT(w, ",");
        put_signed(w, op_input_word(token, part == STRIDES ? n + i : i));
    }
    PUT(w, "]");
}

static void put_part(writer *w, const uint32_t *token, enum input_part part) {
    if (part == DIMS || part == STRIDES) {
        put_sizes(w, token, part);
        return;
    }
    PUT(w, "\"");
    if (part == TYPES)
        put_text(w, type_name(*token));
    else
        put_value(w, token);
    PUT(w, "\"");
}

static void put_inputs_part(writer *w, op_inputs inputs, enum input_part part) {
    const uint32_t *token;
    PUT(w, "[");
    for (bool first = true; op_inputs_next(&inputs, &token); first = false) {
        if (!first)
            PUT(w, ",");
        uint32_t members = (*token & 0xff) == OP_INPUT_TENSOR_LIST ? *token >> 16 : 0;
        bool nested = (*token & 0xff) == OP_INPUT_TENSOR_LIST && part <= STRIDES;
        if (nested)
            PUT(w, "[");
        else
            put_part(w, token, part);
        for (uint32_t i = 0; i < members && op_inputs_next(&inputs, &token); i++) {
            if (nested && i)
                PUT(w, ",");
            if (nested)
                put_part(w, token, part);
        }
        if (nested)
            PUT(w, "]");
    }
    PUT(w, "]");
}

/* ---- named values -------------------------------------------------------------------------- */

static void put_field_value(writer *w, const op_field *field, uint32_t at) {
    int64_t number;
    switch (field->type) {
    case OP_FIELD_SIGNED:
    case OP_FIELD_UNSIGNED:
    case OP_FIELD_DOUBLE:
        memcpy(&number, field->values + (size_t)at * 2, sizeof number);
        if (field->type == OP_FIELD_DOUBLE)
            put_json_double(w, number);
        else if (field->type == OP_FIELD_SIGNED)
            put_signed(w, number);
        else
            put_unsigned(w, (uint64_t)number);
        break;
    case OP_FIELD_BOOL:
        put_text(w, field->values[0] ? "true" : "false");
        break;
    case OP_FIELD_COLOR: {
        char text[16];
        snprintf(text, sizeof text, "\"#%08x\"", field->values[0]);
        put_text(w, text);
        break;
    }
    case OP_FIELD_JSON:
        put_bytes(w, (const char *)field->values, field->count);
        break;
    default:
        PUT(w, "\"");
        if (field->type == OP_FIELD_NAME)
            put_name(w, field->values[0]);
        else
            put_escaped(w, (const char *)field->values, field->count);
        PUT(w, "\"");
    }
}

static void put_fields(writer *w, const uint32_t *block, const uint32_t *limit) {
    const uint32_t *at = NULL;
    op_field field;
    while (op_fields_next(block, limit, &at, &field)) {
        bool is_number = field.type >= OP_FIELD_SIGNED && field.type <= OP_FIELD_DOUBLE;
        bool is_list = is_number && field.count != 1;
        PUT(w, ",\"");
        put_name(w, field.key);
        put_text(w, is_list ? "\":[" : "\":");
        for (uint32_t i = 0; i < (is_number ? field.count : 1); i++) {
            if (i)
                PUT(w, ",");
            put_field_value(w, &field, i);
        }
        if (is_list)
            PUT(w, "]");
    }
}

static void put_args(writer *w, const op_result *r, uint32_t at) {
    const uint32_t *block = r->args + at - 1, *limit = r->args + r->arg_words;
    op_inputs inputs;
    if (op_inputs_of(block, limit, &inputs)) {
        if (inputs.at == inputs.end)
            return;
        PUT(w, ",\"Input Dims\":");
        put_inputs_part(w, inputs, DIMS);
        PUT(w, ",\"Input Strides\":");
        put_inputs_part(w, inputs, STRIDES);
        PUT(w, ",\"Input type\":");
        put_inputs_part(w, inputs, TYPES);
        PUT(w, ",\"Concrete Inputs\":");
        put_inputs_part(w, inputs, VALUES);
    } else if ((*block & 0xff) == OP_ARGS_TEXT && block + 1 < limit &&
               block[1] <= (size_t)(limit - block - 2) * sizeof(uint32_t)) {
        PUT(w, ",\"args\":\"");
        put_escaped(w, (const char *)(block + 2), block[1]);
        PUT(w, "\"");
    } else {
        put_fields(w, block, limit);
    }
}

/* ---- events ----------------------------------------------------------------------------- */

static const char *category(const op_columns *c, uint64_t row) {
    switch (c->kind[row]) {
    case OP_PYTHON_CALL:
    case OP_C_CALL:
        return "python_function";
    case OP_MARK:
        return "cpu_instant_event";
    default:
        return c->scope[row] == OP_SCOPE_USER ? "user_annotation" : "cpu_op";
    }
}

static void put_place(writer *w, const op_result *r, uint64_t row, int64_t at_ns) {
    PUT(w, "\",\"pid\":");
    put_unsigned(w, w->pid);
    PUT(w, ",\"tid\":");
    put_unsigned(w, r->threads[r->columns.thread[row]].os_tid);
    PUT(w, ",\"ts\":");
    put_microseconds(w, at_ns);
}

static void put_event_args(writer *w, const op_result *r, uint64_t row) {
    const op_columns *c = &r->columns;
    PUT(w, ",\"args\":{\"External id\":");
    put_unsigned(w, row + 1);
    PUT(w, ",\"Ev Idx\":");
    put_unsigned(w, row);
    if (c->sequence_nr[row] >= 0) {
        PUT(w, ",\"Sequence number\":");
        put_signed(w, c->sequence_nr[row]);
        PUT(w, ",\"Fwd thread id\":");
        put_unsigned(w, c->forward_thread[row]);
    }
    if (c->args[row])
        put_args(w, r, c->args[row]);
    if (c->flags[row] & OP_FLAG_UNFINISHED)
        PUT(w, ",\"finished\":false");
    PUT(w, "}}");
}

/* A slice must nest in its track; what ended out of order goes on a track of its own instead,
 * as a pair of async events. */
static void put_event(writer *w, const op_result *r, uint64_t row) {
    const op_columns *c = &r->columns;
    bool async = c->flags[row] & OP_FLAG_ASYNC;
    int64_t duration = c->duration_ns[row];
    if (duration < 0)
        duration = r->trace_duration - c->start_ns[row];
    if (duration < 0)
        duration = 0;
    for (int part = 0; part < 1 + async; part++) {
        put_text(w, async ? part ? ",\n{\"ph\":\"e\"" : ",\n{\"ph\":\"b\"" : ",\n{\"ph\":\"X\"");
        if (async) {
            PUT(w, ",\"id\":");
            put_unsigned(w, row + 1);
        }
        PUT(w, ",\"cat\":\"");
        put_text(w, category(c, row));
        PUT(w, "\",\"name\":\"");
        put_name(w, c->name[row]);
        put_place(w, r, row, c->start_ns[row] + (part ? duration : 0));
        if (!async) {
            PUT(w, ",\"dur\":");
            put_microseconds(w, duration);
        }
        if (part)
            PUT(w, "}");
        else
            put_event_args(w, r, row);
    }
}

static void put_meta(writer *w, uint64_t tid, const char *name, const char *key, const char *value) {
    PUT(w, ",\n{\"ph\":\"M\",\"name\":\"");
    put_text(w, name);
    PUT(w, "\",\"ts\":0.000,\"pid\":");
    put_unsigned(w, w->pid);
    PUT(w, ",\"tid\":");
    put_unsigned(w, tid);
    PUT(w, ",\"args\":{\"");
    put_text(w, key);
    PUT(w, "\":\"");
    put_escaped(w, value, strlen(value));
    PUT(w, "\"}}");
}

static void put_threads(writer *w, const op_result *r) {
    put_meta(w, 0, "process_name", "name", "python");
    put_meta(w, 0, "process_labels", "labels", "CPU");
    for (uint32_t i = 0; i < r->thread_count; i++) {
        char label[64];
        snprintf(label, sizeof label, "thread %u (%.15s)", r->threads[i].os_tid,
                 r->threads[i].name[0] ? r->threads[i].name : "python");
        put_meta(w, r->threads[i].os_tid, "thread_name", "name", label);
    }
}

static void put_trace(writer *w, const op_result *r, const char *metadata, const char *name) {
    PUT(w, "{\"schemaVersion\": 1, \"deviceProperties\": [], ");
    if (*metadata) {
        put_text(w, metadata);
        PUT(w, ", ");
    }
    PUT(w, "\"displayTimeUnit\": \"ms\", \"baseTimeNanoseconds\": ");
    put_signed(w, r->trace_start);
    PUT(w,
        ", \"traceEvents\": [\n{\"ph\":\"i\",\"s\":\"g\",\"name\":\"Iteration Start: pytest-opprof\","
        "\"pid\":\"Traces\",\"tid\":\"\",\"ts\":0.000}");
    put_threads(w, r);
    for (uint64_t row = 0; row < r->columns.count && !w->failed; row++)
        put_event(w, r, row);
    PUT(w, ",\n{\"ph\":\"i\",\"s\":\"g\",\"name\":\"Record Window "
           "End\",\"pid\":\"\",\"tid\":\"\",\"ts\":");
    put_microseconds(w, r->trace_duration);
    PUT(w, "}\n], \"traceName\": \"");
    put_escaped(w, name, strlen(name));
    PUT(w, "\"}\n");
    flush(w);
}

int op_result_write_trace(const op_result *r, int fd, const char *metadata, const char *trace_name) {
    if (r->imported)
        return op_imported_write(r, fd, metadata);
    writer w = {.fd = fd, .pid = (uint64_t)getpid(), .name_count = op_names_count() + 2};
    w.at = w.buffer = op_malloc(BUFFER);
    w.names = op_calloc(w.name_count, sizeof *w.names);
    bool had_memory = w.buffer && w.names;
    if (had_memory)
        put_trace(&w, r, metadata, trace_name);
    for (uint32_t i = 0; w.names && i < w.name_count; i++)
        free(w.names[i].text);
    free(w.names);
    free(w.buffer);
    if (!had_memory)
        return op_error_set(OP_ENOMEM, "no memory to write the trace");
    errno = w.failed;
    return w.failed ? op_error_errno("the trace") : OP_OK;
}
