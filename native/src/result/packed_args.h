/* Stores the members of a trace event and of its args, as keys in `texts` and packed values. */
#ifndef OP_PACKED_ARGS_H
#define OP_PACKED_ARGS_H

#include "result/imported.h"

void op_imported_free(op_imported *imported);

int op_packed_args_begin(op_imported *i, uint32_t *at); /* OP_OK, or OP_ELIMIT: too many */
/* 0, or -1: no memory. `key` is a text's id, `value` any JSON value; NaN and Infinity become
 * strings. */
int op_packed_args_add(op_imported *i, op_buffer *b, uint32_t key, const op_span *value,
                       bool has_constant);
int op_packed_args_end(op_buffer *b);
/* Adds the members of a well-formed object, then the end. */
int op_packed_args_add_all(op_imported *i, op_buffer *b, const op_span *object, bool has_constant);
/* Writes `"key": value`, comma-separated, for each member with this mark; moves `*at` past the end. */
int op_packed_args_write(const op_imported *i, const char **at, char mark, op_buffer *out);
/* The value of an argument if it is a natural number; else -1. */
int64_t op_packed_args_number(const op_imported *i, uint32_t extras, const char *key);
int op_packed_args_of_row(const op_imported *i, uint32_t extras, char mark, op_buffer *out);
/* Copies JSON; NaN and Infinity become strings. */
int op_json_copy(op_buffer *out, const op_span *text, bool has_constant);

#endif
