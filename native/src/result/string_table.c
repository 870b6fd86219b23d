#include "result/string_table.h"

#include "core/fault.h"

#include <stdbool.h>
#include <string.h>

char *op_buffer_extend(op_buffer *b, size_t bytes) {
    if (!b->bytes || b->capacity - b->used < bytes) {
        size_t capacity = b->capacity ? b->capacity : 4096;
        while (capacity - b->used < bytes) {
            if (capacity > SIZE_MAX / 4)
                return NULL;
            capacity += capacity / 2;
        }
        char *grown = op_realloc(b->bytes, capacity);
        if (!grown)
            return NULL;
        b->bytes = grown;
        b->capacity = capacity;
    }
    char *at = b->bytes + b->used;
    b->used += bytes;
    return at;
}

int op_buffer_add(op_buffer *b, const void *bytes, size_t count) {
    char *to = op_buffer_extend(b, count);
    if (!to)
        return -1;
    if (count)
        memcpy(to, bytes, count);
    return 0;
}

void op_buffer_free(op_buffer *b) {
    free(b->bytes);
    *b = (op_buffer){0};
}

static uint32_t hash_of(char mark, const char *text, size_t length) {
    uint64_t h = 0xcbf29ce484222325u ^ (uint8_t)mark ^ length << 8;
    for (; length >= 8; text += 8, length -= 8) {
        uint64_t word;
        memcpy(&word, text, 8);
        h = (h ^ word) * 0x9e3779b97f4a7c15u;
        h ^= h >> 32;
    }
    uint64_t word = 0;
    memcpy(&word, text, length);
    h = (h ^ word) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(h ^ h >> 32);
}

static bool make_room(op_string_table *t) {
    if (t->count + 1 < t->capacity)
        return true;
    uint32_t capacity = t->capacity ? t->capacity * 2 : 256;
    op_string_entry *entries = op_realloc(t->entries, capacity * sizeof *entries);
    if (entries)
        t->entries = entries;
    uint32_t *slots = entries ? op_calloc((size_t)capacity * 2, sizeof *slots) : NULL;
    if (!slots)
        return false;
    free(t->slots);
    t->slots = slots;
    t->capacity = capacity;
    t->mask = capacity * 2 - 1;
    for (uint32_t id = 1; id <= t->count; id++) {
        uint32_t at = entries[id].hash & t->mask;
        while (slots[at])
            at = (at + 1) & t->mask;
        slots[at] = id;
    }
    return true;
}

uint32_t op_string_table_intern(op_string_table *t, char mark, const char *text, size_t length) {
    uint32_t hash = hash_of(mark, text, length);
    if (length >= UINT32_MAX || t->count > UINT32_MAX / 4 || !make_room(t))
        return 0;
    uint32_t at = hash & t->mask;
    for (; t->slots[at]; at = (at + 1) & t->mask) {
        const op_string_entry *e = &t->entries[t->slots[at]];
        const char *known = t->arena.bytes + e->at;
        if (e->hash == hash && e->length == length && *known == mark &&
            memcmp(known + 1, text, length) == 0)
            return t->slots[at];
    }
    uint64_t start = t->arena.used;
    char *to = op_buffer_extend(&t->arena, length + 1);
    if (!to)
        return 0;
    *to = mark;
    memcpy(to + 1, text, length);
    t->entries[++t->count] = (op_string_entry){.at = start, .length = (uint32_t)length, .hash = hash};
    return t->slots[at] = t->count;
}

const char *op_string_table_text(const op_string_table *t, uint32_t id, size_t *length) {
    *length = t->entries[id].length;
    return t->arena.bytes + t->entries[id].at + 1;
}

char op_string_table_mark(const op_string_table *t, uint32_t id) {
    return t->arena.bytes[t->entries[id].at];
}

void op_string_table_free(op_string_table *t) {
    free(t->entries);
    free(t->slots);
    op_buffer_free(&t->arena);
    *t = (op_string_table){0};
}
