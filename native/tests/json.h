/* Whether a text is strict JSON (RFC 8259) in valid UTF-8. */
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Each of these consumes what it is named after; NULL: it is not there. */
static inline const char *json_value(const char *s, int depth);

static inline const char *json_space(const char *s) { return s + strspn(s, " \t\n\r"); }

static inline const char *json_digits(const char *s) {
    size_t n = strspn(s, "0123456789");
    return n ? s + n : NULL;
}

static inline const char *json_number(const char *s) {
    s += *s == '-';
    s = *s == '0' ? s + 1 : json_digits(s);
    if (s && *s == '.')
        s = json_digits(s + 1);
    if (s && (*s == 'e' || *s == 'E')) {
        s++;
        s = json_digits(s + (*s == '+' || *s == '-'));
    }
    return s;
}

/* One UTF-8 character, without surrogates and overlong forms. */
static inline const char *json_character(const char *text) {
    const uint8_t *s = (const uint8_t *)text;
    int more = *s < 0x80                 ? 0
               : *s >= 0xc2 && *s < 0xe0 ? 1
               : *s >> 4 == 14           ? 2
               : *s >= 0xf0 && *s < 0xf5 ? 3
                                         : -1;
    if (more < 0 || (*s == 0xe0 && s[1] < 0xa0) || (*s == 0xed && s[1] >= 0xa0) ||
        (*s == 0xf0 && s[1] < 0x90) || (*s == 0xf4 && s[1] >= 0x90))
        return NULL;
    for (int i = 1; i <= more; i++)
        if (s[i] >> 6 != 2)
            return NULL;
    return text + 1 + more;
}

static inline const char *json_string(const char *s) {
    if (*s++ != '"')
        return NULL;
    while (s && *s != '"') {
        if ((uint8_t)*s < 0x20)
            return NULL;
        if (*s != '\\')
            s = json_character(s);
        else if (s[1] == 'u')
            s = strspn(s + 2, "0123456789abcdefABCDEF") >= 4 ? s + 6 : NULL;
        else
            s = s[1] && strchr("\"\\/bfnrt", s[1]) ? s + 2 : NULL;
    }
    return s ? s + 1 : NULL;
}

static inline const char *json_members(const char *s, char end, int depth) {
    s = json_space(s);
    if (*s == end)
        return s + 1;
    for (;;) {
        if (end == '}') {
            s = json_string(json_space(s));
            if (!s || *(s = json_space(s)) != ':')
                return NULL;
            s++;
        }
        s = json_value(json_space(s), depth + 1);
        if (!s)
            return NULL;
        s = json_space(s);
        if (*s == end)
            return s + 1;
        if (*s++ != ',')
            return NULL;
    }
}

static inline const char *json_value(const char *s, int depth) {
    if (depth > 64)
        return NULL;
    if (*s == '{' || *s == '[')
        return json_members(s + 1, *s == '{' ? '}' : ']', depth);
    if (*s == '"')
        return json_string(s);
    static const char *const words[] = {"true", "false", "null"};
    for (int i = 0; i < 3; i++)
        if (strncmp(s, words[i], strlen(words[i])) == 0)
            return s + strlen(words[i]);
    return json_number(s);
}

static inline bool is_json(const char *text) {
    const char *end = json_value(json_space(text), 0);
    return end && *json_space(end) == 0;
}

#endif
