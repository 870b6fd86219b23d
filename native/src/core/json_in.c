#include "core/json_in.h"

#include "core/grow.h"

#include <string.h>

void op_scan_free(op_scan *j) {
    free(j->nesting);
    j->nesting = NULL;
    j->nesting_words = 0;
}

static int bad(op_scan *j, const char *problem) {
    j->problem = problem;
    return OP_SCAN_BAD;
}

static int cut_short(op_scan *j) { return j->is_last ? bad(j, "the text ends here") : OP_SCAN_MORE; }

char op_scan_peek(op_scan *j) {
    while (j->at < j->end && (*j->at == ' ' || *j->at == '\n' || *j->at == '\r' || *j->at == '\t'))
        j->at++;
    return j->at < j->end ? *j->at : 0;
}

/* ---- strings ---------------------------------------------------------------------------- */

/* Whether one of eight bytes is a quote, a backslash, a control character or not ASCII. */
static inline bool needs_a_look(uint64_t eight) {
    const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
    uint64_t quote = eight ^ ones * '"', slash = eight ^ ones * '\\';
    return ((eight - ones * 0x20) | (quote - ones) | (slash - ones) | eight) & tops;
}

static const char *plain_until(const char *at, const char *end) {
    while (end - at >= 8) {
        uint64_t eight;
        memcpy(&eight, at, 8);
        if (needs_a_look(eight))
            break;
        at += 8;
    }
    return at;
}

