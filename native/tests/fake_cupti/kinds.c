/* Which kinds and calls are recorded. */
#include "fake.h"

#include <string.h>

#define CALLS 2048 /* more than any version has */

static bool kinds[FAKE_KINDS];
static bool calls[2][CALLS]; /* of the runtime and of the driver */

static bool idle_queries = true;

static bool *filter_of(uint32_t kind) { return calls[kind == CUPTI_ACTIVITY_KIND_DRIVER]; }
static bool has_filter(uint32_t kind) {
    return kind == CUPTI_ACTIVITY_KIND_RUNTIME || kind == CUPTI_ACTIVITY_KIND_DRIVER;
}

/* Enabling a kind applies to all of its calls, whatever was set for single ones. */
void fake_enable(uint32_t kind, bool on) {
    kinds[kind] = on;
    if (has_filter(kind))
        memset(filter_of(kind), on, CALLS * sizeof(bool));
}

bool fake_kind_is_on(uint32_t kind) { return kinds[kind]; }

/* Like CUPTI of CUDA 13.0: a driver call that is enabled alone is not recorded. */
bool fake_call_is_on(uint32_t kind, uint32_t cbid) {
    return cbid < CALLS && filter_of(kind)[cbid] && (kind != CUPTI_ACTIVITY_KIND_DRIVER || kinds[kind]);
}

void fake_filter(uint32_t kind, uint32_t cbid, bool on) {
    if (cbid < CALLS)
        filter_of(kind)[cbid] = on;
}

void fake_disable_all(void) {
    memset(kinds, 0, sizeof kinds);
    memset(calls, 0, sizeof calls);
}

void fake_want_idle_queries(bool on) { idle_queries = on; }
bool fake_wants_idle_queries(void) { return idle_queries; }

int fake_is_enabled(uint32_t kind) {
    fake_lock(__func__);
    int on = kind < FAKE_KINDS && kinds[kind];
    fake_unlock();
    return on;
}
