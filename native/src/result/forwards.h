/* The forward op of each backward op: ops by thread and autograd's sequence number. */
#ifndef OP_FORWARDS_H
#define OP_FORWARDS_H

#include "result/result.h"

#define OP_NO_FORWARD UINT32_MAX

typedef struct op_forward {
    uint64_t thread; /* torch's number of the thread */
    int64_t sequence;
    uint32_t row; /* + 1; 0: none */
    bool is_used;
} op_forward;

typedef struct op_forwards {
    op_forward *slots;
    uint64_t mask;
} op_forwards;

/* Free the table with op_forwards_close(), also after OP_ENOMEM. */
int op_forwards_open(op_forwards *out, uint64_t count); /* empty, with room for `count` ops */
/* If ops share a thread and a number, as `linear` and the `t` in it do, it has the first. */
int op_forwards_index(op_forwards *out, const op_result *result);
void op_forwards_close(op_forwards *f);

/* Where an op's row + 1 is stored; 0 there if the op was not added, or was taken. */
uint32_t *op_forwards_add(const op_forwards *f, uint64_t thread, int64_t sequence);
/* The op's row, or OP_NO_FORWARD. A taken op is not found again. */
uint32_t op_forwards_find(const op_forwards *f, uint64_t thread, int64_t sequence);
uint32_t op_forwards_take(const op_forwards *f, uint64_t thread, int64_t sequence);

#endif
