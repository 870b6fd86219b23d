#include "sources/nvtx_started.h"

#include "core/grow.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* never held with another lock */

typedef struct started {
    op_slot slot;
    uint32_t turn; /* how often this place was used: the upper half of its number */
    uint32_t next; /* 1 + the next free place */
} started;

static struct {
    started *places;
    uint32_t count, room, free;
    uint32_t window;
} ranges; /* under the lock */

/* Forgets the ranges of earlier windows, whose numbers must not end a range of this one. */
static void forget_old_ranges(void) {
    if (ranges.window == op_open_window())
        return;
    ranges.window = op_open_window();
    ranges.free = 0;
    for (uint32_t i = ranges.count; i-- > 0;) {
        ranges.places[i].turn++;
        ranges.places[i].next = ranges.free;
        ranges.free = i + 1;
    }
}

static started *take_place(void) {
    forget_old_ranges();
    if (ranges.free) {
        started *place = &ranges.places[ranges.free - 1];
        ranges.free = place->next;
        return place;
    }
    if (!OP_HAS_ROOM(ranges.places, ranges.count, ranges.room, 64))
        return NULL;
    started *place = &ranges.places[ranges.count++];
    *place = (started){0};
    return place;
}

uint64_t op_nvtx_started_add(op_slot slot) {
    uint64_t number = 0;
    pthread_mutex_lock(&lock);
    started *place = take_place();
    if (place) {
        place->slot = slot;
        number = (uint64_t)place->turn << 32 | (uint64_t)(place - ranges.places + 1);
    }
    pthread_mutex_unlock(&lock);
    return number;
}

op_slot op_nvtx_started_take(uint64_t number) {
    uint32_t at = (uint32_t)number;
    op_slot slot = {0};
    pthread_mutex_lock(&lock);
    forget_old_ranges();
    if (at && at <= ranges.count && ranges.places[at - 1].turn == number >> 32) {
        started *place = &ranges.places[at - 1];
        slot = place->slot;
        place->turn++;
        place->next = ranges.free;
        ranges.free = at;
    }
    pthread_mutex_unlock(&lock);
    return slot;
}

/* ---- fork ------------------------------------------------------------------------------- */

static void lock_it(void) { pthread_mutex_lock(&lock); }

static void unlock_it(void) { pthread_mutex_unlock(&lock); }

int op_nvtx_started_setup(void) { return pthread_atfork(lock_it, unlock_it, unlock_it); }
