/* An event of a trace has about a hundred bytes of JSON, most of them shared with other events. Here a
 * key is a number, an integer a few bytes, and a list or string is stored once. */
#include "result/packed_args.h"

#include "core/error.h"
#include "core/fault.h"
#include "core/json_scalar.h"
#include "result/imported.h"

#include <stdio.h>
#include <string.h>

/* A value begins with a varint, whose low two bits are one of these. */
enum { INLINE = 0, INTEGER = 1, SHARED = 2, DECIMAL = 3 };

#define SHARED_LONGEST 4096u   /* longer values rarely repeat */
#define SHARED_MOST (1u << 20) /* and if nothing repeats, sharing only costs */
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

int op_packed_args_begin(op_imported *i, uint32_t *at) {
    if (i->extra_bytes.used >= UINT32_MAX)
        return op_error_set(OP_ELIMIT, "the arguments of its events need more than 4 GiB");
    *at = (uint32_t)i->extra_bytes.used + 1;
    return OP_OK;
}

/* A decimal fraction of up to 18 digits, as an integer and its number of decimals; false if it would
 * not be written back exactly. */
static bool is_decimal(const op_span *value, int64_t *digits, uint32_t *behind) {
    const char *at = value->text, *end = at + value->length;
    bool negative = *at == '-', after_point = false;
    at += negative;
    if (end - at > 19)
        return false;
    *digits = 0;
    *behind = 0;
    for (; at < end; at++) {
        if (*at == '.') {
            after_point = true;
        } else if (*at >= '0' && *at <= '9') {
            *digits = *digits * 10 + (*at - '0');
            *behind += after_point;
        } else {
            return false;
        }
    }
    *digits = negative ? -*digits : *digits;
    return after_point && !(negative && *digits == 0);
}

static int put_value(op_imported *i, op_buffer *b, const op_span *value) {
    int64_t number;
    uint32_t behind;
    if (op_scan_integer(value, &number))
        return put_varint(b, zigzag(number) << 2 | INTEGER);
    if (is_decimal(value, &number, &behind)) {
        int rc = put_varint(b, (uint64_t)behind << 2 | DECIMAL);
        return rc ? rc : put_varint(b, zigzag(number));
    }
    bool is_nested = *value->text == '[' || *value->text == '{' || *value->text == '"';
    if (is_nested && value->length <= SHARED_LONGEST && i->texts.count < SHARED_MOST) {
        uint32_t id = op_string_table_intern(&i->texts, OP_TEXT_PLAIN, value->text, value->length);
        return id ? put_varint(b, (uint64_t)id << 2 | SHARED) : -1;
    }
    int rc = put_varint(b, (uint64_t)value->length << 2 | INLINE);
    return rc ? rc : op_buffer_add(b, value->text, value->length);
}

int op_packed_args_add(op_imported *i, op_buffer *b, uint32_t key, const op_span *value,
                       bool has_constant) {
    int rc = put_varint(b, key);
    if (rc == 0 && !has_constant)
        return put_value(i, b, value);
    op_buffer copy = {0};
    if (rc == 0)
        rc = op_json_copy(&copy, value, true);
    const op_span valid = {.text = copy.bytes, .length = copy.used};
    if (rc == 0)
        rc = put_value(i, b, &valid);
    op_buffer_free(&copy);
    return rc;
}

/* A constant outside of strings starts with a letter with which no other value starts. */
static size_t constant_at(const char *at, const char *end) {
    static const char *const constants[] = {"NaN", "Infinity", "-Infinity"};
    for (size_t k = 0; k < 3; k++) {
        size_t length = strlen(constants[k]);
        if ((size_t)(end - at) >= length && memcmp(at, constants[k], length) == 0)
            return length;
    }
    return 0;
}

int op_packed_args_add_all(op_imported *i, op_buffer *b, const op_span *object, bool has_constant) {
    op_scan j = {.at = object->text + 1, .end = object->text + object->length, .is_last = true};
    bool first = true, more = true;
    int rc = 0;
    while (rc == 0 && op_scan_next(&j, '}', &first, &more) == OP_SCAN_OK && more) {
        op_span key, value;
        if (op_scan_key(&j, &key) != OP_SCAN_OK || op_scan_value(&j, &value) != OP_SCAN_OK) {
            rc = -1; /* the object is well-formed, so it is out of memory */
            break;
        }
        uint32_t id = op_string_table_intern(&i->texts, OP_TEXT_MEMBER, key.text, key.length);
        if (constant_at(value.text,
                        value.text +
                            value.length)) /* here a string would be taken for a name or path */
            value = (op_span){.text = "null", .length = 4};
        rc = id ? op_packed_args_add(i, b, id, &value, has_constant) : -1;
    }
    op_scan_free(&j);
    return rc ? rc : op_packed_args_end(b);
}

