/* The lock held during buffer callbacks, and the checks at the start of each entry point. */
#include "fake.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Longer than any lock is held, also under TSan on a busy machine; short enough for a test to end. */
#define DEADLOCK_MS 30000

static unsigned deadlock_ms = DEADLOCK_MS;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static const char *holder; /* holder of the lock, for the message */
static pthread_t holder_thread;
static bool forked;

_Noreturn void fake_die(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("fake libcupti: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    abort();
}

static void mark_forked(void) { forked = true; }

static void begin(void) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_atfork(NULL, NULL, mark_forked);
}

uint64_t fake_monotonic(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void fake_deadlock_after(unsigned ms) { __atomic_store_n(&deadlock_ms, ms, __ATOMIC_RELAXED); }
struct timespec fake_deadline(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    uint64_t ns =
        (uint64_t)t.tv_nsec + (uint64_t)__atomic_load_n(&deadlock_ms, __ATOMIC_RELAXED) * 1000000u;
    return (struct timespec){.tv_sec = t.tv_sec + (time_t)(ns / 1000000000u),
                             .tv_nsec = (long)(ns % 1000000000u)};
}

void fake_lock(const char *who) {
    pthread_once(&once, begin);
    const char *other = __atomic_load_n(&holder, __ATOMIC_ACQUIRE);
    if (other && pthread_equal(__atomic_load_n(&holder_thread, __ATOMIC_RELAXED), pthread_self()))
        fake_die("%s was called in a buffer callback, inside %s: CUPTI holds its lock there", who,
                 other);
    struct timespec until = fake_deadline();
    if (pthread_mutex_timedlock(&lock, &until) == ETIMEDOUT) {
        other = __atomic_load_n(&holder, __ATOMIC_ACQUIRE);
        fake_die("%s waited for the lock that %s holds: a buffer callback waits for who waits for it",
                 who, other ? other : "a thread that is gone");
    }
    __atomic_store_n(&holder_thread, pthread_self(), __ATOMIC_RELAXED);
    __atomic_store_n(&holder, who, __ATOMIC_RELEASE);
}

void fake_unlock(void) {
    __atomic_store_n(&holder, NULL, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
}

void fake_wait(uint64_t until) {
    const char *who = __atomic_load_n(&holder, __ATOMIC_RELAXED);
    struct timespec t = {.tv_sec = (time_t)(until / 1000000000u),
                         .tv_nsec = (long)(until % 1000000000u)};
    __atomic_store_n(&holder, NULL, __ATOMIC_RELEASE);
    pthread_cond_timedwait(&changed, &lock, &t);
    __atomic_store_n(&holder_thread, pthread_self(), __ATOMIC_RELAXED);
    __atomic_store_n(&holder, who, __ATOMIC_RELEASE);
}

void fake_wake(void) { pthread_cond_broadcast(&changed); }

/* ---- entry points: counted, made to fail, or without a driver ------------------------------ */

typedef struct entry {
    char symbol[64];
    uint64_t calls;
    int code;      /* of the requested failure */
    uint64_t when; /* which call fails; 0: all */
} entry;

static pthread_mutex_t entries_lock = PTHREAD_MUTEX_INITIALIZER;
static entry entries[64];
static uint32_t version = CUPTI_API_VERSION;
static int mode;

static entry *find(const char *symbol) {
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        if (!entries[i].symbol[0])
            snprintf(entries[i].symbol, sizeof entries[i].symbol, "%s", symbol);
        if (strcmp(entries[i].symbol, symbol) == 0)
            return &entries[i];
    }
    fake_die("no room for the entry point %s", symbol);
}

/* As measured on the real libraries without a driver. */
static CUptiResult without_gpu(enum fake_need need) {
    if (mode == FAKE_NO_GPU_13_5)
        return CUPTI_ERROR_UNKNOWN;
    if (need != FAKE_WITH_GPU)
        return CUPTI_SUCCESS;
    return mode == FAKE_NO_GPU_12 ? CUPTI_ERROR_NOT_INITIALIZED : CUPTI_ERROR_UNKNOWN;
}

CUptiResult fake_enter(const char *symbol, enum fake_need need) {
    if (forked && need != FAKE_ANYWHERE)
        fake_die("%s was called in a process that was forked after CUPTI had been used", symbol);
    pthread_mutex_lock(&entries_lock);
    entry *e = find(symbol);
    e->calls++;
    CUptiResult result = mode == FAKE_GPU ? CUPTI_SUCCESS : without_gpu(need);
    if (e->code && (e->when == 0 || e->when == e->calls))
        result = (CUptiResult)e->code;
    pthread_mutex_unlock(&entries_lock);
    return result;
}

void fake_fail(const char *symbol, int code, unsigned nth) {
    pthread_mutex_lock(&entries_lock);
    entry *e = find(symbol);
    e->code = code;
    e->when = nth ? e->calls + nth : 0;
    pthread_mutex_unlock(&entries_lock);
}

uint64_t fake_calls(const char *symbol) {
    pthread_mutex_lock(&entries_lock);
    uint64_t calls = find(symbol)->calls;
    pthread_mutex_unlock(&entries_lock);
    return calls;
}

void fake_version(uint32_t other) { __atomic_store_n(&version, other, __ATOMIC_RELAXED); }
uint32_t fake_api_version(void) { return __atomic_load_n(&version, __ATOMIC_RELAXED); }

void fake_mode(int other) {
    pthread_mutex_lock(&entries_lock);
    mode = other;
    pthread_mutex_unlock(&entries_lock);
}

void fake_reset_entries(void) {
    pthread_mutex_lock(&entries_lock);
    memset(entries, 0, sizeof entries);
    mode = FAKE_GPU;
    pthread_mutex_unlock(&entries_lock);
    fake_version(CUPTI_API_VERSION);
    fake_deadlock_after(DEADLOCK_MS);
}
