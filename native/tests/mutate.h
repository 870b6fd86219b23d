/* Changes an input at random: bits, stretches and numbers; in a JSON text also tokens and values, so
 * that most changes keep it JSON. */
#ifndef MUTATE_H
#define MUTATE_H

#include "chance.h"

#include <string.h>

enum { LONGEST = 4096 };

typedef struct input {
    uint32_t length;
    char text[LONGEST];
} input;

static const char *const words[] = {"{",
                                    "}",
                                    "[",
                                    "]",
                                    ",",
                                    ":",
                                    "\"",
                                    "\\",
                                    "\\u0000",
                                    "\\ud800",
                                    "\\udc00",
                                    "null",
                                    "true",
                                    "false",
                                    "NaN",
                                    "Infinity",
                                    "-Infinity",
                                    "-",
                                    "0",
                                    "-0",
                                    "1e308",
                                    "1e-308",
                                    "1e999999999",
                                    "2305843009213693951",
                                    "2305843009213693952",
                                    "-2305843009213693951",
                                    "9223372036854775807",
                                    "4294967295",
                                    "4294967296",
                                    "0.5",
                                    ".0005",
                                    "\"ph\":\"X\"",
                                    "\"ph\":\"i\"",
                                    "\"ph\":\"b\"",
                                    "\"ph\":\"e\"",
                                    "\"ph\":\"M\"",
                                    "\"ph\":\"s\"",
                                    "\"cat\":\"cpu_op\"",
                                    "\"cat\":\"kernel\"",
                                    "\"cat\":\"cuda_runtime\"",
                                    "\"cat\":\"cpu_instant_event\"",
                                    "\"cat\":\"gpu_user_annotation\"",
                                    "\"cat\":\"user_annotation\"",
                                    "\"name\":\"[memory]\"",
                                    "\"name\":\"ProfilerStep#1\"",
                                    "\"name\":\"thread_name\"",
                                    "\"args\":{",
                                    "\"ts\":",
                                    "\"dur\":",
                                    "\"pid\":",
                                    "\"tid\":",
                                    "\"id\":",
                                    "\"External id\":",
                                    "\"correlation\":",
                                    "\"Input Dims\":[[",
                                    "\"Sequence number\":",
                                    "\"Fwd thread id\":",
                                    "\"finished\":false",
                                    "\"Bytes\":",
                                    "\"Addr\":",
                                    "\"baseTimeNanoseconds\":",
                                    "\"traceEvents\":[",
                                    "\xef\xbb\xbf",
                                    "\xff",
                                    "\xed\xa0\x80",
                                    "\xf0\x9f\x98\x80",
                                    "\x01",
                                    "Iteration Start:",
                                    "Record Window End"};

static inline void insert(input *in, uint32_t at, const char *text, uint32_t length) {
    if (in->length + length > LONGEST)
        return;
    memmove(in->text + at + length, in->text + at, in->length - at);
    memcpy(in->text + at, text, length);
    in->length += length;
}

static inline void cut(input *in, uint32_t at, uint32_t length) {
    length = in->length - at < length ? in->length - at : length;
    memmove(in->text + at, in->text + at + length, in->length - at - length);
    in->length -= length;
}

static const char *const values[] = {"null",
                                     "true",
                                     "0",
                                     "-1",
                                     "1",
                                     "2",
                                     "3",
                                     "7",
                                     "9",
                                     "0.0005",
                                     "1e3",
                                     "12.3456789",
                                     "1e30",
                                     "[]",
                                     "{}",
                                     "[[2,3]]",
                                     "\"\"",
                                     "\"kernel\"",
                                     "\"cpu_op\"",
                                     "\"X\"",
                                     "\"i\"",
                                     "\"b\"",
                                     "\"e\"",
                                     "NaN",
                                     "\"s\"",
                                     "\"[memory]\"",
                                     "\"ProfilerStep#2\"",
                                     "\"cuda_runtime\"",
                                     "2305843009213693951",
                                     "-2305843009213693951",
                                     "\"\\ud800\""};

/* Replaces the value after a colon, which keeps JSON valid. */
static inline void change_value(input *in, uint32_t at) {
    const char *value = values[below(sizeof values / sizeof *values)];
    while (at < in->length && in->text[at] != ':')
        at++;
    uint32_t end = ++at;
    while (end < in->length && !strchr(",}]", in->text[end]))
        end++;
    if (end >= in->length)
        return;
    cut(in, at, end - at);
    insert(in, at, value, (uint32_t)strlen(value));
}

static inline void change_bytes(input *in, const input *other) {
    static char piece[LONGEST];
    uint32_t at = below(in->length + 1), length = 1 + below(below(8) ? 16 : 512);
    switch (below(5)) {
    case 0:
        if (at < in->length)
            in->text[at] = (char)(in->text[at] ^ 1 << below(8));
        break;
    case 1:
        if (at < in->length)
            in->text[at] = (char)below(256);
        break;
    case 2:
        cut(in, at, length);
        break;
    case 3: /* repeat a stretch */
        length = in->length - at < length ? in->length - at : length;
        memcpy(piece, in->text + at, length);
        insert(in, below(in->length + 1), piece, length);
        break;
    default: /* a stretch of another input */
        if (other->length) {
            uint32_t from = below(other->length);
            length = other->length - from < length ? other->length - from : length;
            insert(in, at, other->text + from, length);
        }
    }
}

static inline void change_json(input *in, const input *other) {
    uint32_t at = below(in->length + 1);
    const char *word = words[below(sizeof words / sizeof *words)];
    if (below(3)) {
        change_value(in, at);
        return;
    }
    switch (below(8)) {
    case 0: /* another number */
        while (at < in->length && !(in->text[at] >= '0' && in->text[at] <= '9'))
            at++;
        if (at < in->length)
            in->text[at] = (char)('0' + below(10));
        break;
    case 1:
        cut(in, at, (uint32_t)strlen(word));
        insert(in, at < in->length ? at : in->length, word, (uint32_t)strlen(word));
        break;
    case 2:
        insert(in, at, word, (uint32_t)strlen(word));
        break;
    default:
        change_bytes(in, other);
    }
}

/* Writes an integer where one may be, or a stretch of zeros or ones: bad lengths and offsets. */
static inline void change_binary(input *in, const input *other) {
    static const uint32_t extremes[] = {0,       1,          0x7f,       0xff,       0x1000,
                                        0x40000, 0x7fffffff, 0x80000000, 0xffffff00, 0xffffffff};
    if (below(3) || in->length < sizeof *extremes) {
        change_bytes(in, other);
        return;
    }
    uint32_t at = below(in->length / 4) * 4 + below(4), size = 1u << below(3);
    uint32_t value = extremes[below(sizeof extremes / sizeof *extremes)];
    if (at + size <= in->length)
        memcpy(in->text + at, &value, size);
}

#endif
