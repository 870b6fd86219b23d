/* Values of JSON strings and numbers. json_in.c has already checked that they are well-formed. */
#include "core/json_scalar.h"

#include "core/json_in.h"

#include <string.h>

#define LARGEST ((uint64_t)1 << 61) /* so that sums of a few fit an int64_t */

static uint32_t hex4(const char *text) {
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) {
        char c = text[i];
        uint32_t digit = c <= '9' ? (uint32_t)(c - '0') : ((uint32_t)c | 0x20u) - 'a' + 10;
        value = value << 4 | digit;
    }
    return value;
}

static char *put_character(char *out, uint32_t code) {
    if (code < 0x80) {
        *out++ = (char)code;
        return out;
    }
    int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const uint8_t lead[] = {0, 0xc0, 0xe0, 0xf0};
    *out++ = (char)(lead[more] | code >> 6 * more);
    while (more--)
        *out++ = (char)(0x80 | (code >> 6 * more & 0x3f));
    return out;
}

/* UTF-8 has no code for an unpaired surrogate, so it stays the six characters of its escape. */
static char *put_written_out(char *out, uint32_t code) {
    static const char hex[] = "0123456789abcdef";
    *out++ = '\\';
    *out++ = 'u';
    for (int shift = 12; shift >= 0; shift -= 4)
        *out++ = hex[code >> shift & 15];
    return out;
}

static char unescaped(char c) {
    switch (c) {
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    default:
        return c;
    }
}

size_t op_scan_unescape(const op_span *string, char *out) {
    const char *at = string->text, *end = at + string->length;
    char *to = out;
    while (at < end) {
        if (*at != '\\') {
            *to++ = *at++;
            continue;
        }
        if (at[1] != 'u') {
            *to++ = unescaped(at[1]);
            at += 2;
            continue;
        }
        uint32_t code = hex4(at + 2);
        at += 6;
        if (code >= 0xd800 && code < 0xdc00 && end - at >= 6 && at[0] == '\\' && at[1] == 'u') {
            uint32_t low = hex4(at + 2);
            if (low >= 0xdc00 && low < 0xe000) {
                code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
                at += 6;
            }
        }
        to = code >= 0xd800 && code < 0xe000 ? put_written_out(to, code) : put_character(to, code);
    }
    return (size_t)(to - out);
}

static const char *skip_digits(const char *at, const char *end) {
    while (at < end && *at >= '0' && *at <= '9')
        at++;
    return at;
}

bool op_scan_integer(const op_span *value, int64_t *out) {
    const char *at = value->text, *end = at + value->length;
    bool negative = at < end && *at == '-';
    at += negative;
    size_t digits = (size_t)(end - at);
    if (digits == 0 || digits > 19 || (*at == '0' && (digits > 1 || negative)))
        return false;
    uint64_t sum = 0;
    for (; at < end; at++) {
        if (*at < '0' || *at > '9')
            return false;
        sum = sum * 10 + (uint64_t)(*at - '0');
    }
    if (sum >= LARGEST)
        return false;
    *out = negative ? -(int64_t)sum : (int64_t)sum;
    return true;
}

/* The exponent of a number that skip_number() has checked; a long one is capped far beyond any time. */
static int exponent_of(const char *at, const char *end) {
    bool negative = *at == '-';
    at += *at == '-' || *at == '+';
    int sum = 0;
    for (; at < end && sum < 10000; at++)
        sum = sum * 10 + (*at - '0');
    return negative ? -sum : sum;
}

/* The digits without the point are d0 d1 d2...; the first `whole` of them are the nanoseconds, padded
 * with zeros, and the next one rounds. */
bool op_scan_nanoseconds(const op_span *value, int64_t *out) {
    const char *at = value->text, *end = at + value->length;
    bool negative = at < end && *at == '-';
    at += negative;
    if (at == end || *at < '0' || *at > '9')
        return false;
    const char *mantissa_end = skip_digits(at, end);
    int64_t whole = mantissa_end - at + 3;
    if (mantissa_end < end && *mantissa_end == '.')
        mantissa_end = skip_digits(mantissa_end + 1, end);
    if (mantissa_end < end)
        whole += exponent_of(mantissa_end + 1, end);
    uint64_t sum = 0;
    for (; at < mantissa_end && whole > 0; at++) {
        if (*at == '.')
            continue;
        if (sum >= LARGEST / 10)
            return false;
        sum = sum * 10 + (uint64_t)(*at - '0');
        whole--;
    }
    for (; whole > 0 && sum; whole--) {
        if (sum >= LARGEST / 10)
            return false;
        sum *= 10;
    }
    at += at < mantissa_end && *at == '.';
    sum += whole == 0 && at < mantissa_end && *at >= '5';
    *out = negative ? -(int64_t)sum : (int64_t)sum;
    return true;
}
