/* What is in the text of a name. */
#ifndef OP_NAME_TEXT_H
#define OP_NAME_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Longer names end in a digest of all of them; a C++ kernel's may be long. */
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

/* The beginning of a name that is too long, cut at a character, and a digest of all of it: names that
 * begin alike stay apart. */
size_t op_name_shortened(char *out, const char *text, size_t length);
/* Where the last `(LINE): ` of a text begins, and where it ends; false where it has none. */
bool op_name_find_line(const char *text, size_t bytes, size_t *begin, size_t *end);

#endif