int op_packed_args_end(op_buffer *b) { return put_varint(b, END_OF_MEMBERS); }

static int64_t unzigzag(uint64_t bits) { return (int64_t)(bits >> 1) ^ -(int64_t)(bits & 1); }

static int write_number(int64_t number, uint32_t behind, op_buffer *out) {
    char digits[32];
    uint64_t size = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    int n = snprintf(digits, sizeof digits, "%0*llu", (int)behind + 1, (unsigned long long)size);
    size_t before = (size_t)n - behind;
    if ((number < 0 && op_buffer_add(out, "-", 1)) || op_buffer_add(out, digits, before))
        return -1;
    if (!behind)
        return 0;
    return op_buffer_add(out, ".", 1) || op_buffer_add(out, digits + before, behind) ? -1 : 0;
}

static int write_value(const op_imported *i, const char **at, op_buffer *out) {
    uint64_t head = take_varint(at);
    const char *text = *at;
    size_t length;
    switch (head & 3) {
    case INTEGER:
        return write_number(unzigzag(head >> 2), 0, out);
    case DECIMAL:
        return write_number(unzigzag(take_varint(at)), (uint32_t)(head >> 2), out);
    case SHARED:
        text = op_string_table_text(&i->texts, (uint32_t)(head >> 2), &length);
        return op_buffer_add(out, text, length);
    default:
        *at += head >> 2;
        return op_buffer_add(out, text, (size_t)(head >> 2));
    }
}

static int write_member(const op_imported *i, uint32_t key, const char **at, bool first,
                        op_buffer *out) {
    size_t length;
    const char *text = op_string_table_text(&i->texts, key, &length);
    int rc = first ? 0 : op_buffer_add(out, ", ", 2);
    if (rc == 0)
        rc = op_buffer_add(out, "\"", 1);
    if (rc == 0)
        rc = op_buffer_add(out, text, length);
    if (rc == 0)
        rc = op_buffer_add(out, "\": ", 3);
    return rc ? rc : write_value(i, at, out);
}

int op_packed_args_write(const op_imported *i, const char **at, char mark, op_buffer *out) {
    bool first = true;
    for (uint64_t key; (key = take_varint(at)) != END_OF_MEMBERS;) {
        size_t before = out->used;
        bool is_meant = op_string_table_mark(&i->texts, (uint32_t)key) == mark;
        if (write_member(i, (uint32_t)key, at, first, out))
            return -1;
        if (!is_meant)
            out->used = before;
        first = first && !is_meant;
    }
    return 0;
}

int op_packed_args_of_row(const op_imported *i, uint32_t extras, char mark, op_buffer *out) {
    const char *at = i->extra_bytes.bytes + extras - 1;
    return extras ? op_packed_args_write(i, &at, mark, out) : 0;
}

int64_t op_packed_args_number(const op_imported *i, uint32_t extras, const char *key) {
    if (!extras)
        return -1;
    const char *at = i->extra_bytes.bytes + extras - 1;
    for (uint64_t id; (id = take_varint(&at)) != END_OF_MEMBERS;) {
        size_t length;
        const char *text = op_string_table_text(&i->texts, (uint32_t)id, &length);
        uint64_t head = take_varint(&at);
        if ((head & 3) == INTEGER && op_string_table_mark(&i->texts, (uint32_t)id) == OP_TEXT_ARG &&
            length == strlen(key) && memcmp(text, key, length) == 0)
            return unzigzag(head >> 2) < 0 ? -1 : unzigzag(head >> 2);
        if ((head & 3) == DECIMAL)
            take_varint(&at);
        else if ((head & 3) == INLINE)
            at += head >> 2;
    }
    return -1;
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
    op_string_table_free(&i->texts);
    free(i->lanes);
    free(i->category);
    free(i->extras);
    op_buffer_free(&i->extra_bytes);
    op_buffer_free(&i->others);
    op_buffer_free(&i->members);
    op_buffer_free(&i->answer);
    free(i);
}
