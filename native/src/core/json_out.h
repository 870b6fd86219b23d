/* Writes JSON text to a file descriptor through one buffer. Numbers and literals are inline because a
 * trace is mostly those. After a failed write, `failed` is set and further output is discarded. */
#ifndef OP_JSON_OUT_H
#define OP_JSON_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define OP_JSON_BUFFER (1u << 20)
#define OP_JSON_PIECE 512u /* room reserved before a number, a key or one character */

typedef struct op_json {
    int fd;
    int failed; /* errno */
    char *buffer, *at, *end;
} op_json;

bool op_json_open(op_json *w, int fd); /* false: no memory */
void op_json_flush(op_json *w);
void op_json_free(op_json *w);
void op_json_bytes(op_json *w, const char *text, size_t n);
/* Writes the inside of a string. Invalid UTF-8 becomes U+FFFD. */
void op_json_escaped(op_json *w, const char *text, size_t n);
/* The same into memory, at most six bytes for each of `n`; returns the end. */
char *op_json_escape(char *out, const char *text, size_t n);

static inline void op_json_reserve(op_json *w, size_t bytes) {
    if (__builtin_expect((size_t)(w->end - w->at) < bytes, 0))
        op_json_flush(w);
}

/* With a constant length the copy is a few moves. */
static inline void op_json_literal(op_json *w, const char *text, size_t n) {
    op_json_reserve(w, n);
    memcpy(w->at, text, n);
    w->at += n;
}

#define PUT(w, literal) op_json_literal(w, literal, sizeof(literal) - 1)

static inline void op_json_text(op_json *w, const char *text) { op_json_bytes(w, text, strlen(text)); }

static inline void op_json_unsigned(op_json *w, uint64_t value) {
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
    op_json_reserve(w, OP_JSON_PIECE);
    memcpy(w->at, at, n);
    w->at += n;
}

static inline void op_json_signed(op_json *w, int64_t value) {
    if (value < 0)
        PUT(w, "-");
    op_json_unsigned(w, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

/* Nanoseconds as microseconds with three decimals. */
static inline void op_json_microseconds(op_json *w, int64_t ns) {
    if (ns < 0)
        PUT(w, "-");
    uint64_t size = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    op_json_unsigned(w, size / 1000);
    uint32_t rest = (uint32_t)(size % 1000);
    op_json_reserve(w, OP_JSON_PIECE);
    w->at[0] = '.';
    w->at[1] = (char)('0' + rest / 100);
    w->at[2] = (char)('0' + rest / 10 % 10);
    w->at[3] = (char)('0' + rest % 10);
    w->at += 4;
}

#endif
