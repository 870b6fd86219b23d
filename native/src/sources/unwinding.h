/* C++ stacks: where each op and range was begun from, as addresses. What they are called is looked up
 * once, when somebody asks the result (symbols.h).
 *
 * A thread keeps the frames that it has met in the window as a tree, each by its caller and address, so
 * that a stack is one number. Frames met for the first time go into the thread's own chunks, with the
 * paths of the files that they lie in: a recording that outlives its process can tell them too. The
 * tree has so many places; a frame that was pushed out of it is written once more under a new number.
 */
#ifndef OP_UNWINDING_H
#define OP_UNWINDING_H

#include "core/record.h"

#ifdef __cplusplus
extern "C" {
#endif

#define OP_STACK_FRAMES 256u /* the innermost, of a deeper stack */

typedef struct op_known_frames op_known_frames;

typedef struct op_frames {
    uint32_t count;
    bool is_cut;                  /* there were more */
    uint64_t at[OP_STACK_FRAMES]; /* innermost first: an address inside of each call */
} op_frames;

extern uint32_t op_unwinding; /* frames at most that the windows to come keep; 0: none */

static inline uint32_t op_unwinds(void) { return __atomic_load_n(&op_unwinding, __ATOMIC_RELAXED); }

/* Before op_begin(), so that an op's own time has no part of it, where op_unwinds(): the calling
 * thread's stack without the innermost frames in the module that asks. No allocation; no lock but the
 * unwinder's own, of which libgcc has none on glibc 2.35 and later. */
void op_unwind_take(op_frames *out);
/* Just after: it is the stack of the event. */
void op_unwind_note(const op_slot *slot, const op_frames *frames);

/* All of it. In each module that includes this, as that is the one that asks; out of line, as the
 * frames take room. */
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

void op_known_frames_free(op_known_frames *known); /* of a thread, or NULL */

#ifdef __cplusplus
}
#endif
#endif
