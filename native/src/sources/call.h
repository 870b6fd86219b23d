/* Python and C calls: a second tree among a thread's events, with a stack of its own.
 * The end of a call names the code that ended. If that is not the innermost open call, those above it
 * ended unseen (a greenlet switched, a tracer was off for a moment) and end with it. If no open call
 * has that code, the end is ignored. So a tree always stays a tree. */
#ifndef OP_CALL_H
#define OP_CALL_H

#include "core/record.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct op_call {
    op_event *event; /* NULL: open but not recorded, for lack of room or interest */
    op_chunk *chunk;
    const void *code; /* what runs; distinguishes the ends of calls */
    uint32_t depth;   /* recorded calls around it */
    bool hidden;      /* uninteresting, as are the C functions that it calls */
} op_call;

enum op_caller {
    OP_CALLED_BY_PYTHON,
    OP_CALLED_BY_ENGINE /* autograd's engine, which calls node after node */
};

typedef struct op_lines {
    void (*note)(const op_slot *slot, enum op_caller caller); /* NULL while no lines are noted */
    bool has_calls;                                           /* calls are recorded too */
    bool has_callers; /* a site is noted together with the sites it is reached from */
    uint64_t epoch;   /* of call sites, see sites.h */
} op_lines;

extern op_lines op_lines_noted;

/* Makes room for one more call; false: no memory, which is counted. Forgets earlier windows. */
bool op_calls_grow(op_thread *t, uint32_t window);
/* Ends a call that is not the innermost one. */
void op_call_end_deeper(op_thread *t, const void *code);

/* Whether this thread's calls belong to the open window; false if it has none yet. */
static inline bool op_calls_are_of(const op_thread *t, uint32_t window) {
    return t != NULL && t->call_window == window;
}

/* Pushes one more call, for which there is room; it is not recorded so far. */
static inline op_call *op_call_push(op_thread *t, const void *code) {
    op_call *call = &t->calls[t->call_depth++];
    const op_call *around = t->call_depth > 1 ? call - 1 : NULL;
    *call = (op_call){NULL, NULL, code, around ? around->depth + (around->event != NULL) : 0, false};
    return call;
}

/* Notes an open call without recording it. */
static inline void op_call_pass(op_thread *t, const void *code, bool hidden) {
    if (t->call_depth == t->call_capacity && !op_calls_grow(t, t->call_window))
        return;
    op_call_push(t, code)->hidden = hidden;
}

static inline void op_call_begin(op_thread *t, const void *code, uint32_t name, uint8_t kind,
                                 uint8_t flags, uint16_t line) {
    if (__builtin_expect(t->call_depth == t->call_capacity, 0) && !op_calls_grow(t, t->call_window))
        return;
    op_call *call = op_call_push(t, code);
    if (__builtin_expect(call->depth > UINT16_MAX, 0)) {
        op_thread_drop(t);
        return;
    }
    if (__builtin_expect(op_thread_ready(t->call_window, 0) != t, 0))
        return;
    op_event *e = t->next;
    op_chunk *c = t->chunk;
    __atomic_store_n(&e->end, 0, __ATOMIC_RELAXED);
    e->name = name;
    e->args = 0;
    e->line = line;
    e->aux = 0;
    e->kind = kind;
    __atomic_store_n(&e->flags, flags, __ATOMIC_RELAXED);
    e->depth = (uint16_t)call->depth;
    call->event = e;
    call->chunk = c;
    t->next = e + 1;
    __builtin_prefetch(e + OP_AHEAD, 1);
    __atomic_store_n(&c->open, c->open + 1, __ATOMIC_RELAXED);
    e->start = op_ticks();
    __atomic_store_n(&c->count, c->count + 1, __ATOMIC_RELEASE);
}

static inline void op_call_close(const op_call *call, uint64_t ticks) {
    if (call->event == NULL)
        return;
    __atomic_store_n(&call->event->end, ticks, __ATOMIC_RELAXED);
    __atomic_store_n(&call->chunk->open, call->chunk->open - 1, __ATOMIC_RELEASE);
}

static inline void op_call_end(op_thread *t, const void *code) {
    if (__builtin_expect(t->call_depth != 0 && t->calls[t->call_depth - 1].code == code, 1))
        op_call_close(&t->calls[--t->call_depth], op_ticks());
    else
        op_call_end_deeper(t, code);
}

enum op_line {
    OP_LINE_OWN,
    OP_LINE_SHARED, /* that of the op around it */
    OP_LINE_IN_NODE /* of autograd: its own if Python runs inside that */
};

static inline bool op_is_node(const op_event *e) {
    return e->flags & OP_FLAG_ENGINE || (e->flags & OP_SCOPE_MASK) == OP_SCOPE_BACKWARD;
}

/* An op that is not a node, out of those that have lines. */
static inline bool op_is_plain(const op_event *e) {
    return !(e->flags & (OP_SCOPE_MASK | OP_FLAG_ENGINE));
}

static inline bool op_is_op(const op_event *e) {
    return e->kind == OP_TORCH && (e->flags & OP_SCOPE_MASK) != OP_SCOPE_USER;
}

/* What runs inside an op (not a range) shares the op's line, unless Python ran in between. Between a
 * node and its ops Python runs in a hook, in a user's `backward` and in a recomputed forward. */
static inline enum op_line op_line_of(const op_slot *slot, enum op_caller caller) {
    const op_thread *t = slot->thread;
    const op_event *e = slot->event, *around = e->depth ? t->stack[e->depth - 1].event : NULL;
    if (!around)
        return OP_LINE_OWN;
    if (caller == OP_CALLED_BY_ENGINE && around->flags & ~e->flags & OP_FLAG_ENGINE)
        return OP_LINE_SHARED; /* a node shares that of the range around it */
    if (!op_is_op(around))
        return OP_LINE_OWN;
    const op_event *call = t->call_depth ? t->calls[t->call_depth - 1].event : NULL;
    if (t->call_window == slot->window && call && call->start >= around->start)
        return OP_LINE_OWN;
    return op_is_node(around) ? OP_LINE_IN_NODE : OP_LINE_SHARED;
}

/* Notes the line of an event called from Python. Most events are ops inside another op or a node: they
 * cost a few comparisons and no instruction fetch beyond what runs anyway. */
static inline void op_note_line(const op_slot *slot, enum op_caller caller) {
    const op_event *e = slot->event;
    if (e == NULL)
        return;
    const op_thread *t = slot->thread;
    if (op_is_plain(e) && e->depth > t->lined)
        return;
    if (e->depth > t->node && !(e->flags & OP_FLAG_ENGINE) && *t->python == t->engine_python &&
        *t->engine_word == t->engine_frame)
        return;
    void (*note)(const op_slot *, enum op_caller) =
        __atomic_load_n(&op_lines_noted.note, __ATOMIC_RELAXED);
    if (note)
        note(slot, caller);
}

#ifdef __cplusplus
}
#endif
#endif
