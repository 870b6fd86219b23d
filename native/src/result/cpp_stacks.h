/* The C++ stacks of a result: the frames of all threads as one tree without duplicates. */
#ifndef OP_CPP_STACKS_H
#define OP_CPP_STACKS_H

#include "core/loaded.h"
#include "result/result.h"

typedef struct op_cpp_stacks op_cpp_stacks;

/* Reads a record of kind OP_STACK or OP_MODULE, which follows its event (row `row`) on its thread.
 * Threads must come one after the other. `block` is its arguments, NULL for none. 0, or OP_ENOMEM. */
int op_cpp_stacks_read(op_result *r, const op_event *e, uint32_t thread, uint64_t row,
                       const uint32_t *block);
int op_cpp_stacks_file(op_result *r, uint32_t path, const uint32_t *block);
void op_cpp_stacks_free(op_cpp_stacks *stacks);

#endif
