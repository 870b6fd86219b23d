#include "error.h"

#include "opprof.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static __thread char text[1536];

int op_error_set(int code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return code;
}

int op_error_errno(const char *format, ...) {
    char reason[128];
    const char *said = strerror_r(errno, reason, sizeof reason);
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n >= 0 && (size_t)n < sizeof text)
        snprintf(text + n, sizeof text - (size_t)n, ": %s", said);
    return OP_EIO;
}

const char *op_last_error(void) { return text; }