/* Length of the UTF-8 character at `at`; 0: invalid, -1: the text ends inside it. */
static int character_length(const uint8_t *at, const uint8_t *end) {
    int length = *at >> 5 == 6 ? 2 : *at >> 4 == 14 ? 3 : *at >> 3 == 30 ? 4 : 0;
    if (length == 0)
        return 0;
    uint32_t code = *at & (0x7fu >> length);
    for (int i = 1; i < length; i++) {
        if (at + i == end)
            return -1;
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (at[i] & 0x3f);
    }
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    return code < least[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : length;
}

static bool is_hex(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static int skip_escape(op_scan *j, const char **at) {
    const char *c = *at + 1;
    if (c == j->end)
        return cut_short(j);
    if (*c != 'u') {
        if (*c == 0 || !strchr("\"\\/bfnrt", *c))
            return bad(j, "an invalid escape in a string");
        *at = c + 1;
        return OP_SCAN_OK;
    }
    for (int i = 1; i <= 4; i++) {
        if (c + i >= j->end)
            return cut_short(j);
        if (!is_hex(c[i]))
            return bad(j, "a \\u escape without four hex digits");
    }
    *at = c + 5;
    return OP_SCAN_OK;
}

int op_scan_string(op_scan *j, op_span *out) {
    const char *start = j->at + 1, *at = start;
    out->is_escaped = false;
    for (;;) {
        at = plain_until(at, j->end);
        if (at >= j->end)
            return cut_short(j);
        uint8_t c = (uint8_t)*at;
        if (c == '"')
            break;
        if (c == '\\') {
            out->is_escaped = true;
            int rc = skip_escape(j, &at);
            if (rc != OP_SCAN_OK) {
                j->at = at;
                return rc;
            }
        } else if (c < 0x20) {
            j->at = at;
            return bad(j, "a control character in a string");
        } else if (c < 0x80) {
            at++;
        } else {
            int length = character_length((const uint8_t *)at, (const uint8_t *)j->end);
            if (length < 0)
                return cut_short(j);
            if (length == 0) {
                j->at = at;
                return bad(j, "bytes that are not UTF-8 in a string");
            }
            at += length;
        }
    }
    out->text = start;
    out->length = (size_t)(at - start);
    j->at = at + 1;
    return OP_SCAN_OK;
}

/* ---- numbers ---------------------------------------------------------------------------- */

static const char *skip_digits(const char *at, const char *end) {
    while (at < end && *at >= '0' && *at <= '9')
        at++;
    return at;
}

static int skip_number(op_scan *j) {
    const char *at = j->at + (*j->at == '-'), *end = j->end, *digits = at;
    at = skip_digits(at, end);
    bool whole = at > digits && (*digits != '0' || at - digits == 1);
    if (whole && at < end && *at == '.') {
        digits = ++at;
        at = skip_digits(at, end);
        whole = at > digits;
    }
    if (whole && at < end && (*at == 'e' || *at == 'E')) {
        at++;
        if (at < end && (*at == '+' || *at == '-'))
            at++;
        digits = at;
        at = skip_digits(at, end);
        whole = at > digits;
    }
    if (at == end && !j->is_last)
        return OP_SCAN_MORE; /* more digits may follow */
    if (!whole)
        return at == end ? cut_short(j) : bad(j, "not a number");
    j->at = at;
    return OP_SCAN_OK;
}

/* ---- any value -------------------------------------------------------------------------- */

static int skip_word(op_scan *j, const char *word) {
    size_t length = strlen(word), there = (size_t)(j->end - j->at);
    if (memcmp(j->at, word, there < length ? there : length) != 0)
        return bad(j, "not a JSON value");
    if (there < length)
        return cut_short(j);
    j->at += length;
    return OP_SCAN_OK;
}

static int skip_constant(op_scan *j) {
    j->has_constant = true;
    if (*j->at == 'N')
        return skip_word(j, "NaN");
    return skip_word(j, *j->at == 'I' ? "Infinity" : "-Infinity");
}

static int skip_scalar(op_scan *j, op_span *string) {
    switch (*j->at) {
    case '"':
        return op_scan_string(j, string);
    case 't':
        return skip_word(j, "true");
    case 'f':
        return skip_word(j, "false");
    case 'n':
        return skip_word(j, "null");
    case 'N':
    case 'I':
        return skip_constant(j);
    case '-':
        if (j->end - j->at < 2)
            return cut_short(j);
        return j->at[1] == 'I' ? skip_constant(j) : skip_number(j);
    default:
        return *j->at >= '0' && *j->at <= '9' ? skip_number(j) : bad(j, "not a JSON value");
    }
}

static bool push(op_scan *j, size_t depth, bool is_object) {
    size_t word = depth / 64;
    if (!OP_HAS_ROOM(j->nesting, word, j->nesting_words, 8))
        return false;
    uint64_t bit = (uint64_t)1 << depth % 64;
    j->nesting[word] = is_object ? j->nesting[word] | bit : j->nesting[word] & ~bit;
    return true;
}

static bool in_object(const op_scan *j, size_t depth) {
    return depth && j->nesting[(depth - 1) / 64] >> (depth - 1) % 64 & 1;
}

int op_scan_key(op_scan *j, op_span *key) {
    char c = op_scan_peek(j);
    if (j->at == j->end)
        return cut_short(j);
    if (c != '"')
        return bad(j, "a member without a name");
    int rc = op_scan_string(j, key);
    if (rc != OP_SCAN_OK)
        return rc;
    c = op_scan_peek(j);
    if (j->at == j->end)
        return cut_short(j);
    if (c != ':')
        return bad(j, "a name without a colon");
    j->at++;
    op_scan_peek(j);
    return OP_SCAN_OK;
}

/* Skips what follows a value: closing brackets, then a comma and, in an object, the next key. */
static int after_value(op_scan *j, size_t *depth) {
    while (*depth) {
        char c = op_scan_peek(j);
        bool object = in_object(j, *depth);
        if (j->at == j->end)
            return cut_short(j);
        j->at++;
        if (c == (object ? '}' : ']')) {
            --*depth;
            continue;
        }
        op_span key;
        if (c == ',')
            return object ? op_scan_key(j, &key) : OP_SCAN_OK;
        j->at--;
        return bad(j, "no comma between two values");
    }
    return OP_SCAN_OK;
}

/* Skips an opening bracket, and its closing one if that follows at once. */
static int open_bracket(op_scan *j, size_t *depth, bool *is_empty) {
    bool object = *j->at == '{';
    j->at++;
    char c = op_scan_peek(j);
    if (j->at == j->end)
        return cut_short(j);
    *is_empty = c == (object ? '}' : ']');
    if (*is_empty) {
        j->at++;
        return OP_SCAN_OK;
    }
    if (!push(j, (*depth)++, object))
        return OP_SCAN_NOMEM;
    op_span key;
    return object ? op_scan_key(j, &key) : OP_SCAN_OK;
}

int op_scan_value(op_scan *j, op_span *out) {
    op_scan_peek(j);
    out->text = j->at;
    op_span string = {0};
    size_t depth = 0;
    for (;;) {
        char c = op_scan_peek(j);
        if (j->at == j->end)
            return cut_short(j);
        bool whole = true;
        int rc = c == '{' || c == '[' ? open_bracket(j, &depth, &whole) : skip_scalar(j, &string);
        if (rc == OP_SCAN_OK && whole)
            rc = after_value(j, &depth);
        if (rc != OP_SCAN_OK)
            return rc;
        if (whole && depth == 0)
            break;
    }
    out->length = (size_t)(j->at - out->text);
    out->is_escaped = *out->text == '"' && string.is_escaped;
    return OP_SCAN_OK;
}

int op_scan_next(op_scan *j, char close, bool *first, bool *more) {
    char c = op_scan_peek(j);
    if (j->at == j->end)
        return cut_short(j);
    *more = c != close;
    if (!*more || !*first)
        j->at++;
    if (*more && !*first && c != ',') {
        j->at--;
        return bad(j, "no comma between two values");
    }
    *first = false;
    return OP_SCAN_OK;
}
