/* Shared parts of the fake. One lock guards everything except the table of entry points. */
#ifndef FAKE_H
#define FAKE_H

#include "fake_cupti.h"

/* Makes the official headers export their declarations. */
#define CUPTI_LIB
#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_driver_cbid.h>
#include <cupti_runtime_cbid.h>
#include <cupti_version.h>

#include <stdbool.h>
#include <string.h>
#include <time.h>

#if CUPTI_API_VERSION == 28 /* 12.9 */
typedef CUpti_ActivityKernel9 fake_kernel;
typedef CUpti_ActivityMemcpy6 fake_copy;
typedef CUpti_ActivityMemset4 fake_set;
#elif CUPTI_API_VERSION == 130001 /* 13.0 */
typedef CUpti_ActivityKernel10 fake_kernel;
typedef CUpti_ActivityMemcpy6 fake_copy;
typedef CUpti_ActivityMemset4 fake_set;
#elif CUPTI_API_VERSION == 130500 /* 13.5 */
typedef CUpti_ActivityKernel13 fake_kernel;
typedef CUpti_ActivityMemcpy7 fake_copy;
typedef CUpti_ActivityMemset5 fake_set;
#else
#error "the fake does not know which structures this version of CUPTI writes: add them here"
#endif

typedef union fake_record {
    CUpti_ActivityKind kind;
    fake_kernel kernel;
    fake_copy copy;
    fake_set set;
    CUpti_ActivityMemcpyPtoP4 peer;
    CUpti_ActivityAPI call;
    CUpti_ActivitySynchronization2 sync;
    CUpti_ActivityMemory4 memory;
    CUpti_ActivityCudaEvent2 event;
    CUpti_ActivityOverhead3 overhead;
    CUpti_ActivityGraphTrace2 graph;
} fake_record;

/* Since gcc 15, `{0}` clears only a union's first member. */
static inline fake_record fake_blank(void) {
    fake_record r;
    memset(&r, 0, sizeof r);
    return r;
}

/* Bytes from one record to the next; 0: the fake does not write this kind. */
size_t fake_stride(CUpti_ActivityKind kind);

/* ---- state.c: the lock, failures, modes -------------------------------------------------- */

/* Ends the process where the real library would hang or crash. */
_Noreturn void fake_die(const char *format, ...) __attribute__((format(printf, 1, 2)));
void fake_lock(const char *who);
void fake_unlock(void);
/* Waits until at most this CLOCK_MONOTONIC time, with the lock released. */
void fake_wait(uint64_t until);
void fake_wake(void);
uint64_t fake_monotonic(void);
/* In CLOCK_REALTIME: when a wait that begins now counts as a deadlock. */
struct timespec fake_deadline(void);

enum fake_need { FAKE_ANYWHERE, FAKE_WITHOUT_GPU, FAKE_WITH_GPU };
/* First call of each entry point: a code to return at once, or 0 to continue. */
CUptiResult fake_enter(const char *symbol, enum fake_need need);
uint32_t fake_api_version(void);
void fake_reset_entries(void);

/* ---- buffers.c: where records go; all with the lock held --------------------------------- */

typedef struct fake_callbacks {
    CUpti_BuffersCallbackRequestFunc request;
    CUpti_BuffersCallbackCompleteFunc complete;
} fake_callbacks;

void fake_set_callbacks(fake_callbacks callbacks);
fake_callbacks fake_get_callbacks(void);
void fake_set_zeroed(bool zeroed);
void fake_set_per_thread(bool per_thread);
bool fake_is_zeroed(void);
bool fake_is_per_thread(void);
/* Writes a record to this owner's buffer (0: the shared one), or counts it as dropped. */
void fake_append(uint64_t owner, const fake_record *record);
void fake_deliver_full(void);
void fake_deliver_all(bool forced);
uint64_t fake_take_dropped(void);
void fake_reset_buffers(void);
void fake_add_buffer_totals(fake_totals *totals);
/* A number below n, drawn from the seed; without a seed, n - 1. */
size_t fake_draw(size_t n);

/* ---- device.c: what runs on the device, and the library's thread ------------------------- */

typedef struct fake_place {
    uint32_t device, context, stream;
} fake_place;

/* Sets when it runs: for `duration`, not before `not_before`. Needs the lock. */
void fake_schedule(fake_place place, uint64_t not_before, uint64_t duration, uint64_t *start,
                   uint64_t *due);
/* Adds a device record that completes at this CLOCK_MONOTONIC time. Needs the lock. */
void fake_add_pending(const fake_record *record, fake_place place, uint64_t due, uint32_t flags);
/* Waits until the stream's work is done; stream 0: the whole context's, context 0: all. */
void fake_wait_for(fake_place place);
/* Whether it is already done. */
bool fake_is_idle(fake_place place);
void fake_flush(bool forced);
void fake_start_worker(void);
void fake_reset_device(void);
void fake_add_device_totals(fake_totals *totals);

/* ---- kinds.c: what is enabled; all with the lock held ------------------------------------ */

void fake_enable(uint32_t kind, bool on);
bool fake_kind_is_on(uint32_t kind);
/* Of CUPTI_ACTIVITY_KIND_RUNTIME or _DRIVER. */
bool fake_call_is_on(uint32_t kind, uint32_t cbid);
void fake_filter(uint32_t kind, uint32_t cbid, bool on);
void fake_disable_all(void);
/* Whether queries of unfinished streams and events are recorded. */
void fake_want_idle_queries(bool on);
bool fake_wants_idle_queries(void);

/* ---- usual.c, work.c, run.c -------------------------------------------------------------- */

uint32_t fake_usual_call(bool driver, uint32_t kind);
/* Starts a call's work after the call has ended. Needs the lock. */
void fake_start_work(const fake_activity *activity, uint32_t correlation, uint64_t called);
void fake_reset_run(void);

/* ---- names.c: NULL if the headers have no name -------------------------------------------- */

const char *fake_result_name(CUptiResult result);
const char *fake_call_name(CUpti_CallbackDomain domain, uint32_t cbid);

/* ---- entries.c --------------------------------------------------------------------------- */

/* As CUPTI records it: the low half of pthread_self(), unless the client chose gettid(). */
uint32_t fake_thread_id(void);
void fake_reset_settings(void);

#endif
