/* The recording path: begin, end. No lock, no allocation, no system call, unless a chunk is full or the
 * thread is new to the window; then op_thread_prepare() takes the collector's lock.
 * Who may write what, so that no fence is needed: a thread alone begins events in its current chunk and
 * counts the chunk's open records. `count` is released after the event it counts, `arg_words` after the
 * words, `open` after the end, so whoever reads them with acquire order sees whole events. An end from
 * another thread takes the lock (op_end_elsewhere) and writes only `end` and a flag.
 * A chunk is reused by its owner, or by others once it is full and has no open record. */
#ifndef OP_RECORD_H
#define OP_RECORD_H

#include "core/clock.h"
#include "core/event.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct op_open {
    op_event *event;
    op_chunk *chunk;
} op_open;

/* Prefetch distance in events: between two events a program runs long enough for the processor to lose
 * track of this sequence of writes. */
#define OP_AHEAD 8

#define OP_NOT_LINED UINT32_MAX

typedef struct __attribute__((aligned(64))) op_thread { /* the first members share one cache line */
    op_event *next;                                     /* where the next event goes */
    uint32_t *tail;                                     /* lowest word of the chunk's argument blocks */
    op_chunk *chunk;                                    /* the current chunk; NULL before the first */
    op_open *stack;    /* open records, outermost first; ended ones below the top are holes */
    uint32_t depth;    /* of the stack */
    uint32_t capacity; /* of the stack */
    uint32_t window;   /* the window that this state belongs to */
    uint32_t holes;    /* in the stack; other threads write it too, under the lock */
    uint32_t lined;    /* place of the op whose line inner events share; OP_NOT_LINED */
    uint32_t node;     /* place of an autograd node that has run no Python; OP_NOT_LINED */
    void *contexts;    /* the torch observer's, one per stack place; begins with a link */
    /* ---- not needed to begin or end an event ---- */
    uint32_t bearable; /* number of holes that are not worth compacting */
    uint32_t index, os_tid;
    uint32_t session;     /* of the current chunk */
    uint32_t sequence;    /* of the next chunk */
    uint32_t chunk_bytes; /* of the next chunk */
    uint32_t exhausted;   /* no more room in this window: only count */
    uint32_t dead;
    uint64_t dropped;   /* begins that found no room */
    uint64_t told;      /* how many of them the session file has */
    uint64_t unmatched; /* ends whose begin was not recorded in this window */
    uint64_t torch_thread;
    char name[16];
    struct op_thread *link;
    uint32_t call_capacity;
    uint32_t counted_window; /* the window for which its counters were opened or refused (counters.h) */
    struct op_counters *counters;
    uint64_t born, gone;            /* ticks; `gone` 0: it is alive */
    struct op_known_frames *frames; /* unwinding.h */
    /* ---- where an event is called from, in one cache line ---- */
    const void *const *python /* the main thread's word for what Python runs (pyframe.h), or NULL */
        __attribute__((aligned(64)));
    const void *engine_python;      /* its value while autograd's engine runs */
    const void *const *engine_word; /* where the innermost frame is then, */
    const void *engine_frame;       /* which called the engine last; NULL: see pysite.c */
    const void *engine_at;          /* the instruction of the user's frame, */
    uint32_t engine_links;          /* which is so many callers further out, */
    uint16_t engine_site;           /* and its site */
    struct op_site_memo *sites;     /* sites.h; NULL: none yet */
    /* ---- Python and C calls ---- */
    struct op_call *calls; /* the open ones, outermost first (call.h) */
    uint32_t call_depth;
    uint32_t call_window; /* the window that the calls belong to */
} op_thread;

/* How a range finds its own record again. */
typedef struct op_slot {
    op_event *event; /* NULL: nothing was recorded */
    op_thread *thread;
    uint32_t window;
} op_slot;

extern uint32_t op_window;      /* number of the open window; 0: none, or paused: nothing may begin */
extern uint32_t op_paused;      /* number of the open window while it is paused, else 0 */
extern uint32_t op_with_inputs; /* whether later windows record the inputs of ops */
extern __thread op_thread *op_self
#if defined(__GLIBC__)
    __attribute__((tls_model("initial-exec"))) /* one pointer fits the loader's static surplus */
#endif
    ;

/* This thread, ready to begin an event with `arg_words` argument words; NULL: dropped and counted. */
op_thread *op_thread_prepare(uint32_t window, uint32_t arg_words);
void op_thread_drop(op_thread *t); /* counts an event of this thread that has no place */
void op_end_elsewhere(const op_slot *slot, uint64_t ticks);
/* Call it if it is known in advance that the record ends out of order or elsewhere. */
void op_make_async(const op_slot *slot);
/* The argument block of the calling thread's open record, and its replacement. NULL, false: it has
 * none, or its chunk is full and out of reach. */
