/* C++ stacks: where each op and range began, as addresses. Their names are looked up once, when
 * somebody reads them from the result (symbols.h).
 * A thread keeps the frames it has seen in the window as a tree, by caller and address, so that a stack
 * is one number. New frames go into the thread's own chunks together with the paths of their files, so
 * a recording that outlives its process has them too. The tree has a fixed number of places; an evicted
 * frame is written again under a new number. */
#ifndef OP_UNWINDING_H
#define OP_UNWINDING_H

#include "core/record.h"

#ifdef __cplusplus
extern "C" {
#endif

#define OP_STACK_FRAMES 256u /* the innermost ones of a deeper stack */

typedef struct op_known_frames op_known_frames;

typedef struct op_frames {
    uint32_t count;
    bool is_cut;                  /* there were more */
    uint64_t at[OP_STACK_FRAMES]; /* innermost first: an address inside each call */
} op_frames;

extern uint32_t op_unwinding; /* most frames that later windows keep; 0: none */

static inline uint32_t op_unwinds(void) { return __atomic_load_n(&op_unwinding, __ATOMIC_RELAXED); }

/* Call this before op_begin(), which keeps it out of the op's own time, if op_unwinds(). Takes the
 * calling thread's stack without the innermost frames of the calling module. It does not allocate; the
 * only lock is the unwinder's own, which libgcc does not need on glibc 2.35 and later. */
void op_unwind_take(op_frames *out);
/* Call this just after op_begin(): records it as the event's stack. */
void op_unwind_note(const op_slot *slot, const op_frames *frames);

/* All of the above. Compiled into each including module, because that is the calling module; out of
 * line, because the frames need stack space. */
__attribute__((noinline, unused)) static op_slot op_unwind_begin(uint32_t name, uint8_t kind,
                                                                 uint8_t flags, uint32_t aux,
                                                                 const uint32_t *words,
                                                                 uint32_t word_count) {
    op_frames frames;
    op_unwind_take(&frames);
    op_slot slot = op_begin(name, kind, flags, aux, words, word_count);
    op_unwind_note(&slot, &frames);
    return slot;
}

static inline op_slot op_begin_unwound(uint32_t name, uint8_t kind, uint8_t flags, uint32_t aux,
                                       const uint32_t *words, uint32_t word_count) {
    if (__builtin_expect(op_unwinds() != 0, 0))
        return op_unwind_begin(name, kind, flags, aux, words, word_count);
    return op_begin(name, kind, flags, aux, words, word_count);
}

void op_known_frames_free(op_known_frames *known); /* may be NULL */

#ifdef __cplusplus
}
#endif
#endif
