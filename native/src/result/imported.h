/* What a result keeps of the trace file it was read from, beside its columns: all that the columns
 * do not say, so that the trace can be written again without loss. */
#ifndef OP_IMPORTED_H
#define OP_IMPORTED_H

#include "core/json_in.h"
#include "opprof.h"
#include "result/string_table.h"

#include <stdbool.h>

/* What the columns make of a category of Kineto's. */
typedef struct op_category {
    const char *name;
    uint8_t kind, scope;
    uint8_t device_type; /* torch's number; 0: the host */
} op_category;

#define OP_MOST_DEVICE_TYPES 20 /* the highest of torch's numbers here */

extern const op_category op_categories[];
/* Index of a category, -1 for one that the columns have no kind for. */
int op_category_find(const char *name, size_t length);

/* A thread or a stream: the texts of its events' pid and tid, as JSON. */
typedef struct op_lane {
    uint32_t pid, tid;
    uint32_t label; /* text of what the trace calls it, 0: nothing */
    uint8_t device_type;
} op_lane;

/* Marks of texts (texts.h). */
enum { OP_TEXT_PLAIN = 'p', OP_TEXT_ARG = 'a', OP_TEXT_MEMBER = 'm' };

typedef struct op_imported {
    op_string_table texts;
    op_lane *lanes;
    uint32_t lane_count;
    uint8_t *category; /* by row */
    uint32_t *extras;  /* by row: 1 + offset in `extra_bytes`; 0: none */
    op_buffer extra_bytes;
    op_buffer others; /* events that the columns do not hold: the extras of each, one after the other */
    uint64_t other_count;
    op_buffer members; /* of the file's object, but for its events: JSON with commas between */
    int64_t base_ns;   /* of a time 0 in the file, since the epoch */
    op_buffer answer;  /* what op_result_event_args() gave last */
} op_imported;

/* The trace again, to a file descriptor; `metadata` is more members of its object, or "". */
int op_imported_write(const op_result *result, int fd, const char *metadata);

#endif