const uint32_t *op_args_of(const op_slot *slot);
bool op_args_replace(const op_slot *slot, const uint32_t *words, uint32_t word_count);
void op_thread_trim(op_thread *t);
void op_thread_tidy(op_thread *t);
/* The contexts of a thread that ended, or NULL. Never freed: torch may destroy one on another
 * thread. */
void *op_contexts_take(void);

static inline bool op_keeps_inputs(void) {
    return __atomic_load_n(&op_with_inputs, __ATOMIC_RELAXED) != 0;
}

static inline uint32_t op_recording(void) { return __atomic_load_n(&op_window, __ATOMIC_RELAXED); }

/* The open window, paused or not: its open events may end. */
static inline uint32_t op_open_window(void) {
    uint32_t window = op_recording();
    return window ? window : __atomic_load_n(&op_paused, __ATOMIC_RELAXED);
}

/* This thread with room for an event and its argument words; NULL: none, which was counted. */
static inline op_thread *op_thread_ready(uint32_t window, uint32_t arg_words) {
    op_thread *t = op_self;
    if (__builtin_expect(t == NULL || t->window != window || t->depth == t->capacity ||
                             (uint32_t *)(t->next + 1) + arg_words > t->tail,
                         0))
        return op_thread_prepare(window, arg_words);
    return t;
}

/* Reserves an argument block below the earlier ones and prefetches memory for the next, because
 * processors do not predict occasional writes that move downwards. For small blocks, which advance line
 * by line, that is just the third line below. */
static inline uint32_t *op_take_words(op_thread *t, uint32_t count) {
    t->tail -= count;
    uint32_t last = __builtin_constant_p(count) && count <= 16 ? 3 : 6;
    for (uint32_t line = 3; line <= last; line++)
        __builtin_prefetch((const char *)t->tail - line * 64, 1);
    return t->tail;
}

/* Publishes the words just written; returns their word offset. */
static inline uint16_t op_publish_words(const op_thread *t, uint32_t count) {
    op_chunk *c = t->chunk;
    __atomic_store_n(&c->arg_words, c->arg_words + count, __ATOMIC_RELEASE);
    return (uint16_t)(t->tail - (uint32_t *)c);
}

static inline uint16_t op_add_words(op_thread *t, const uint32_t *words, uint32_t count) {
    __builtin_memcpy(op_take_words(t, count), words, count * sizeof *words);
    return op_publish_words(t, count);
}

/* For a thread that is ready; `args` is the offset of its published block, or 0. The slot is filled in
 * place: returned by value, it would be stored in parts and loaded whole, which stalls the processor.
 * Always inline, because a call would have more arguments than registers. */
__attribute__((always_inline)) static inline void op_begin_on(op_thread *t, op_slot *slot,
                                                              uint32_t name, uint8_t kind,
                                                              uint8_t flags, uint32_t aux,
                                                              uint16_t args) {
    op_event *e = t->next;
    op_chunk *c = t->chunk;
    e->args = args;
    e->line = 0;
    __atomic_store_n(&e->end, 0, __ATOMIC_RELAXED);
    e->name = name;
    e->aux = aux;
    e->kind = kind;
    __atomic_store_n(&e->flags, flags, __ATOMIC_RELAXED);
    e->depth = (uint16_t)t->depth;
    t->stack[t->depth].event = e;
    t->stack[t->depth].chunk = c;
    t->depth++;
    t->next = e + 1;
    __builtin_prefetch(e + OP_AHEAD, 1);
    __atomic_store_n(&c->open, c->open + 1, __ATOMIC_RELAXED);
    slot->event = e;
    slot->thread = t;
    slot->window = t->window;
    e->start = op_ticks();
    __atomic_store_n(&c->count, c->count + 1, __ATOMIC_RELEASE);
}

/* The next event asks for its line, wherever it begins. */
static inline void op_forget_line(op_thread *t) { t->lined = t->node = OP_NOT_LINED; }

static inline op_slot op_begin(uint32_t name, uint8_t kind, uint8_t flags, uint32_t aux,
                               const uint32_t *words, uint32_t word_count) {
    op_slot slot = {NULL, NULL, op_recording()};
    op_thread *t = slot.window ? op_thread_ready(slot.window, word_count) : NULL;
    if (t == NULL)
        return slot;
    if (__builtin_expect(__atomic_load_n(&t->holes, __ATOMIC_RELAXED) != 0, 0))
        op_thread_tidy(t);
    op_forget_line(t);
    uint16_t args = word_count ? op_add_words(t, words, word_count) : 0;
    op_begin_on(t, &slot, name, kind, flags, aux, args);
    return slot;
}

