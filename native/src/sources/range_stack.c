#include "sources/range_stack.h"

#include "core/fault.h"
#include "core/grow.h"

#include <string.h>

typedef struct pushed {
    op_range_stack *entries;
    size_t count, room;
    size_t skipped; /* begun on top of those without an entry, for lack of memory */
    uint32_t window;
} pushed;

uint32_t op_accepted = OP_INJECTED_TORCH | OP_INJECTED_ITT | OP_INJECTED_NVTX;

void op_window_accept(uint32_t injected) { __atomic_store_n(&op_accepted, injected, __ATOMIC_RELAXED); }

static pthread_key_t key;
static int setup_result;

static void free_pushed(void *value) {
    free(((pushed *)value)->entries);
    free(value);
}

static void setup_once(void) { setup_result = pthread_key_create(&key, free_pushed); }

int op_range_stack_setup(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, setup_once);
    return setup_result;
}

/* Ranges of earlier windows are dropped: they ended outside of a window, or never will. */
static pushed *here(bool make) {
    pushed *p = pthread_getspecific(key);
    if (!p && make) {
        p = op_calloc(1, sizeof *p);
        if (p && pthread_setspecific(key, p)) {
            free(p);
            p = NULL;
        }
    }
    uint32_t window = op_open_window();
    if (p && p->window != window) {
        p->window = window;
        p->count = p->skipped = 0;
    }
    return p;
}

static op_range_stack *last_of(const pushed *p, const void *domain) {
    for (size_t i = p->count; i-- > 0;)
        if (p->entries[i].domain == domain)
            return &p->entries[i];
    return NULL;
}

op_range_stack *op_range_stack_add(const void *domain) {
    pushed *p = here(true);
    if (!p)
        return NULL;
    if (p->skipped || !OP_HAS_ROOM(p->entries, p->count, p->room, 64)) {
        p->skipped++;
        return NULL;
    }
    const op_range_stack *below = last_of(p, domain);
    op_range_stack *added = &p->entries[p->count++];
    *added = (op_range_stack){.domain = domain, .level = below ? below->level + 1 : 0};
    return added;
}

bool op_range_stack_take(const void *domain, op_range_stack *out) {
    pushed *p = here(false);
    if (!p)
        return false;
    if (p->skipped) {
        p->skipped--;
        return false;
    }
    op_range_stack *last = last_of(p, domain);
    if (!last)
        return false;
    *out = *last;
    size_t above = (size_t)(p->entries + p->count - last) - 1;
    memmove(last, last + 1, above * sizeof *last);
    p->count--;
    return true;
}

op_range_stack *op_range_stack_find(const unsigned long long id[3]) {
    pushed *p = here(false);
    bool any = (id[0] | id[1] | id[2]) == 0;
    for (size_t i = p && !p->skipped ? p->count : 0; i-- > 0;)
        if (any || memcmp(p->entries[i].id, id, sizeof p->entries[i].id) == 0)
            return &p->entries[i];
    return NULL;
}
