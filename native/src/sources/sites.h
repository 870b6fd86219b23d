/* Call sites: a place in the user's own code that calls ops has a number, its site. The code that knows
 * Python (pysite.c) assigns the numbers; a result says which ops were called from which
 * (called_from.h).
 * Known instructions are in one table per process, and a lookup takes no lock. Recent lookups of a
 * thread are in its memo, which compares addresses alone and is therefore invalidated whenever a code
 * object ends. Most frames around an op are of installed files: one number stands for their code and
 * the user's instruction. Two calls share it by chance only, about once in 2^60. */
#ifndef OP_SITES_H
#define OP_SITES_H

#include "core/record.h"
#include "opprof.h"
#include "sources/call.h"

#include <stdbool.h>
#include <stdint.h>

/* Special values of entries; the numbers of sites begin at 1. */
#define OP_SITE_NONE 0u           /* not the user's code: look at its caller */
#define OP_SITE_BEYOND UINT16_MAX /* no number was left */

/* An instruction of a code object. Its line table and a mark of its content distinguish it from an
 * earlier one at the same address. */
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

#define OP_MEMO_USERS 15u
#define OP_MEMO_CALLS 256u
#define OP_MEMO_LIBRARIES 128u

typedef struct __attribute__((aligned(64))) op_site_memo {
    uint64_t epoch;
    const void *users[OP_MEMO_USERS]; /* code objects that are the user's; two cache lines so far */
    struct {
        uint64_t key; /* an instruction of the user's, and the code inside its call; 0: empty */
        uint16_t site;
    } calls[OP_MEMO_CALLS];
    const void *libraries[OP_MEMO_LIBRARIES]; /* code objects that are not the user's */
} op_site_memo;

extern op_instructions *op_sites_known;

static inline uint32_t op_instruction_hash(const void *code, uint32_t offset) {
    uint64_t h = (uint64_t)(uintptr_t)code + offset * UINT64_C(0xc2b2ae3d27d4eb4f);
    return (uint32_t)((h * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

static inline bool op_instruction_is(const op_instruction *a, const op_instruction *b) {
    return a->offset == b->offset && a->lines == b->lines && a->mark == b->mark;
}

/* The known instruction; NULL: it is new. */
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

/* From here on an address or a number may have another meaning. */
static inline void op_sites_forget(void) {
    __atomic_fetch_add(&op_lines_noted.epoch, 1, __ATOMIC_RELEASE);
}

/* The calling thread's memo, empty if an epoch ended since; NULL: no memory. */
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

static inline const void **op_site_memo_user(op_site_memo *memo, const void *code) {
    uint32_t address = (uint32_t)(uintptr_t)code;
    return &memo->users[((address * 0x9e3779b1u >> 16) * OP_MEMO_USERS) >> 16];
}

/* A number for code objects from an op outwards, and at last an instruction, one after the other. It
 * begins at 0. */
static inline uint64_t op_chain_with(uint64_t chain, const void *address) {
    return (chain + (uint64_t)(uintptr_t)address) * UINT64_C(0x9e3779b97f4a7c15);
}

static inline uint32_t op_site_memo_slot(uint64_t chain) {
    return (uint32_t)(chain >> 32) % OP_MEMO_CALLS;
}

/* Adds an instruction and returns its site: that of `place`, or OP_SITE_NONE if that is NULL. Without
 * memory it is new the next time again. */
uint16_t op_sites_add(const op_instruction *met, const op_site *place);

/* A site as reached from another one: each pair has its own number; `site` itself if none is left. */
uint16_t op_sites_under(uint16_t site, uint16_t caller);

/* From here on, the open window records sites. If few numbers are left, numbering restarts. */
void op_sites_begin(void);
/* A copy of all places, by number minus 1; NULL: the window did not record sites, or no memory. */
op_site *op_sites_take(uint32_t window, uint32_t *count);

void op_sites_lock(void); /* for fork */
void op_sites_unlock(void);

#endif
