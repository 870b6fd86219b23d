/* JSON text, read in place: a cursor over bytes of which more may come. Nothing recurses, and depth
 * costs a bit a level. Strict (RFC 8259) but for NaN and Infinity, which profilers write. */
#ifndef OP_JSON_IN_H
#define OP_JSON_IN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum op_scan_status {
    OP_SCAN_OK = 0,
    OP_SCAN_MORE = 1, /* the text ends inside the value */
    OP_SCAN_BAD = 2,  /* `problem` says why, `at` where */
    OP_SCAN_NOMEM = 3
};

typedef struct op_scan {
    const char *at, *end;
    bool is_last;        /* no bytes come after `end` */
    bool has_constant;   /* NaN or Infinity was met; the caller clears it */
    const char *problem; /* after OP_SCAN_BAD */
    uint64_t *nesting;   /* of the value being skipped, a bit a level: set in an object */
    size_t nesting_words;
} op_scan;

/* A stretch of the text. */
typedef struct op_span {
    const char *text;
    size_t length;
    bool is_escaped; /* it is a string with a backslash in it */
} op_span;

void op_scan_free(op_scan *j);
/* Past white space; the character there, 0 at the end of the text. */
char op_scan_peek(op_scan *j);
/* The string at the cursor, its quotes left out. Its bytes are UTF-8. */
int op_scan_string(op_scan *j, op_span *out);
/* Any value at the cursor, whole and well-formed. */
int op_scan_value(op_scan *j, op_span *out);
/* Past `{` or `[` and then past each `,`: OP_SCAN_OK with `*more` false at the closing bracket, which
 * it passes too. `first` is true before the first item and is cleared. */
int op_scan_next(op_scan *j, char close, bool *first, bool *more);
/* A member's key, and past its colon. */
int op_scan_key(op_scan *j, op_span *key);

#endif
