/* Backward ops: their numbers, and their steps. */
#ifndef OP_BACKWARD_H
#define OP_BACKWARD_H

#include "result/segment.h"

/* In which step autograd's numbers were given, by torch's number of the thread. A thread counts up, so
 * that those of a step stand together. */
typedef struct op_numbered {
    uint64_t thread;
    int64_t first, last;
    uint64_t place; /* among those of its thread */
    int32_t step;   /* -1: in none */
} op_numbered;

typedef struct op_numbers {
    op_numbered *spans; /* by thread, and of a thread as it counted, once they are sorted */
    uint64_t count, capacity;
} op_numbers;

/* Takes the numbers that forward ops among the new rows were given. They are asked for once all are
 * taken and sorted. */
int op_numbers_take(op_numbers *numbers, const op_segment *rows);
void op_numbers_sort(op_numbers *numbers);
void op_numbers_free(op_numbers *numbers);

/* The autograd engine's wrapper around a node, before it has that node's number. */
bool op_backward_waits(const op_writable *w, uint64_t row);
/* Gives it the number; whether there are nodes. */
bool op_backward_number(const op_segment *rows);
/* Moves backward ops to the steps of their forward ops. */
void op_backward_move(const op_segment *rows, const op_numbers *numbers);

#endif
