/* The `args` of a Kineto event: values with a column are read, and all of them are kept. */
#include "import/args_in.h"

#include "core/error.h"
#include "core/event.h"
#include "core/json_scalar.h"
#include "result/packed_args.h"

#include <string.h>

enum known_key {
    KEY_NONE,
    KEY_EXTERNAL_ID,
    KEY_CORRELATION,
    KEY_SEQUENCE,
    KEY_FORWARD_THREAD,
    KEY_DIMS,
    KEY_OLD_DIMS,
    KEY_FINISHED,
    KEY_ADDRESS,
    KEY_BYTES,
    KEY_ALLOCATED,
    KEY_RESERVED,
    KEY_DEVICE_TYPE,
    KEY_DEVICE_INDEX,
    KNOWN_KEYS
};

static const char *const names[KNOWN_KEYS] = {
    [KEY_EXTERNAL_ID] = "External id",
    [KEY_CORRELATION] = "correlation",
    [KEY_SEQUENCE] = "Sequence number",
    [KEY_FORWARD_THREAD] = "Fwd thread id",
    [KEY_DIMS] = "Input Dims",
    [KEY_OLD_DIMS] = "Input dims",
    [KEY_FINISHED] = "finished",
    [KEY_ADDRESS] = "Addr",
    [KEY_BYTES] = "Bytes",
    [KEY_ALLOCATED] = "Total Allocated",
    [KEY_RESERVED] = "Total Reserved",
    [KEY_DEVICE_TYPE] = "Device Type",
    [KEY_DEVICE_INDEX] = "Device Id",
};

/* Ids are assigned in order, so a known key's id is its value in the enum. */
int op_args_prepare(op_imported *i) {
    for (uint32_t key = 1; key < KNOWN_KEYS; key++)
        if (op_string_table_intern(&i->texts, OP_TEXT_ARG, names[key], strlen(names[key])) != key)
            return op_error_set(OP_ENOMEM, "no memory for the trace's texts");
    return OP_OK;
}

static int64_t *number_of(uint32_t key, op_read_args *a) {
    switch (key) {
    case KEY_EXTERNAL_ID:
        return &a->external_id;
    case KEY_CORRELATION:
        return &a->correlation;
    case KEY_SEQUENCE:
        return &a->sequence_nr;
    case KEY_ADDRESS:
        return &a->address;
    case KEY_BYTES:
        return &a->bytes;
    case KEY_ALLOCATED:
        return &a->allocated;
    case KEY_RESERVED:
        return &a->reserved;
    case KEY_DEVICE_TYPE:
        return &a->device_type;
    case KEY_DEVICE_INDEX:
        return &a->device_index;
    default:
        return NULL;
    }
}

static void take(uint32_t key, const op_span *value, op_read_args *a) {
    int64_t number, *place = number_of(key, a);
    if (place)
        *place = op_scan_integer(value, &number) ? number : -1;
    else if (key == KEY_FORWARD_THREAD)
        a->forward_thread = op_scan_integer(value, &number) && number >= 0 && number <= UINT32_MAX
                                ? (uint32_t)number
                                : 0;
    else if (key == KEY_DIMS || key == KEY_OLD_DIMS)
        a->dims = *value;
    else if (key == KEY_FINISHED)
        a->is_unfinished = value->length == 5 && memcmp(value->text, "false", 5) == 0;
}

int op_args_read(op_imported *i, const op_span *object, bool has_constant, op_read_args *out) {
    op_scan j = {.at = object->text + 1, .end = object->text + object->length, .is_last = true};
    bool first = true, more = true;
    int rc = OP_OK;
    while (rc == OP_OK && op_scan_next(&j, '}', &first, &more) == OP_SCAN_OK && more) {
        op_span key, value;
        if (op_scan_key(&j, &key) != OP_SCAN_OK)
            break;
        int scanned = op_scan_value(&j, &value);
        if (scanned == OP_SCAN_NOMEM)
            rc = OP_ENOMEM;
        if (scanned != OP_SCAN_OK)
            break;
        uint32_t id = op_string_table_intern(&i->texts, OP_TEXT_ARG, key.text, key.length);
        take(id, &value, out);
        if (!id || op_packed_args_add(i, &i->extra_bytes, id, &value, has_constant))
            rc = OP_ENOMEM;
    }
    op_scan_free(&j);
    return rc;
}

/* ---- argument blocks -------------------------------------------------------------------- */

