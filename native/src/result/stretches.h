/* Time as stretches that do not touch, and how much of any window lies in them. */
#ifndef OP_STRETCHES_H
#define OP_STRETCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero: there are none. */
typedef struct op_stretches {
    int64_t *starts, *ends, *before; /* by stretch; the last: how long all earlier ones are */
    uint64_t count, room;
    uint64_t at_from, at_to; /* where it was looked last */
} op_stretches;

/* Stretches come in the order of their start; one that overlaps the last one makes it longer.
 * False: no memory. */
bool op_stretches_add(op_stretches *s, int64_t start_ns, int64_t end_ns);
int64_t op_stretches_within(op_stretches *s, int64_t from_ns, int64_t to_ns);
void op_stretches_free(op_stretches *s);

/* How many of these times, which are in order, are not later. Whoever asks comes by in some order too:
 * the answer is looked for in widening steps from the last one, `hint`. */
uint64_t op_count_until(const int64_t *times, uint64_t count, int64_t at, uint64_t *hint);

/* qsort(), of what is in order most of the time: a stream's work and a thread's launches are, and most
 * programs have one of each. */
void op_sort(void *values, uint64_t count, size_t size, int (*order)(const void *, const void *));

#endif
