#include "spill.h"

#include "collector.h"
#include "error.h"
#include "fault.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static op_collector *const self = &op_the_collector;

static bool make_file(void) {
    op_spill *spill = &self->spill;
    if (spill->fd >= 0)
        return true;
    if (!spill->path[0])
        return false;
    spill->fd = op_open_file(spill->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (spill->fd < 0)
        return false;
    memcpy(self->pool.header->spill_path, spill->path, sizeof spill->path);
    return true;
}

static bool write_all(int fd, const void *data, size_t bytes) {
    const char *at = data;
    while (bytes) {
        ssize_t n = op_write(fd, at, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        bytes -= (size_t)n;
    }
    return true;
}

static bool index_has_room(void) {
    op_spill *spill = &self->spill;
    if (spill->count < spill->capacity)
        return true;
    uint32_t capacity = spill->capacity ? spill->capacity * 2 : 256;
    op_spilled *bigger = op_realloc(spill->index, capacity * sizeof *bigger);
    if (!bigger)
        return false;
    spill->index = bigger;
    spill->capacity = capacity;
    return true;
}

/* Oldest first: the list is newest first, and the oldest are the least likely to be looked at. */
static op_chunk *take_unpinned(void) {
    op_chunk **found = NULL;
    uint32_t window = op_recording();
    for (op_chunk **link = &self->full; *link; link = &(*link)->next)
        if ((*link)->window == window && __atomic_load_n(&(*link)->open, __ATOMIC_ACQUIRE) == 0)
            found = link;
    if (!found)
        return NULL;
    op_chunk *c = *found;
    *found = c->next;
    return c;
}

static void put_back(op_chunk *c) {
    c->next = self->full;
    self->full = c;
}

bool op_spill_one(void) {
    op_spill *spill = &self->spill;
    op_spill_wait();
    if (spill->broken || !index_has_room())
        return false;
    op_chunk *c = take_unpinned();
    if (!c)
        return false;
    if (!make_file()) {
        spill->broken = true;
        put_back(c);
        return false;
    }
    spill->writing = true;
    pthread_mutex_unlock(&self->lock);
    size_t events = sizeof *c + c->count * sizeof(op_event), args = c->arg_words * sizeof(uint32_t);
    bool written = write_all(spill->fd, c, events) &&
                   write_all(spill->fd, (const char *)c + c->bytes - args, args);
    pthread_mutex_lock(&self->lock);
    spill->writing = false;
    pthread_cond_broadcast(&self->changed);
    if (!written) {
        spill->broken = true;
        if (ftruncate(spill->fd, (off_t)spill->bytes) == 0)
            lseek(spill->fd, (off_t)spill->bytes, SEEK_SET);
        put_back(c);
        return false;
    }
    spill->index[spill->count++] =
        (op_spilled){.at = spill->bytes, .thread = c->thread, .sequence = c->sequence};
    spill->bytes += events + args;
    op_pool_give(&self->pool, c);
    return true;
}

void op_spill_wait(void) {
    while (self->spill.writing)
        pthread_cond_wait(&self->changed, &self->lock);
}

static bool more_than_quarter_used(void) {
    const op_pool *pool = &self->pool;
    return pool->used_units * 4 > pool->segments * pool->segment_units;
}

static void *drain(void *unused) {
    (void)unused;
    pthread_mutex_lock(&self->lock);
    while (!self->spill.drain_stops) {
        if (op_recording() && more_than_quarter_used() && op_spill_one())
            continue;
        pthread_cond_wait(&self->changed, &self->lock);
    }
    pthread_mutex_unlock(&self->lock);
    return NULL;
}

void op_spill_start_drain(void) {
    op_spill *spill = &self->spill;
    if (spill->broken)
        return;
    if (spill->drain_runs) {
        pthread_cond_broadcast(&self->changed);
        return;
    }
    sigset_t all, before;
    sigfillset(&all); /* the user's signal handlers are for the user's threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    spill->drain_stops = false;
    spill->drain_runs = op_thread_start(&spill->drain, NULL, drain, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    /* Without the thread, whoever needs a chunk spills one itself. */
}

void op_spill_join_drain(void) {
    pthread_mutex_lock(&self->lock);
    bool runs = self->spill.drain_runs;
    self->spill.drain_runs = false; /* of two callers, one joins */
    self->spill.drain_stops = true;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
    if (runs)
        pthread_join(self->spill.drain, NULL);
}

void op_spill_reset(void) {
    op_spill *spill = &self->spill;
    spill->count = 0;
    spill->bytes = 0;
    spill->broken = false;
    if (spill->fd >= 0 && (ftruncate(spill->fd, 0) != 0 || lseek(spill->fd, 0, SEEK_SET) != 0))
        spill->broken = true;
}

void op_spill_close(void) {
    op_spill *spill = &self->spill;
    if (spill->fd >= 0) {
        unlink(spill->path);
        close(spill->fd);
    }
    free(spill->index);
    *spill = (op_spill){.fd = -1};
}
