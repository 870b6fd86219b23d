#include "sources/sites.h"

#include "core/fault.h"
#include "core/grow.h"
#include "core/record.h"

#include <pthread.h>
#include <string.h>

#define FIRST_ROOM 1024u
#define FEW_LEFT (UINT16_MAX / 2)

op_instructions *op_sites_known;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static op_site *places;
static uint32_t place_count, place_room;
static uint16_t *reached; /* places with a caller, hashed by both; 0: empty */
static uint32_t window_with_sites;

static void put(op_instructions *table, const op_instruction *met) {
    uint32_t at = op_instruction_hash(met->code, met->offset) & table->mask;
    while (table->entries[at].code)
        at = (at + 1) & table->mask;
    op_instruction *entry = &table->entries[at];
    *entry = *met;
    entry->code = NULL;
    __atomic_store_n(&entry->code, met->code, __ATOMIC_RELEASE);
    table->count++;
}

static op_instructions *make_table(uint32_t room) {
    op_instructions *table = op_calloc(1, sizeof *table + room * sizeof *table->entries);
    if (table)
        table->mask = room - 1;
    return table;
}

/* Less than half of a table is used, so that a lookup ends soon. */
static op_instructions *table_with_room(void) {
    op_instructions *now = op_sites_known;
    if (now && now->count < now->mask / 2)
        return now;
    op_instructions *more = make_table(now ? (now->mask + 1) * 2 : FIRST_ROOM);
    if (!more)
        return NULL;
    for (uint32_t i = 0; now && i <= now->mask; i++)
        if (now->entries[i].code)
            put(more, &now->entries[i]);
    more->outgrown = now;
    __atomic_store_n(&op_sites_known, more, __ATOMIC_RELEASE);
    return more;
}

/* Assigns the next number to a place. */
static uint16_t number_of(const op_site *place) {
    if (place_count == OP_SITE_BEYOND - 1)
        return OP_SITE_BEYOND;
    if (!OP_HAS_ROOM(places, place_count, place_room, 256))
        return OP_SITE_BEYOND;
    places[place_count] = *place;
    return (uint16_t)++place_count;
}

uint16_t op_sites_add(const op_instruction *met, const op_site *place) {
    pthread_mutex_lock(&lock);
    const op_instruction *found = op_sites_look(met);
    op_instructions *table = found ? NULL : table_with_room();
    op_instruction fresh = *met;
    fresh.site = found ? found->site : OP_SITE_NONE;
    if (table) {
        fresh.site = place ? number_of(place) : OP_SITE_NONE;
        put(table, &fresh);
    } else if (!found && place) {
        fresh.site = OP_SITE_BEYOND;
    }
    pthread_mutex_unlock(&lock);
    return fresh.site;
}

#define REACHED_MASK (2u * (UINT16_MAX + 1) - 1) /* twice as many entries as numbers */

uint16_t op_sites_under(uint16_t site, uint16_t caller) {
    if (!caller)
        return site;
    pthread_mutex_lock(&lock);
    if (!reached)
        reached = op_calloc(REACHED_MASK + 1, sizeof *reached);
    uint16_t found = site;
    if (reached) {
        op_site wanted = places[site - 1];
        wanted.caller = caller;
        uint64_t hash = ((uint64_t)caller << 16 | site) * UINT64_C(0x9e3779b97f4a7c15);
        uint32_t at = (uint32_t)(hash >> 40) & REACHED_MASK;
        while (reached[at] && memcmp(&places[reached[at] - 1], &wanted, sizeof wanted) != 0)
            at = (at + 1) & REACHED_MASK;
        uint16_t number = reached[at] ? reached[at] : number_of(&wanted);
        if (number != OP_SITE_BEYOND)
            found = reached[at] = number;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

op_site_memo *op_site_memo_anew(op_thread *t, uint64_t epoch) {
    if (!t->sites)
        t->sites = op_aligned_alloc(_Alignof(op_site_memo), sizeof *t->sites);
    if (t->sites) {
        memset(t->sites, 0, sizeof *t->sites);
        t->sites->epoch = epoch;
    }
    return t->sites;
}

void op_sites_begin(void) {
    pthread_mutex_lock(&lock);
    if (place_count > FEW_LEFT) {
        op_instructions *anew = make_table(FIRST_ROOM);
        if (anew) {
            anew->outgrown = op_sites_known;
            place_count = 0;
            if (reached)
                memset(reached, 0, (REACHED_MASK + 1) * sizeof *reached);
            op_sites_forget();
            __atomic_store_n(&op_sites_known, anew, __ATOMIC_RELEASE);
        }
    }
    window_with_sites = op_open_window();
    pthread_mutex_unlock(&lock);
}

op_site *op_sites_take(uint32_t window, uint32_t *count) {
    op_site *copy = NULL;
    pthread_mutex_lock(&lock);
    if (window == window_with_sites) {
        copy = op_malloc(place_count * sizeof *copy + 1);
        if (copy && place_count)
            memcpy(copy, places, place_count * sizeof *copy);
        *count = place_count;
    }
    pthread_mutex_unlock(&lock);
    return copy;
}

void op_sites_lock(void) { pthread_mutex_lock(&lock); }
void op_sites_unlock(void) { pthread_mutex_unlock(&lock); }
