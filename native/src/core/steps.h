/* Begin and end of steps, and the clock pairs of a window. */
#ifndef OP_STEPS_H
#define OP_STEPS_H

#include "core/clock.h"

#include <stdbool.h>
#include <stdint.h>

/* A thread takes part in a step if it runs the step or did not exist when the step began. */
typedef struct op_step_mark {
    int64_t number;
    uint64_t start, end; /* ticks; end 0: open */
    uint32_t stepper;    /* OS thread id */
    uint32_t tid_count;
    uint32_t *tids; /* all threads at the step's begin, sorted; NULL: could not be read */
} op_step_mark;

typedef struct op_steps {
    op_step_mark *marks;
    uint32_t count, capacity;
} op_steps;

int op_steps_begin(op_steps *steps, int64_t number);
void op_steps_end(op_steps *steps);
void op_steps_clear(op_steps *steps);
bool op_step_has_thread(const op_step_mark *mark, uint32_t os_tid);

typedef struct op_timeline {
    op_clock_pair *pairs; /* in order of time */
    uint32_t count, capacity;
} op_timeline;

int op_timeline_add(op_timeline *timeline);
void op_timeline_clear(op_timeline *timeline);

#endif
