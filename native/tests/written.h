/* Traces as text, and checks of their content. */
#ifndef WRITTEN_H
#define WRITTEN_H

#include "json.h"
#include "made.h"

#include <stdarg.h>

/* The written trace, NUL-terminated; the caller frees it. */
static inline char *trace_of(const op_result *r, const char *metadata, const char *name) {
    FILE *file = tmpfile();
    CHECK(file != NULL);
    CHECK_OK(op_result_write_trace(r, fileno(file), metadata, name));
    long size = lseek(fileno(file), 0, SEEK_CUR);
    char *text = malloc((size_t)size + 1);
    CHECK(text != NULL);
    rewind(file);
    CHECK_EQ(fread(text, 1, (size_t)size, file), size);
    text[size] = 0;
    fclose(file);
    CHECK_EQ(strlen(text), size);
    CHECK(is_json(text));
    return text;
}

static inline void check_has(const char *text, const char *part) {
    check_that(strstr(text, part) != NULL, part, __FILE__, __LINE__);
}

/* Checks the event of this name in the trace, from its opening brace to its line's end. */
static inline void check_event(const char *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static inline void check_event(const char *text, const char *format, ...) {
    char expected[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(expected, sizeof expected, format, args);
    va_end(args);
    check_has(text, expected);
}

#endif
