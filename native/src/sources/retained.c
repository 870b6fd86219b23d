#include "sources/retained.h"

#include "core/error.h"
#include "core/fault.h"
#include "opprof.h"

#include <pthread.h>
#include <string.h>

#define FIRST_PLACES 1024u /* a power of two */

static struct {
    pthread_mutex_t lock;
    bool in_step;
    bool lost; /* there was no memory for a block */
    op_block *places;
    uint64_t mask, count; /* mask 0: no places */
    op_block *left;
    uint64_t left_count, left_room;
} self = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t place_of(uint64_t address) {
    return (address * UINT64_C(0x9e3779b97f4a7c15)) >> 20 & self.mask;
}

/* The block's place, or the empty one where it would go. */
static uint64_t find(uint64_t address) {
    uint64_t at = place_of(address);
    while (self.places[at].address && self.places[at].address != address)
        at = (at + 1) & self.mask;
    return at;
}

static bool make_room(void) {
    if (self.places && self.count * 2 <= self.mask)
        return true;
    uint64_t room = self.places ? (self.mask + 1) * 2 : FIRST_PLACES, before = self.mask;
    op_block *old = self.places, *places = op_calloc(room, sizeof *places);
    if (!places)
        return false;
    self.places = places;
    self.mask = room - 1;
    for (uint64_t i = 0; old && i <= before; i++)
        if (old[i].address)
            self.places[find(old[i].address)] = old[i];
    free(old);
    return true;
}

/* Later entries move up, so that a lookup may stop at the first empty place. */
static void remove_at(uint64_t at) {
    uint64_t hole = at;
    for (uint64_t i = (at + 1) & self.mask; self.places[i].address; i = (i + 1) & self.mask) {
        uint64_t wanted = place_of(self.places[i].address);
        if (((i - wanted) & self.mask) < ((i - hole) & self.mask))
            continue;
        self.places[hole] = self.places[i];
        hole = i;
    }
    self.places[hole].address = 0;
    self.count--;
}

void op_retained_take(uint64_t address, int64_t bytes) {
    const op_thread *t = op_self;
    if (!__atomic_load_n(&self.in_step, __ATOMIC_RELAXED) || !address || bytes <= 0 || !t ||
        !t->depth || t->window != op_recording())
        return;
    const op_event *around = t->stack[t->depth - 1].event;
    if (!around)
        return;
    pthread_mutex_lock(&self.lock);
    if (self.in_step) {
        if (!make_room()) {
            self.lost = true;
        } else {
            op_block *place = &self.places[find(address)];
            self.count += place->address == 0;
            *place = (op_block){address, bytes, around->start, t->index};
        }
    }
    pthread_mutex_unlock(&self.lock);
}

void op_retained_give(uint64_t address) {
    if (!__atomic_load_n(&self.in_step, __ATOMIC_RELAXED) || !address)
        return;
    pthread_mutex_lock(&self.lock);
    if (self.count) {
        uint64_t at = find(address);
        if (self.places[at].address)
            remove_at(at);
    }
    pthread_mutex_unlock(&self.lock);
}

static void empty(void) {
    if (self.count)
        memset(self.places, 0, (self.mask + 1) * sizeof *self.places);
    self.count = 0;
}

void op_retained_step_begin(void) {
    pthread_mutex_lock(&self.lock);
    empty();
    __atomic_store_n(&self.in_step, true, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&self.lock);
}

static bool make_room_for_left(void) {
    uint64_t room = self.left_count + self.count;
    if (room <= self.left_room)
        return true;
    op_block *left = op_realloc(self.left, room * 2 * sizeof *left);
    if (!left)
        return false;
    self.left = left;
    self.left_room = room * 2;
    return true;
}

void op_retained_step_end(void) {
    pthread_mutex_lock(&self.lock);
    if (!make_room_for_left())
        self.lost = true;
    else
        for (uint64_t i = 0; self.count && i <= self.mask; i++)
            if (self.places[i].address)
                self.left[self.left_count++] = self.places[i];
    empty();
    __atomic_store_n(&self.in_step, false, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&self.lock);
}

static int in_order(const void *a, const void *b) {
    const op_block *x = a, *y = b;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    return (x->start > y->start) - (x->start < y->start);
}

const op_block *op_retained_blocks(uint64_t *count) {
    static const op_block none;
    pthread_mutex_lock(&self.lock);
    bool lost = self.lost;
    *count = self.left_count;
    if (self.left_count)
        qsort(self.left, self.left_count, sizeof *self.left, in_order);
    pthread_mutex_unlock(&self.lock);
    if (lost) {
        op_error_set(OP_ENOMEM, "no memory to follow which blocks a step keeps");
        return NULL;
    }
    return self.left ? self.left : &none;
}

void op_retained_forget(void) {
    pthread_mutex_lock(&self.lock);
    free(self.places);
    free(self.left);
    self.places = self.left = NULL;
    self.mask = self.count = self.left_count = self.left_room = 0;
    self.lost = false;
    __atomic_store_n(&self.in_step, false, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&self.lock);
}

void op_retained_lock(void) { pthread_mutex_lock(&self.lock); }
void op_retained_unlock(void) { pthread_mutex_unlock(&self.lock); }