static int begin_block(op_buffer *words, uint64_t *header) {
    *header = words->used / 4;
    if (*header >= UINT32_MAX - OP_ARGS_MAX_WORDS)
        return OP_ENOMEM;
    return op_buffer_extend(words, 4) ? OP_OK : OP_ENOMEM;
}

static void end_block(op_buffer *words, uint64_t header, uint32_t type, uint32_t *at) {
    uint64_t count = words->used / 4 - header - 1;
    *at = 0;
    if (count > OP_ARGS_MAX_WORDS) {
        words->used = header * 4;
        return;
    }
    uint32_t word = OP_ARGS_HEADER(type, count);
    memcpy(words->bytes + header * 4, &word, 4);
    *at = (uint32_t)header + 1;
}

int op_args_put_memory(op_buffer *words, const op_read_args *a, uint32_t *at) {
    uint64_t header;
    const int64_t wide[4] = {a->address, a->bytes, a->allocated, a->reserved};
    const int32_t narrow[2] = {(int32_t)a->device_type, (int32_t)a->device_index};
    if (begin_block(words, &header) || op_buffer_add(words, wide, sizeof wide) ||
        op_buffer_add(words, narrow, sizeof narrow))
        return OP_ENOMEM;
    end_block(words, header, OP_ARGS_MEMORY, at);
    return OP_OK;
}

typedef struct shapes {
    op_scan scan;
    op_buffer *words;
    bool failed; /* no memory */
} shapes;

static void put_word(shapes *s, uint32_t word) { s->failed |= op_buffer_add(s->words, &word, 4) != 0; }

/* Reads a list of numbers after its bracket, the sizes of a tensor; false if it contains anything
 * else. */
static bool put_sizes(shapes *s) {
    uint64_t token_at = s->words->used;
    uint32_t rank = 0;
    bool first = true, more = true;
    put_word(s, 0);
    while (op_scan_next(&s->scan, ']', &first, &more) == OP_SCAN_OK && more) {
        op_span value;
        int64_t size;
        if (op_scan_value(&s->scan, &value) != OP_SCAN_OK || !op_scan_integer(&value, &size) ||
            ++rank > OP_ARGS_MAX_WORDS)
            return false;
        s->failed |= op_buffer_add(s->words, &size, 8) != 0;
    }
    uint32_t token = rank ? OP_INPUT_TENSOR_UNSTRIDED | 0xffu << 8 | rank << 16 : OP_INPUT_OTHER;
    if (!s->failed)
        memcpy(s->words->bytes + token_at, &token, 4);
    return !s->failed;
}

/* `[2,3]` is a tensor, `[[2,3],[4]]` a list of tensors, `[]` something else. */
static bool put_input(shapes *s) {
    if (op_scan_peek(&s->scan) != '[')
        return false;
    s->scan.at++;
    if (op_scan_peek(&s->scan) != '[')
        return put_sizes(s);
    uint64_t token_at = s->words->used;
    uint32_t members = 0;
    bool first = true, more = true;
    put_word(s, 0);
    while (op_scan_next(&s->scan, ']', &first, &more) == OP_SCAN_OK && more) {
        if (op_scan_peek(&s->scan) != '[' || ++members > OP_ARGS_MAX_WORDS)
            return false;
        s->scan.at++;
        if (!put_sizes(s))
            return false;
    }
    uint32_t token = OP_INPUT_TENSOR_LIST | members << 16;
    if (!s->failed)
        memcpy(s->words->bytes + token_at, &token, 4);
    return !s->failed;
}

/* Only shapes, which events are grouped by; the texts of types, strides and values are extras. */
int op_args_put_shapes(op_buffer *words, const op_span *dims, uint32_t *at) {
    uint64_t header;
    *at = 0;
    if (*dims->text != '[')
        return OP_OK;
    const uint64_t forward_thread = 0;
    if (begin_block(words, &header) || op_buffer_add(words, &forward_thread, 8))
        return OP_ENOMEM;
    shapes s = {.words = words,
                .scan = {.at = dims->text + 1, .end = dims->text + dims->length, .is_last = true}};
    bool first = true, more = true, whole = true;
    while (whole && op_scan_next(&s.scan, ']', &first, &more) == OP_SCAN_OK && more)
        whole = put_input(&s) && words->used / 4 - header <= OP_ARGS_MAX_WORDS + 1;
    op_scan_free(&s.scan);
    if (s.failed)
        return OP_ENOMEM;
    if (whole)
        end_block(words, header, OP_ARGS_TORCH, at);
    else
        words->used = header * 4; /* no shapes, but the text is still kept */
    return OP_OK;
}
