/* Fork handlers: the child must find no lock held, and no thread of ours may be running. */
#include "core/collector.h"
#include "core/names.h"
#include "core/record.h"
#include "core/spill.h"
#include "cuda/cupti.h"
#include "sources/malloc_watch.h"
#include "sources/retained.h"
#include "sources/sites.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static op_collector *const self = &op_the_collector;

/* In the order of the windows' own stop, so that neither waits for the other forever. */
static void before_fork(void) {
    op_memory_paused = true;
    op_cupti_before_fork();
    pthread_mutex_lock(&self->lock);
    op_spill_pause();
    op_spill_join_drain();
    op_cupti_lock_for_fork();
    op_names_lock();
    op_sites_lock();
    op_retained_lock();
}

void op_fork_announced(void) {
    pthread_mutex_lock(&self->lock);
    op_spill_join_drain();
    pthread_mutex_unlock(&self->lock);
    op_cupti_fork_announced();
}

static void after_fork_in_parent(void) {
    op_retained_unlock();
    op_sites_unlock();
    op_names_unlock();
    op_spill_resume();
    pthread_mutex_unlock(&self->lock);
    op_cupti_after_fork_in_parent();
    op_memory_paused = false;
}

/* The child records nothing until it opens its own session. Its window number never matches one of the
 * parent's, so ranges begun before the fork end as no-ops. */
static void after_fork_in_child(void) {
    op_retained_unlock();
    op_retained_forget();
    op_sites_unlock();
    pthread_cond_init(&self->changed, NULL); /* it still counts waiters that do not exist here */
    op_names_after_fork();
    __atomic_store_n(&op_window, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&op_paused, 0, __ATOMIC_RELAXED);
    self->open = false;
    self->stopping = 0;
    self->session++;
    self->full = NULL;
    op_thread_after_fork();
    op_pool_forget(&self->pool);
    op_spill_forget();
    op_steps_clear(&self->steps);
    op_timeline_clear(&self->timeline);
    pthread_mutex_unlock(&self->lock);
    op_cupti_after_fork_in_child();
    op_memory_paused = false;
}

int op_fork_setup(void) {
    return pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}
