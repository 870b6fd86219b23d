/* The members of one event of a trace and of its args, as keys of `texts` and packed values. */
#ifndef OP_PACKED_ARGS_H
#define OP_PACKED_ARGS_H

#include "result/imported.h"

void op_imported_free(op_imported *imported);

int op_packed_args_begin(op_imported *i,
                         uint32_t *at); /* OP_OK, or OP_ELIMIT where there are too many */
/* All of these: 0, or -1: no memory. `key` is a text's id, `value` any JSON value; NaN and Infinity
 * become strings. */
int op_packed_args_add(op_imported *i, op_buffer *b, uint32_t key, const op_span *value,
                       bool has_constant);
int op_packed_args_end(op_buffer *b);
/* The members of a well-formed object, and the end. */
int op_packed_args_add_all(op_imported *i, op_buffer *b, const op_span *object, bool has_constant);
/* `"key": value` for each member with this mark, with commas between; past the end. */
int op_packed_args_write(const op_imported *i, const char **at, char mark, op_buffer *out);
/* What an argument of this name says, if that is a natural number; else -1. */
int64_t op_packed_args_number(const op_imported *i, uint32_t extras, const char *key);
int op_packed_args_of_row(const op_imported *i, uint32_t extras, char mark, op_buffer *out);
/* JSON as it stands, but for NaN and Infinity, which become strings. */
int op_json_copy(op_buffer *out, const op_span *text, bool has_constant);

#endif
