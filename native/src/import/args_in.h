/* The arguments of a trace event. */
#ifndef OP_ARGS_IN_H
#define OP_ARGS_IN_H

#include "result/imported.h"

typedef struct op_read_args {
    int64_t correlation, external_id, sequence_nr; /* -1: none */
    uint32_t forward_thread;
    bool is_unfinished;
    int64_t address, bytes, allocated, reserved;
    int64_t device_type, device_index;
    op_span dims; /* length 0: none */
} op_read_args;

/* Assigns ids to the known keys. Call it before any other text is stored. */
int op_args_prepare(op_imported *imported);
/* Reads a JSON object and keeps all of its members as extras. */
int op_args_read(op_imported *imported, const op_span *object, bool has_constant, op_read_args *out);
/* Adds an argument block to `words`: `*at` is 1 + its offset, or 0 if it is too long. */
int op_args_put_shapes(op_buffer *words, const op_span *dims, uint32_t *at);
int op_args_put_memory(op_buffer *words, const op_read_args *args, uint32_t *at);

#endif
