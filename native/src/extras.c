/* An event of a trace has some hundred bytes of JSON, most of which other events have too: a key is
 * a number here, an integer a few bytes, and a list or a string is kept once. */
#include "error.h"
#include "fault.h"
#include "imported.h"

#include <stdio.h>
#include <string.h>

/* A value starts with a varint: what it is in the low two bits. */
enum { INLINE = 0, INTEGER = 1, SHARED = 2 };

#define SHARED_LONGEST 4096u   /* what is longer hardly comes twice */
#define SHARED_MOST (1u << 20) /* and where nothing comes twice, sharing only costs */
#define END_OF_MEMBERS 0       /* no key has this number */

static int put_varint(op_buffer *b, uint64_t value) {
    char bytes[10];
    size_t n = 0;
    for (; value >= 0x80; value >>= 7)
        bytes[n++] = (char)(value | 0x80);
    bytes[n++] = (char)value;
    return op_buffer_add(b, bytes, n);
}

static uint64_t take_varint(const char **at) {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        uint8_t byte = (uint8_t)*(*at)++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return value;
    }
}

static uint64_t zigzag(int64_t value) { return (uint64_t)value << 1 ^ (uint64_t)(value >> 63); }

int op_extras_begin(op_imported *i, uint32_t *at) {
    if (i->extra_bytes.used >= UINT32_MAX)
        return op_error_set(OP_ELIMIT, "the arguments of its events need more than 4 GiB");
    *at = (uint32_t)i->extra_bytes.used + 1;
    return OP_OK;
}

static int put_value(op_imported *i, const op_span *value) {
    int64_t number;
    op_buffer *b = &i->extra_bytes;
    if (op_scan_integer(value, &number))
        return put_varint(b, zigzag(number) << 2 | INTEGER);
    bool is_nested = *value->text == '[' || *value->text == '{' || *value->text == '"';
    if (is_nested && value->length <= SHARED_LONGEST && i->texts.count < SHARED_MOST) {
        uint32_t id = op_texts_intern(&i->texts, OP_TEXT_PLAIN, value->text, value->length);
        return id ? put_varint(b, (uint64_t)id << 2 | SHARED) : -1;
    }
    int rc = put_varint(b, (uint64_t)value->length << 2 | INLINE);
    return rc ? rc : op_buffer_add(b, value->text, value->length);
}

int op_extras_add(op_imported *i, uint32_t key, const op_span *value, bool has_constant) {
    int rc = put_varint(&i->extra_bytes, key);
    if (rc == 0 && !has_constant)
        return put_value(i, value);
    op_buffer copy = {0};
    if (rc == 0)
        rc = op_json_copy(&copy, value, true);
    const op_span valid = {.text = copy.bytes, .length = copy.used};
    if (rc == 0)
        rc = put_value(i, &valid);
    op_buffer_free(&copy);
    return rc;
}

int op_extras_end(op_imported *i) { return put_varint(&i->extra_bytes, END_OF_MEMBERS); }

static int write_value(const op_imported *i, const char **at, op_buffer *out) {
    uint64_t head = take_varint(at);
    if ((head & 3) == INTEGER) {
        char digits[24];
        uint64_t bits = head >> 2;
        int64_t number = (int64_t)(bits >> 1) ^ -(int64_t)(bits & 1);
        int n = snprintf(digits, sizeof digits, "%lld", (long long)number);
        return op_buffer_add(out, digits, (size_t)n);
    }
    if ((head & 3) == SHARED) {
        size_t length;
        const char *text = op_texts_text(&i->texts, (uint32_t)(head >> 2), &length);
        return op_buffer_add(out, text, length);
    }
    const char *text = *at;
    *at += head >> 2;
    return op_buffer_add(out, text, (size_t)(head >> 2));
}

static int write_member(const op_imported *i, uint32_t key, const char **at, bool first,
                        op_buffer *out) {
    size_t length;
    const char *text = op_texts_text(&i->texts, key, &length);
    int rc = first ? 0 : op_buffer_add(out, ", ", 2);
    if (rc == 0)
        rc = op_buffer_add(out, "\"", 1);
    if (rc == 0)
        rc = op_buffer_add(out, text, length);
    if (rc == 0)
        rc = op_buffer_add(out, "\": ", 3);
    return rc ? rc : write_value(i, at, out);
}

int op_extras_write(const op_imported *i, uint32_t at, char mark, op_buffer *out) {
    if (!at)
        return 0;
    const char *from = i->extra_bytes.bytes + at - 1;
    bool first = true;
    for (uint64_t key; (key = take_varint(&from)) != END_OF_MEMBERS;) {
        size_t before = out->used;
        bool is_meant = op_texts_mark(&i->texts, (uint32_t)key) == mark;
        if (write_member(i, (uint32_t)key, &from, first, out))
            return -1;
        if (!is_meant)
            out->used = before;
        first = first && !is_meant;
    }
    return 0;
}

/* A constant stands outside of strings and starts with a letter that nothing else starts with. */
static size_t constant_at(const char *at, const char *end) {
    static const char *const constants[] = {"NaN", "Infinity", "-Infinity"};
    for (size_t k = 0; k < 3; k++) {
        size_t length = strlen(constants[k]);
        if ((size_t)(end - at) >= length && memcmp(at, constants[k], length) == 0)
            return length;
    }
    return 0;
}

int op_json_copy(op_buffer *out, const op_span *text, bool has_constant) {
    if (!has_constant)
        return op_buffer_add(out, text->text, text->length);
    const char *at = text->text, *end = at + text->length;
    bool in_string = false;
    while (at < end) {
        size_t constant = in_string ? 0 : constant_at(at, end);
        size_t length = constant ? constant : in_string && *at == '\\' ? 2 : 1;
        in_string ^= *at == '"';
        if ((constant && op_buffer_add(out, "\"", 1)) || op_buffer_add(out, at, length) ||
            (constant && op_buffer_add(out, "\"", 1)))
            return -1;
        at += length;
    }
    return 0;
}

void op_imported_free(op_imported *i) {
    if (!i)
        return;
    op_texts_free(&i->texts);
    free(i->lanes);
    free(i->category);
    free(i->extras);
    op_buffer_free(&i->extra_bytes);
    op_buffer_free(&i->others);
    op_buffer_free(&i->members);
    op_buffer_free(&i->answer);
    free(i);
}
