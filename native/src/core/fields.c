#include "core/fields.h"

#include <string.h>

#define HEADER 1u /* words */
#define KEY_AND_TOKEN 2u

void op_fields_clear(op_fields *f) { f->count = HEADER; }

static uint32_t *take(op_fields *f, uint32_t key, uint32_t type, uint32_t count, uint32_t payload) {
    if (f->count + KEY_AND_TOKEN + payload > OP_FIELDS_MAX_WORDS)
        return NULL;
    uint32_t *at = f->words + f->count;
    at[0] = key;
    at[1] = type | count << 8;
    f->count += KEY_AND_TOKEN + payload;
    return at + KEY_AND_TOKEN;
}

bool op_fields_put_word(op_fields *f, uint32_t key, uint32_t type, uint32_t value) {
    uint32_t *at = take(f, key, type, 1, 1);
    if (at)
        *at = value;
    return at != NULL;
}

bool op_fields_put_numbers(op_fields *f, uint32_t key, uint32_t type, const uint64_t *values,
                           uint32_t count) {
    if (count > OP_FIELDS_MAX_WORDS / 2)
        return false;
    uint32_t *at = take(f, key, type, count, 2 * count);
    if (at)
        memcpy(at, values, count * sizeof *values);
    return at != NULL;
}

bool op_fields_put_text(op_fields *f, uint32_t key, uint32_t type, const char *text, size_t bytes) {
    if (bytes > OP_FIELDS_MAX_WORDS * sizeof *f->words)
        return false;
    uint32_t payload = (uint32_t)(bytes + 3) / 4;
    uint32_t *at = take(f, key, type, (uint32_t)bytes, payload);
    if (at && payload) {
        at[payload - 1] = 0;
        memcpy(at, text, bytes);
    }
    return at != NULL;
}

uint32_t op_fields_close(op_fields *f) {
    if (f->count == HEADER)
        return 0;
    f->words[0] = OP_ARGS_HEADER(OP_ARGS_FIELDS, f->count - HEADER);
    return f->count;
}

bool op_fields_reopen(op_fields *f, const uint32_t *block) {
    uint32_t words = HEADER + (*block >> 8);
    if ((*block & 0xff) != OP_ARGS_FIELDS || words > OP_FIELDS_MAX_WORDS)
        return false;
    memcpy(f->words, block, words * sizeof *block);
    f->count = words;
    return true;
}

/* ---- reading ---------------------------------------------------------------------------- */

static uint32_t payload_words(uint32_t type, uint32_t count) {
    switch (type) {
    case OP_FIELD_NAME:
    case OP_FIELD_COLOR:
    case OP_FIELD_BOOL:
        return 1;
    case OP_FIELD_TEXT:
    case OP_FIELD_JSON:
        return (count + 3) / 4;
    default:
        return 2 * count;
    }
}

bool op_fields_next(const uint32_t *block, const uint32_t *limit, const uint32_t **at, op_field *out) {
    if ((*block & 0xff) != OP_ARGS_FIELDS || (*block >> 8) >= (size_t)(limit - block))
        return false;
    const uint32_t *end = block + HEADER + (*block >> 8);
    const uint32_t *field = *at ? *at : block + HEADER;
    if (end - field < KEY_AND_TOKEN)
        return false;
    out->key = field[0];
    out->type = field[1] & 0xff;
    out->count = field[1] >> 8;
    out->values = field + KEY_AND_TOKEN;
    uint32_t payload = payload_words(out->type, out->count);
    if (payload > (size_t)(end - out->values))
        return false;
    *at = out->values + payload;
    return true;
}

static uint32_t renamed(uint32_t id, const uint32_t *names, uint32_t count) {
    return id < count ? names[id] : 0;
}

void op_fields_rename(uint32_t *block, const uint32_t *limit, const uint32_t *names, uint32_t count) {
    const uint32_t *at = NULL;
    op_field field;
    while (op_fields_next(block, limit, &at, &field)) {
        uint32_t *values = block + (field.values - block);
        values[-(int)KEY_AND_TOKEN] = renamed(field.key, names, count);
        if (field.type == OP_FIELD_NAME)
            values[0] = renamed(values[0], names, count);
    }
}
