/* The work of ops: bytes, FLOPs, and nodes added to autograd's graph. */
#ifndef OP_WORK_H
#define OP_WORK_H

#include "result/segment.h"

/* By row, initially all zero; `room` is the capacity in rows. NULL: no memory. */
op_work *op_work_of(op_result *r, uint64_t room);
/* Reads the work from a torch op's argument block, if it has any. False: no memory. */
bool op_work_note(op_result *r, uint64_t row, const uint32_t *block, const uint32_t *limit,
                  uint64_t room);
/* Call this once it is known which rows are views. */
void op_work_settle(const op_segment *rows);

#endif