/* It is the calling thread's innermost open record, and the window is still recording. */
static inline bool op_is_innermost(const op_slot *slot) {
    const op_thread *t = op_self;
    return slot->event && t == slot->thread && slot->window == op_recording() &&
           t->window == slot->window && t->depth && t->stack[t->depth - 1].event == slot->event;
}

/* An event that takes no time and contains nothing. For a thread that is ready; `args` is the offset of
 * its published block, or 0. */
static inline void op_instant_on(op_thread *t, uint32_t name, uint8_t kind, uint8_t flags, uint32_t aux,
                                 uint16_t args) {
    op_event *e = t->next;
    op_chunk *c = t->chunk;
    e->args = args;
    e->line = 0;
    e->name = name;
    e->aux = aux;
    e->kind = kind;
    __atomic_store_n(&e->flags, flags, __ATOMIC_RELAXED);
    e->depth = (uint16_t)t->depth;
    t->next = e + 1;
    __builtin_prefetch(e + OP_AHEAD, 1);
    e->start = op_ticks();
    __atomic_store_n(&e->end, e->start, __ATOMIC_RELAXED);
    __atomic_store_n(&c->count, c->count + 1, __ATOMIC_RELEASE);
}

static inline void op_instant_numbered(uint32_t name, uint8_t kind, uint8_t flags, uint32_t aux,
                                       const uint32_t *words, uint32_t word_count) {
    uint32_t window = op_recording();
    op_thread *t = window ? op_thread_ready(window, word_count) : NULL;
    if (t != NULL)
        op_instant_on(t, name, kind, flags, aux, word_count ? op_add_words(t, words, word_count) : 0);
}

static inline void op_instant(uint32_t name, uint8_t kind, uint8_t flags, const uint32_t *words,
                              uint32_t word_count) {
    op_instant_numbered(name, kind, flags, OP_NO_SEQUENCE, words, word_count);
}

/* What an allocator did: OP_ARGS_MEMORY in event.h. */
typedef struct op_memory_change {
    uint64_t address;
    int64_t bytes, total_allocated, total_reserved;
    int32_t device_type, device_index;
} op_memory_change;
OP_STATIC_ASSERT(sizeof(op_memory_change) == OP_ARGS_MEMORY_WORDS * sizeof(uint32_t),
                 "the block's words as they are");

static inline void op_memory_changed(uint32_t name, const op_memory_change *change) {
    uint32_t window = op_recording();
    op_thread *t = window ? op_thread_ready(window, 1 + OP_ARGS_MEMORY_WORDS) : NULL;
    if (t == NULL)
        return;
    uint32_t *words = op_take_words(t, 1 + OP_ARGS_MEMORY_WORDS);
    /* Member by member: a whole copy would load the struct in other parts than it was just stored in,
     * which stalls the processor. */
    words[0] = OP_ARGS_HEADER(OP_ARGS_MEMORY, OP_ARGS_MEMORY_WORDS);
    __builtin_memcpy(words + 1, &change->address, sizeof change->address);
    __builtin_memcpy(words + 3, &change->bytes, sizeof change->bytes);
    __builtin_memcpy(words + 5, &change->total_allocated, sizeof change->total_allocated);
    __builtin_memcpy(words + 7, &change->total_reserved, sizeof change->total_reserved);
    __builtin_memcpy(words + 9, &change->device_type, sizeof change->device_type);
    __builtin_memcpy(words + 10, &change->device_index, sizeof change->device_index);
    op_instant_on(t, name, OP_MEMORY, 0, OP_NO_SEQUENCE, op_publish_words(t, 1 + OP_ARGS_MEMORY_WORDS));
}

static inline void op_end(const op_slot *slot) {
    op_event *e = slot->event;
    if (e == NULL)
        return;
    uint64_t now = op_ticks();
    op_thread *t = op_self;
    if (__builtin_expect(t == slot->thread && slot->window == op_recording() && t->depth != 0 &&
                             t->stack[t->depth - 1].event == e,
                         1)) {
        op_chunk *c = t->stack[t->depth - 1].chunk;
        __atomic_store_n(&e->end, now, __ATOMIC_RELAXED);
        t->depth--;
        __atomic_store_n(&c->open, c->open - 1, __ATOMIC_RELEASE);
        if (__builtin_expect(__atomic_load_n(&t->holes, __ATOMIC_RELAXED) != 0, 0))
            op_thread_trim(t);
        return;
    }
    op_end_elsewhere(slot, now);
}

#ifdef __cplusplus
}
#endif
#endif
