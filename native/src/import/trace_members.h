/* The members of a trace event, as they are in the file. */
#ifndef OP_TRACE_MEMBERS_H
#define OP_TRACE_MEMBERS_H

#include "import/trace_reader.h"

#include <string.h>

enum { OP_MOST_MEMBERS = 24 };

typedef struct op_members {
    op_span ph, cat, name, pid, tid, ts, dur, args;
    op_span keys[OP_MOST_MEMBERS], values[OP_MOST_MEMBERS]; /* all others */
    int others;
    bool too_many;
} op_members;

/* At the `{` of an event. Returns an enum op_scan_status. If a member is repeated, the last one
 * wins. */
int op_members_scan(op_scan *j, op_members *m);
/* The inside of a string, unescaped if necessary; false: it is not a string, or r->failed is set. */
bool op_member_text(op_trace_reader *r, const op_span *value, op_span *out);
/* A string or a number, as processes and threads are named. */
bool op_member_is_plain(const op_span *value);

static inline bool op_key_is(const op_span *key, const char *name) {
    return key->length == strlen(name) && memcmp(key->text, name, key->length) == 0;
}

/* Whether it is a string of just this word. */
static inline bool op_member_is(const op_span *value, const char *word) {
    size_t length = strlen(word);
    return value->length == length + 2 && memcmp(value->text + 1, word, length) == 0;
}

#endif
