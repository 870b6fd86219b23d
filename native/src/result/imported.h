/* What a result keeps of its trace file besides the columns: all that the columns lack, so that the
 * trace can be written again without loss. */
#ifndef OP_IMPORTED_H
#define OP_IMPORTED_H

#include "core/json_in.h"
#include "opprof.h"
#include "result/string_table.h"

#include <stdbool.h>

/* How a category of Kineto's maps to columns. */
typedef struct op_category {
    const char *name;
    uint8_t kind, scope;
    uint8_t device_type; /* torch's number; 0: the host */
} op_category;

#define OP_MOST_DEVICE_TYPES 20 /* the highest of torch's numbers used here */

extern const op_category op_categories[];
/* Index of a category; -1: the columns have no kind for it. */
int op_category_find(const char *name, size_t length);

/* A thread or stream: the pid and tid of its events, as JSON texts. */
typedef struct op_lane {
    uint32_t pid, tid;
    uint32_t label; /* text with the trace's name for it; 0: none */
    uint8_t device_type;
} op_lane;

/* Marks of texts (string_table.h). */
enum { OP_TEXT_PLAIN = 'p', OP_TEXT_ARG = 'a', OP_TEXT_MEMBER = 'm' };

typedef struct op_imported {
    op_string_table texts;
    op_lane *lanes;
    uint32_t lane_count;
    uint8_t *category; /* by row */
    uint32_t *extras;  /* by row: 1 + offset in `extra_bytes`; 0: none */
    op_buffer extra_bytes;
    op_buffer others; /* events that the columns cannot hold: their extras, one after the other */
    uint64_t other_count, unread_count; /* of the first: those that look like work */
    op_buffer members; /* members of the file's object except its events: JSON separated by commas */
    int64_t base_ns;   /* time 0 of the file, since the epoch */
    op_buffer answer;  /* the last result of op_result_event_args() */
} op_imported;

/* Writes the trace again to a file descriptor; `metadata` is further members of its object, or "". */
int op_imported_write(const op_result *result, int fd, const char *metadata);

#endif
