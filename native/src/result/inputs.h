/* The inputs of a torch op, as the observer wrote them (event.h, enum op_input_tag). */
#ifndef OP_INPUTS_H
#define OP_INPUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of an argument block (op_result_args): a torch op's, or the text that a range was given. */
typedef struct op_inputs {
    const uint32_t *at, *end; /* tokens */
} op_inputs;

bool op_inputs_of(const uint32_t *block, const uint32_t *limit, op_inputs *out);
/* Where a block has an op's work (OP_INPUT_WORK); NULL: it has none. */
const uint32_t *op_inputs_work(const uint32_t *block, const uint32_t *limit);
/* FLOPs of its op by formula; 0: none are noted. */
int64_t op_inputs_flops(const uint32_t *block, const uint32_t *limit);
/* Where a block has the name id of its op's overload; NULL: it has none. */
const uint32_t *op_inputs_overload(const uint32_t *block, const uint32_t *limit);
/* Where it has a block of named values (fields.h), given by keyword; NULL: it has none. */
const uint32_t *op_inputs_keywords(const uint32_t *block, const uint32_t *limit);
/* A block read from a file has the file's ids: the overload's and the keywords' become ours. */
void op_inputs_rename(uint32_t *block, const uint32_t *limit, const uint32_t *names, uint32_t count);
/* One token and its payload, and the place of the next; false at the end or where cut. */
bool op_inputs_next(op_inputs *inputs, const uint32_t **token);
uint64_t op_inputs_shape_hash(op_inputs inputs);
bool op_inputs_same_shapes(op_inputs a, op_inputs b);
uint64_t op_inputs_hash(op_inputs inputs); /* of values, strides and types too */
bool op_inputs_same(op_inputs a, op_inputs b);
bool op_input_is_tensor(uint32_t token);
int64_t op_input_word(const uint32_t *token, uint32_t index); /* size, stride or element */

#ifdef __cplusplus
}
#endif

#endif
