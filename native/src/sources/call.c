#include "sources/call.h"

#include "core/grow.h"

#define FIRST_CALLS 256u

op_lines op_lines_noted = {.epoch = 1};

bool op_calls_grow(op_thread *t, uint32_t window) {
    if (t->call_window != window) {
        t->call_window = window;
        t->call_depth = 0;
    }
    bool has_room = OP_HAS_ROOM(t->calls, t->call_depth, t->call_capacity, FIRST_CALLS);
    if (!has_room)
        op_thread_drop(t);
    return has_room;
}

void op_call_end_deeper(op_thread *t, const void *code) {
    uint32_t at = t->call_depth;
    while (at && t->calls[at - 1].code != code)
        at--;
    if (at == 0)
        return;
    uint64_t now = op_ticks();
    while (t->call_depth >= at)
        op_call_close(&t->calls[--t->call_depth], now);
}
