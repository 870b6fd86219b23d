#include "core/json_out.h"

#include "core/fault.h"

bool op_json_open(op_json *w, int fd) {
    char *buffer = op_malloc(OP_JSON_BUFFER);
    *w = (op_json){.fd = fd, .buffer = buffer, .at = buffer};
    if (buffer)
        w->end = buffer + OP_JSON_BUFFER;
    return buffer != NULL;
}

void op_json_free(op_json *w) { free(w->buffer); }

void op_json_flush(op_json *w) {
    const char *from = w->buffer;
    while (!w->failed && from < w->at) {
        ssize_t n = op_write(w->fd, from, (size_t)(w->at - from));
        if (n < 0 && errno != EINTR)
            w->failed = errno;
        else if (n > 0)
            from += n;
    }
    w->at = w->buffer;
}

void op_json_bytes(op_json *w, const char *text, size_t n) {
    while (n > 0) {
        op_json_reserve(w, OP_JSON_PIECE);
        size_t room = (size_t)(w->end - w->at), piece = n < room ? n : room;
        memcpy(w->at, text, piece);
        w->at += piece;
        text += piece;
        n -= piece;
    }
}

/* Length of the UTF-8 character at `s`; 0 if it is invalid. Surrogates are allowed, as "surrogatepass"
 * encodes them in a Python string. */
static uint32_t character(const uint8_t *s, size_t n, uint32_t *code) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t length = *s < 0x80 ? 1 : *s >> 5 == 6 ? 2 : *s >> 4 == 14 ? 3 : *s >> 3 == 30 ? 4 : 0;
    if (length == 0 || length > n)
        return 0;
    *code = length == 1 ? *s : *s & (0x7fu >> length);
    for (uint32_t i = 1; i < length; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (s[i] & 0x3f);
    }
    return *code < least[length] || *code > 0x10ffff ? 0 : length;
}

static bool is_surrogate(uint32_t code) { return code >= 0xd800 && code < 0xe000; }

char *op_json_escape(char *out, const char *text, size_t n) {
    static const char hex[] = "0123456789abcdef";
    const uint8_t *s = (const uint8_t *)text;
    while (n) {
        uint32_t code, length = character(s, n, &code);
        if (!length)
            code = 0xfffd;
        if (code == '"' || code == '\\') {
            *out++ = '\\';
            *out++ = (char)code;
        } else if (code < 0x20 || code == 0x7f || is_surrogate(code) || !length) {
            /* Invalid UTF-8 becomes the replacement character. A surrogate becomes the six characters
             * of its escape: readers that store text as UTF-8 (Arrow's, Perfetto's) reject
             * surrogates. */
            *out++ = '\\';
            if (is_surrogate(code))
                *out++ = '\\';
            *out++ = 'u';
            for (int shift = 12; shift >= 0; shift -= 4)
                *out++ = hex[code >> shift & 15];
        } else {
            memcpy(out, s, length);
            out += length;
        }
        uint32_t step = length ? length : 1;
        s += step;
        n -= step;
    }
    return out;
}

void op_json_escaped(op_json *w, const char *text, size_t n) {
    char piece[6 * 64];
    while (n) {
        size_t take = n < 64 ? n : 64;
        while (take < n && take > 60 && ((uint8_t)text[take] & 0xc0) == 0x80)
            take--; /* do not split a character */
        op_json_bytes(w, piece, (size_t)(op_json_escape(piece, text, take) - piece));
        text += take;
        n -= take;
    }
}
