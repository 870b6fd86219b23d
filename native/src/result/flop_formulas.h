/* How many floating point operations an op does, from the shapes of its inputs. */
#ifndef OP_FLOP_FORMULAS_H
#define OP_FLOP_FORMULAS_H

#include "result/inputs.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The number of an op's formula, by the op's name; 0: it has none. */
uint8_t op_flop_formula(const char *name);
/* FLOPs of one run of it, at most OP_FLOPS_MOST; negative: they cannot be told. */
#define OP_FLOPS_MOST ((INT64_C(1) << 53) - 1) /* what a document can hold */
int64_t op_flops_of(uint8_t formula, op_inputs inputs);

#ifdef __cplusplus
}
#endif

#endif
