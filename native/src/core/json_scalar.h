/* Values of JSON scalars. */
#ifndef OP_JSON_SCALAR_H
#define OP_JSON_SCALAR_H

#include "core/json_in.h"

/* The inside of a string (without its quotes) as UTF-8; an unpaired surrogate keeps its six-character
 * escape. `out` has room for the span's length. */
size_t op_scan_unescape(const op_span *string, char *out);
/* Decimal microseconds as exact nanoseconds, never through a double. False: no number, or over 73
 * years. */
bool op_scan_nanoseconds(const op_span *value, int64_t *out);
/* A decimal integer as JSON writes it, below 2^61; false for anything else. */
bool op_scan_integer(const op_span *value, int64_t *out);

#endif
