/* Backward ops: their numbers and steps. */
#ifndef OP_BACKWARD_H
#define OP_BACKWARD_H

#include "result/segment.h"

/* The step in which a range of autograd's numbers was assigned, by torch's number of the thread. A
 * thread counts up, so the numbers of a step are contiguous. */
typedef struct op_numbered {
    uint64_t thread;
    int64_t first, last;
    uint64_t place; /* index among those of its thread */
    int32_t step;   /* -1: in none */
} op_numbered;

typedef struct op_numbers {
    op_numbered *spans; /* once sorted: by thread, then in the order it counted */
    uint64_t count, capacity;
} op_numbers;

/* Takes the numbers of forward ops among the new rows. Sort once all are taken, then look up. */
int op_numbers_take(op_numbers *numbers, const op_segment *rows);
void op_numbers_sort(op_numbers *numbers);
void op_numbers_free(op_numbers *numbers);

/* Whether a row is the engine's wrapper around a node and does not have that node's number yet. */
bool op_backward_waits(const op_writable *w, uint64_t row);
/* Gives the wrappers their numbers; returns whether there are any nodes. */
bool op_backward_number(const op_segment *rows);
/* Moves backward ops to the steps of their forward ops. */
void op_backward_move(const op_segment *rows, const op_numbers *numbers);

#endif
