/* Shared parts of the trace writer. */
#ifndef OP_TRACE_WRITER_H
#define OP_TRACE_WRITER_H

#include "core/json_out.h"
#include "export/flows.h"
#include "export/lanes.h"
#include "result/result.h"

typedef struct op_escaped_name {
    char *text; /* NULL: not escaped yet */
    uint32_t length;
} op_escaped_name;

typedef struct op_place {
    char text[80]; /* from the name's closing quote up to the time */
    uint32_t length;
} op_place;

typedef struct op_trace {
    op_json out;
    const op_result *r;
    uint64_t pid;
    int64_t from_base;      /* nanoseconds from the base time to the window's start */
    op_escaped_name *names; /* by id */
    uint32_t name_count;
    const op_cpp_frame *frames; /* of C++ stacks; NULL: none were recorded */
    op_place *places;           /* by thread */
    op_flows flows;
    op_lanes lanes;
    uint8_t *launched; /* by row: it launched device work; NULL: none did */
    uint32_t *calls;   /* by row: 1 + the Python or C call at or around it; NULL: no calls */
    uint32_t *modules; /* by row: 1 + the torch module's call at or around it; NULL: none */
} op_trace;

/* The ends of arrows: from a launch to the device work, from an op to its backward op. */
enum op_arrow { OP_LAUNCH, OP_LAUNCHED, OP_FORWARD, OP_BACKWARD };

/* Order of rows in viewers; Kineto's numbers. */
#define OP_SORT_DEVICES 5000000
#define OP_SORT_SPANS 536870912

void op_trace_name(op_trace *t, uint32_t id);
void op_trace_arrow(op_trace *t, enum op_arrow end, uint64_t id, const op_place *at, int64_t at_ns);
int64_t op_trace_duration(const op_result *r, uint64_t row); /* if it is open: until the window's end */
/* Writes the ids that link a runtime call to the work it launched. */
void op_trace_correlation(op_trace *t, uint64_t call_row);

static inline bool op_trace_is_call(const op_columns *c, uint64_t row) {
    return c->kind[row] == OP_PYTHON_CALL || c->kind[row] == OP_C_CALL;
}

static inline void op_trace_time(op_trace *t, int64_t at_ns) {
    op_json_microseconds(&t->out, t->from_base + at_ns);
}

static inline void op_trace_place(op_trace *t, const op_place *at, int64_t at_ns) {
    op_json_bytes(&t->out, at->text, at->length);
    op_trace_time(t, at_ns);
}

#endif
