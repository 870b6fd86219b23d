/* The inputs of a torch op, as the observer wrote them (event.h, enum op_input_tag). */
#ifndef OP_INPUTS_H
#define OP_INPUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Tokens of an argument block (op_result_args): a torch op's inputs, or the text of a range. */
typedef struct op_inputs {
    const uint32_t *at, *end;
} op_inputs;

bool op_inputs_of(const uint32_t *block, const uint32_t *limit, op_inputs *out);
/* The op's work (OP_INPUT_WORK) in a block; NULL: none. */
const uint32_t *op_inputs_work(const uint32_t *block, const uint32_t *limit);
/* The op's FLOPs by formula; 0: none recorded; negative: the ops inside have them. */
int64_t op_inputs_flops(const uint32_t *block, const uint32_t *limit);
/* The name id of the op's overload in a block; NULL: none. */
const uint32_t *op_inputs_overload(const uint32_t *block, const uint32_t *limit);
/* The block of keyword arguments (fields.h) in a block; NULL: none. */
const uint32_t *op_inputs_keywords(const uint32_t *block, const uint32_t *limit);
/* Maps the ids of the overload and keywords, read from a file, to the ids they have here. */
void op_inputs_rename(uint32_t *block, const uint32_t *limit, const uint32_t *names, uint32_t count);
/* Reads a token with its payload and advances; false at the end or where it was cut. */
bool op_inputs_next(op_inputs *inputs, const uint32_t **token);
uint64_t op_inputs_shape_hash(op_inputs inputs);
bool op_inputs_same_shapes(op_inputs a, op_inputs b);
uint64_t op_inputs_hash(op_inputs inputs); /* includes values, strides and types */
bool op_inputs_same(op_inputs a, op_inputs b);
bool op_input_is_tensor(uint32_t token);
int64_t op_input_word(const uint32_t *token, uint32_t index); /* size, stride or element */

#ifdef __cplusplus
}
#endif

#endif
