/* Call sites: a place in the user's own code that ops are called from has a number, its site. What runs
 * Python (pysite.c) gives places their numbers; a result says which ops were called from which
 * (called_from.h).
 *
 * Instructions that were met stand in one table for the process. A lookup takes no lock. What a thread
 * looked up lately is in a memo of its own, which goes by addresses alone and therefore ends with any
 * code object: most frames around an op are of installed files, and known by one word. */
#ifndef OP_SITES_H
#define OP_SITES_H

#include "core/record.h"
#include "opprof.h"
#include "sources/call.h"

#include <stdbool.h>
#include <stdint.h>

/* Of entries, besides the numbers of sites, which begin at 1. */
#define OP_SITE_NONE 0u           /* no user's code: ask what called it */
#define OP_SITE_BEYOND UINT16_MAX /* no number was left */

/* An instruction of a code object. One that took another's address is told from it by its table of
 * lines, and by a mark of what is in it. */
typedef struct op_instruction {
    const void *code, *lines;
    uint64_t mark;
    uint32_t offset;
    uint16_t site;
} op_instruction;

typedef struct op_instructions {
    uint32_t mask, count;
    struct op_instructions *outgrown; /* others may still read it */
    op_instruction entries[];         /* `code` is set last; NULL: empty */
} op_instructions;

#define OP_MEMO_LIBRARIES 128u
#define OP_MEMO_OWN 32u
#define OP_MEMO_TRAIL 62u

typedef struct op_trail {
    const void *frame, *code;
} op_trail;

typedef struct op_site_memo {
    uint64_t epoch;
    uint32_t trail_length;
    op_trail trail[1 + OP_MEMO_TRAIL]; /* the last walk's frames that are not the user's, outermost
                                        * first, after one that is none */
    const void *libraries[OP_MEMO_LIBRARIES]; /* code objects that are not the user's */
    struct {
        const void *at; /* an instruction of the user's */
        uint16_t site;
    } own[OP_MEMO_OWN];
} op_site_memo;

extern op_instructions *op_sites_known;

static inline uint32_t op_instruction_hash(const void *code, uint32_t offset) {
    uint64_t h = (uint64_t)(uintptr_t)code + offset * UINT64_C(0xc2b2ae3d27d4eb4f);
    return (uint32_t)((h * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

static inline bool op_instruction_is(const op_instruction *a, const op_instruction *b) {
    return a->offset == b->offset && a->lines == b->lines && a->mark == b->mark;
}

/* The instruction as it was met before; NULL: it is new. */
static inline const op_instruction *op_sites_look(const op_instruction *wanted) {
    const op_instructions *known = __atomic_load_n(&op_sites_known, __ATOMIC_ACQUIRE);
    if (__builtin_expect(known == NULL, 0))
        return NULL;
    for (uint32_t at = op_instruction_hash(wanted->code, wanted->offset);; at++) {
        const op_instruction *found = &known->entries[at & known->mask];
        const void *code = __atomic_load_n(&found->code, __ATOMIC_ACQUIRE);
        if (code == wanted->code && op_instruction_is(found, wanted))
            return found;
        if (code == NULL)
            return NULL;
    }
}

/* An address or a number may have another meaning from here on. */
static inline void op_sites_forget(void) {
    __atomic_fetch_add(&op_lines_noted.epoch, 1, __ATOMIC_RELEASE);
}

/* The memo of the calling thread, empty where an epoch ended since; NULL: there is no memory. */
op_site_memo *op_site_memo_anew(op_thread *t, uint64_t epoch);

static inline op_site_memo *op_site_memo_of(op_thread *t) {
    uint64_t epoch = __atomic_load_n(&op_lines_noted.epoch, __ATOMIC_ACQUIRE);
    op_site_memo *memo = t->sites;
    return __builtin_expect(memo && memo->epoch == epoch, 1) ? memo : op_site_memo_anew(t, epoch);
}

static inline const void **op_site_memo_library(op_site_memo *memo, const void *code) {
    uintptr_t address = (uintptr_t)code;
    return &memo->libraries[(address >> 5 ^ address >> 12) % OP_MEMO_LIBRARIES];
}

static inline uint32_t op_site_memo_slot(const void *at) {
    uintptr_t address = (uintptr_t)at;
    return (uint32_t)(address >> 1 ^ address >> 6) % OP_MEMO_OWN;
}

/* Notes an instruction, and gives its site: that of `place`, or OP_SITE_NONE where that is NULL.
 * Without memory it is new the next time too. */
uint16_t op_sites_add(const op_instruction *met, const op_site *place);

/* A site where it is reached from another one, each such pair with a number of its own; the site itself
 * where no number is left for it. */
uint16_t op_sites_under(uint16_t site, uint16_t caller);

/* Sites are noted in the open window from here on. Where few numbers are left, all are given anew. */
void op_sites_begin(void);
/* A copy of all places, by their numbers less 1, where the window noted sites; NULL: it did not, or
 * there was no memory. */
op_site *op_sites_take(uint32_t window, uint32_t *count);

void op_sites_lock(void); /* for fork */
void op_sites_unlock(void);

#endif
