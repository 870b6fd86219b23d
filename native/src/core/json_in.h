/* Reads JSON text in place: a cursor over bytes; more may arrive later. It does not recurse, and
 * depth costs one bit per level. Strict (RFC 8259), but accepts profilers' NaN and Infinity. */
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
    bool is_last;        /* no bytes follow `end` */
    bool has_constant;   /* NaN or Infinity was read; the caller clears it */
    const char *problem; /* after OP_SCAN_BAD */
    uint64_t *nesting;   /* of the value being skipped, one bit per level: set for an object */
    size_t nesting_words;
} op_scan;

/* A part of the text. */
typedef struct op_span {
    const char *text;
    size_t length;
    bool is_escaped; /* a string that contains a backslash */
} op_span;

void op_scan_free(op_scan *j);
/* Skips white space. Returns the next character, 0 at the end of the text. */
char op_scan_peek(op_scan *j);
/* Reads the string at the cursor, without its quotes. Its bytes are valid UTF-8. */
int op_scan_string(op_scan *j, op_span *out);
/* Reads any value at the cursor, complete and well-formed. */
int op_scan_value(op_scan *j, op_span *out);
/* Skips `{` or `[`, and later each `,`. Sets `*more` to false at the closing bracket, which it skips
 * too. `first` is true before the first item and is cleared. */
int op_scan_next(op_scan *j, char close, bool *first, bool *more);
/* Reads a member's key and skips its colon. */
int op_scan_key(op_scan *j, op_span *key);

#endif
