#include "core/json_in.h"

#include "check.h"
#include "core/json_scalar.h"

static const char *problem_at; /* from the last scan */

/* Scans a value's text with its end, in a buffer of its own: a sanitizer sees reads beyond it. */
static int scan(const char *text, size_t length, bool is_last, size_t *taken) {
    char *copy = malloc(length + !length);
    CHECK(copy != NULL);
    memcpy(copy, text, length);
    op_scan j = {.at = copy, .end = copy + length, .is_last = is_last};
    op_span value = {0};
    int rc = op_scan_value(&j, &value);
    problem_at = rc == OP_SCAN_BAD ? j.problem : NULL;
    *taken = rc == OP_SCAN_OK ? value.length : (size_t)(j.at - copy);
    op_scan_free(&j);
    free(copy);
    return rc;
}

static int whole(const char *text) {
    size_t taken;
    int rc = scan(text, strlen(text), true, &taken);
    if (rc == OP_SCAN_OK)
        CHECK_EQ(taken, strlen(text));
    return rc;
}

static void values_are_whole(void) {
    static const char *const good[] = {"0",
                                       "-0",
                                       "12",
                                       "-1.5e+3",
                                       "1E9",
                                       "0.001",
                                       "true",
                                       "false",
                                       "null",
                                       "NaN",
                                       "-Infinity",
                                       "\"\"",
                                       "[]",
                                       "{}",
                                       "[1, [2], {}]",
                                       "\"\\u00e9\"",
                                       "\"\xc3\xa9\"",
                                       "\"a\\\"b\\\\\"",
                                       "{\"a\": [1, {\"b\": \"}\"}], \"c\" : null }"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        CHECK_EQ(whole(good[i]), OP_SCAN_OK);
}

static void what_is_no_value_is_told(void) {
    static const char *const bad[] = {
        "-",       "1.",          "1e",       ".5",        "tru",
        "nul",     "[1 2]",       "[1,]",     "[,1]",      "{1: 2}",
        "{\"a\"}", "{\"a\":}",    "[1}",      "{\"a\":1]", "\"\x01\"",
        "\"\\x\"", "\"\\u12g4\"", "\"\xff\"", "\"\xc3\"",  "\"\xed\xa0\x80\"",
        "'a'",     "[",           "{",        "\"",        ""};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        size_t taken;
        CHECK_EQ(scan(bad[i], strlen(bad[i]), true, &taken), OP_SCAN_BAD);
        CHECK(problem_at != NULL);
    }
}

static void a_value_cut_anywhere_wants_more(void) {
    static const char text[] = "{\"a\": [1.5, -2, true, \"\xe6\x97\xa5\\u0041\\n\", {\"b\": null}]}";
    for (size_t length = 0; length < sizeof text - 1; length++) {
        size_t taken;
        CHECK_EQ(scan(text, length, false, &taken), OP_SCAN_MORE);
        CHECK_EQ(scan(text, length, true, &taken), OP_SCAN_BAD);
    }
    size_t taken;
    CHECK_EQ(scan(text, sizeof text - 1, false, &taken), OP_SCAN_OK);
    CHECK_EQ(scan("12", 2, false, &taken), OP_SCAN_MORE);
}

static void depth_costs_no_stack(void) {
    enum { DEPTH = 1000000 };
    char *text = malloc(2 * DEPTH);
    size_t taken;
    CHECK(text != NULL);
    memset(text, '[', DEPTH);
    memset(text + DEPTH, ']', DEPTH);
    CHECK_EQ(scan(text, 2 * DEPTH, true, &taken), OP_SCAN_OK);
    CHECK_EQ(taken, 2 * DEPTH);
    text[DEPTH + DEPTH / 2] = '}';
    CHECK_EQ(scan(text, 2 * DEPTH, true, &taken), OP_SCAN_BAD);
    CHECK_EQ(taken, DEPTH + DEPTH / 2);
    free(text);
}

static void strings_are_unescaped(void) {
    static const struct {
        const char *text, *is;
    } strings[] = {{"plain", "plain"},
                   {"\\\"\\\\\\/\\b\\f\\n\\r\\t", "\"\\/\b\f\n\r\t"},
                   {"\\u0041\\u00e9\\u65e5", "A\xc3\xa9\xe6\x97\xa5"},
                   {"\\ud83d\\ude00", "\xf0\x9f\x98\x80"},
                   {"\\ud83d!", "\\ud83d!"},
                   {"\\uDC00", "\\udc00"},
                   {"\\ud83d\\u0041", "\\ud83dA"}};
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
        char out[64] = {0};
        const op_span span = {.text = strings[i].text, .length = strlen(strings[i].text)};
        out[op_scan_unescape(&span, out)] = 0;
        CHECK_TEXT(out, strings[i].is);
    }
}

static void microseconds_are_exact_nanoseconds(void) {
    static const struct {
        const char *text;
        int64_t ns;
    } times[] = {{"0", 0},
                 {"4012345678901.234", 4012345678901234},
                 {"4012345678901.2344", 4012345678901234},
                 {"4012345678901.2345", 4012345678901235},
                 {"1695835542514261", 1695835542514261000},
                 {"0.0004", 0},
                 {"0.0005", 1},
                 {"-1.5", -1500},
                 {"1.5e3", 1500000},
                 {"1500e-3", 1500},
                 {"15E-4", 2},
                 {"14e-4", 1},
                 {"1e-9", 0},
                 {"0e99999", 0},
                 {"1e-99999", 0},
                 {"0.000000001e9", 1000},
                 {"12.3456e-2", 123},
                 {"1125899906842624.125", 1125899906842624125}};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        int64_t ns = -1;
        const op_span span = {.text = times[i].text, .length = strlen(times[i].text)};
        CHECK(op_scan_nanoseconds(&span, &ns));
        CHECK_EQ(ns, times[i].ns);
    }
    static const char *const none[] = {"\"1\"",
                                       "null",
                                       "NaN",
                                       "-Infinity",
                                       "[1]",
                                       "1e30",
                                       "99999999999999999999",
                                       "19000000000000000",
                                       "1900000000000000e1",
                                       ""};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        int64_t ns;
        const op_span span = {.text = none[i], .length = strlen(none[i])};
        CHECK(!op_scan_nanoseconds(&span, &ns));
    }
}

static void integers_are_canonical(void) {
    int64_t value;
    static const char *const none[] = {"",
                                       "-",
                                       "-0",
                                       "01",
                                       "1.0",
                                       "1e3",
                                       "+1",
                                       "0x1",
                                       "\"1\"",
                                       "2305843009213693952",
                                       "99999999999999999999"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        const op_span span = {.text = none[i], .length = strlen(none[i])};
        CHECK(!op_scan_integer(&span, &value));
    }
    const op_span least = {.text = "-2305843009213693951", .length = 20};
    CHECK(op_scan_integer(&least, &value));
    CHECK_EQ(value, -2305843009213693951);
}

int main(void) {
    RUN(values_are_whole);
    RUN(what_is_no_value_is_told);
    RUN(a_value_cut_anywhere_wants_more);
    RUN(depth_costs_no_stack);
    RUN(strings_are_unescaped);
    RUN(microseconds_are_exact_nanoseconds);
    RUN(integers_are_canonical);
    return 0;
}
