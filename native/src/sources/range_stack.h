/* The open ranges of each thread, for APIs that end "the last one of this domain". */
#ifndef OP_RANGE_STACK_H
#define OP_RANGE_STACK_H

#include "core/record.h"
#include "opprof.h"

#include <stdbool.h>

typedef struct op_range_stack {
    op_slot slot;
    const void *domain;
    uint32_t level;           /* ranges of this domain below it on this thread */
    unsigned long long id[3]; /* ITT's id of the instance; zeros: none */
} op_range_stack;

extern uint32_t op_accepted; /* bits of op_injected */

static inline bool op_accepts(uint32_t injected) {
    return op_recording() && (__atomic_load_n(&op_accepted, __ATOMIC_RELAXED) & injected);
}

/* Also while the window is paused: an accepted range may end then, and the end of a range that begins
 * then must not be taken for that of the range around it. */
static inline bool op_tracks(uint32_t injected) {
    return op_open_window() && (__atomic_load_n(&op_accepted, __ATOMIC_RELAXED) & injected);
}

/* Call this first; 0 or an errno. */
int op_range_stack_setup(void);
/* Adds a range, with its domain and level filled in; NULL: no memory, and its end is skipped too. Only
 * while a window is open; ranges of earlier windows are dropped. */
op_range_stack *op_range_stack_add(const void *domain);
/* Removes the last range of this domain and copies it to `out`; false: there is none. */
bool op_range_stack_take(const void *domain, op_range_stack *out);
/* The last range with this id, or the last of all if the id is zeros; NULL: none. It stays. */
op_range_stack *op_range_stack_find(const unsigned long long id[3]);

#endif
