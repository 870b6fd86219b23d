/* How many floating point operations an op does, from the shapes of its inputs. */
#ifndef OP_FLOP_FORMULAS_H
#define OP_FLOP_FORMULAS_H

#include "result/inputs.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The number of the formula of an op, by its name; 0: none. */
uint8_t op_flop_formula(const char *name);
/* FLOPs of one run, at most OP_FLOPS_MOST; negative: unknown. */
#define OP_FLOPS_MOST ((INT64_C(1) << 53) - 1) /* the largest integer that all JSON readers keep */
int64_t op_flops_of(uint8_t formula, op_inputs inputs);

#ifdef __cplusplus
}
#endif

#endif
