/* How much work ops were given: bytes, FLOPs, and nodes that they added to autograd's graph. */
#ifndef OP_WORK_H
#define OP_WORK_H

#include "result/segment.h"

/* By row, all zero at first; `room` is how many rows there may be. NULL: no memory. */
op_work *op_work_of(op_result *r, uint64_t room);
/* A torch op's argument block may have its work. false: no memory. */
bool op_work_note(op_result *r, uint64_t row, const uint32_t *block, const uint32_t *limit,
                  uint64_t room);
/* Once it is known which rows are views. */
void op_work_settle(const op_segment *rows);

#endif
