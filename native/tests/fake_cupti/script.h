/* Lines of a script (fake_cupti.h), parsed. */
#ifndef FAKE_SCRIPT_H
#define FAKE_SCRIPT_H

#include "fake_cupti.h"

/* In addition to the kinds of activities. */
enum line_kind {
    LINE_BEGIN = 100,
    LINE_END,
    LINE_STEP,
    LINE_WAIT,
    LINE_FLUSH,
    LINE_DROP,
    LINE_LATE,
    LINE_SHUFFLE,
    LINE_THREAD,
    LINE_JOIN
};

/* Which times of an activity are relative to when it is run. */
enum line_relative {
    RELATIVE_API_START = 1,
    RELATIVE_API_END = 2,
    RELATIVE_START = 4,
    RELATIVE_END = 8
};

typedef struct script_line {
    uint32_t kind; /* enum fake_kind, enum line_kind; 0: an empty line */
    uint32_t relative;
    uint64_t number;
    char name[256];
    fake_activity activity; /* its name is NULL: see above */
} script_line;

/* Whether the line is valid; it ends at a newline or at the text's end. */
int script_parse(const char *text, script_line *line);

#endif
