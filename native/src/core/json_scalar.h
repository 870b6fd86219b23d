/* What a scalar of JSON says. */
#ifndef OP_JSON_SCALAR_H
#define OP_JSON_SCALAR_H

#include "core/json_in.h"

/* The inside of a string (without its quotes) as UTF-8 (a surrogate without its partner stays
 * written out, in six characters). `out` has room for the span's length. */
size_t op_scan_unescape(const op_span *string, char *out);
/* Microseconds in decimal as nanoseconds, exact to the nanosecond and never through a double;
 * false where the value is not a number, or is beyond 73 years. */
bool op_scan_nanoseconds(const op_span *value, int64_t *out);
/* A decimal integer as JSON writes it, below 2^61; false for anything else. */
bool op_scan_integer(const op_span *value, int64_t *out);

#endif
