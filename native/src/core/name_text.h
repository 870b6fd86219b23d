/* Parts of a name's text. */
#ifndef OP_NAME_TEXT_H
#define OP_NAME_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Longer names, such as those of C++ kernels, end in a digest of the whole. */
#define OP_NAME_MAX_BYTES 8192u

static inline uint64_t op_name_digest(const char *text, size_t length) {
    uint64_t h = 0xcbf29ce484222325u ^ length; /* FNV-1a over words, then folded */
    while (length >= 8) {
        uint64_t word;
        memcpy(&word, text, 8);
        h = (h ^ word) * 0x9e3779b97f4a7c15u;
        h ^= h >> 32;
        text += 8;
        length -= 8;
    }
    for (size_t i = 0; i < length; i++)
        h = (h ^ (uint8_t)text[i]) * 0x100000001b3u;
    return h;
}

/* Cuts a name that is too long at a character boundary and appends a digest of the whole, so names with
 * the same beginning stay distinct. */
size_t op_name_shortened(char *out, const char *text, size_t length);
/* Where the last `(LINE): ` of a text begins and ends; false if it has none. */
bool op_name_find_line(const char *text, size_t bytes, size_t *begin, size_t *end);

#endif
