/* Time as disjoint stretches, and how much of a window they cover. */
#ifndef OP_STRETCHES_H
#define OP_STRETCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero: empty. */
typedef struct op_stretches {
    int64_t *starts, *ends, *before; /* by stretch; `before` is the total length of all earlier ones */
    uint64_t count, room;
    uint64_t at_from, at_to; /* hints for the next lookup */
} op_stretches;

/* Adds a stretch, in the order of start; one that overlaps the last extends it. False: no memory. */
bool op_stretches_add(op_stretches *s, int64_t start_ns, int64_t end_ns);
int64_t op_stretches_within(op_stretches *s, int64_t from_ns, int64_t to_ns);
void op_stretches_free(op_stretches *s);

/* How many of the sorted times are not later than `at`. Callers ask nearly in order too, so the search
 * widens from the last answer, `hint`. */
uint64_t op_count_until(const int64_t *times, uint64_t count, int64_t at, uint64_t *hint);

/* qsort() for data that is mostly sorted already: the work of a stream and the launches of a thread
 * are, and most programs have one of each. */
void op_sort(void *values, uint64_t count, size_t size, int (*order)(const void *, const void *));

#endif
