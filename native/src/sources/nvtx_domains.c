#include "sources/nvtx_domains.h"

#include "core/fault.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* never held with another lock */
static op_nvtx_domain default_domain;
static op_nvtx_domain *domains;

op_nvtx_domain *op_nvtx_domain_of(op_nvtx_domain *handle) { return handle ? handle : &default_domain; }

op_nvtx_domain *op_nvtx_domain_named(uint32_t name) {
    pthread_mutex_lock(&lock);
    op_nvtx_domain *d = domains;
    while (d && d->name != name)
        d = d->next;
    if (!d && (d = op_calloc(1, sizeof *d)) != NULL) {
        d->name = name;
        d->next = domains;
        domains = d;
    }
    pthread_mutex_unlock(&lock);
    return d;
}

void op_nvtx_name_category(op_nvtx_domain *d, uint32_t number, uint32_t name) {
    op_nvtx_category *c = op_malloc(sizeof *c);
    if (!c)
        return; /* the category keeps its number */
    pthread_mutex_lock(&lock);
    *c = (op_nvtx_category){.number = number, .name = name, .next = d->categories};
    __atomic_store_n(&d->categories, c, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
}

const op_nvtx_category *op_nvtx_category_of(const op_nvtx_domain *d, uint32_t number) {
    const op_nvtx_category *c = __atomic_load_n(&d->categories, __ATOMIC_ACQUIRE);
    while (c && c->number != number)
        c = c->next;
    return c;
}

/* ---- fork ------------------------------------------------------------------------------- */

static void lock_it(void) { pthread_mutex_lock(&lock); }

static void unlock_it(void) { pthread_mutex_unlock(&lock); }

int op_nvtx_domains_setup(void) { return pthread_atfork(lock_it, unlock_it, unlock_it); }
