#include "cuda/cupti.h"

#include "core/error.h"
#include "core/fault.h"
#include "cuda/cuda_devices.h"
#include "cuda/cuda_sync.h"
#include "cuda/cupti_buffers.h"
#include "cuda/cupti_drain.h"
#include "cuda/cupti_kinds.h"

#include <stdio.h>
#include <string.h>

#define MOST_RECORD_BYTES (2ull << 30) /* per window, like the limit of its events */

static struct {
    pthread_mutex_t control;
    op_cupti_library library;
    op_cupti_clock clock; /* fixed when CUPTI was found */
    bool ready, recording;
    int wanted, recorded_parts; /* op_cuda_part bits */
    bool forked;                /* a child of a process that had started CUDA; it must not use CUDA */
    uint32_t recorded;
    op_cuda_device *devices; /* found together with CUPTI, only once */
    uint32_t device_count;
    char problem[768];
} self = {.control = PTHREAD_MUTEX_INITIALIZER};

static uint64_t now(void) { return op_cupti_clock_ns(&self.clock, op_ticks()); }

/* Equals CUPTI's own clock: the callback can only be replaced, not removed. */
static uint64_t realtime(void) { return op_clock_now(CLOCK_REALTIME); }

static void ignore(void *data, int domain, uint32_t callback, const void *more) {
    (void)data, (void)domain, (void)callback, (void)more;
}

/* ---- whether CUPTI can be used ------------------------------------------------------------------ */

static int refuse(int code) {
    const char *words = op_cupti_words(&self.library, code);
    switch (code) {
    case OP_CUPTI_MULTIPLE_SUBSCRIBERS:
    case OP_CUPTI_OLD_PROFILER:
        return op_error_set(OP_CUDA_TAKEN,
                            "another profiler (such as nsys, ncu or a debugger) uses CUPTI in this "
                            "process (%s): run without it",
                            words);
    case OP_CUPTI_INSUFFICIENT_PRIVILEGES:
    case OP_CUPTI_VIRTUALIZED_INSUFFICIENT_PRIVILEGES:
        return op_error_set(OP_CUDA_FORBIDDEN,
                            "the NVIDIA driver lets only administrators profile (%s): load its kernel "
                            "module with NVreg_RestrictProfilingToAdminUsers=0, or give the process "
                            "CAP_SYS_ADMIN",
                            words);
    default:
        return op_error_set(OP_CUDA_FAILED, "CUPTI (%s) cannot record in this process: %s",
                            self.library.path, words);
    }
}

/* A driver supports CUDA up to its own major release. */
static int check_driver(void) {
    int driver = 0;
    uint32_t major = self.library.version >= 100000 ? self.library.version / 10000 : 12;
    if (self.library.cuda.DriverGetVersion(&driver) != 0 || (uint32_t)driver / 1000 >= major)
        return OP_CUDA_READY;
    return op_error_set(
        OP_CUDA_TOO_OLD,
        "the NVIDIA driver is for CUDA %d.%d, too old for %s: install a later driver, or "
        "the libcupti of CUDA %d",
        driver / 1000, driver % 1000 / 10, self.library.path, driver / 1000);
}

/* Two clients at once take each other's records, and the later one cannot detect it. */
static int check_alone(void) {
    const char *injected = getenv("CUDA_INJECTION64_PATH");
    if (injected && *injected)
        return op_error_set(
            OP_CUDA_TAKEN,
            "another profiler is in this process (CUDA_INJECTION64_PATH is %.300s): run "
            "without it",
            injected);
    void *subscriber = NULL;
    if (!self.library.cupti.Subscribe || !self.library.cupti.Unsubscribe)
        return OP_CUDA_READY;
    int rc = self.library.cupti.Subscribe(&subscriber, ignore, NULL);
    if (rc != OP_CUPTI_SUCCESS)
        return refuse(rc);
    self.library.cupti.Unsubscribe(subscriber);
    return OP_CUDA_READY;
}

static void choose_clock(void) {
    op_clock_pair from, to;
    struct timespec moment = {.tv_nsec = 2000000}; /* the rate need only be approximate */
    op_clock_choose();
    op_clock_calibrate(&from);
    nanosleep(&moment, NULL);
    op_clock_calibrate(&to);
    self.clock = op_cupti_clock_through(&from, &to);
}

/* Enabling a kind for the first time is the slowest, and shows whether it is possible at all. */
static int try_once(void) {
    int rc = self.library.cupti.ActivityEnable(OP_CUPTI_KERNEL);
    if (rc == OP_CUPTI_SUCCESS)
        self.library.cupti.ActivityDisable(OP_CUPTI_KERNEL);
    return rc == OP_CUPTI_SUCCESS ? OP_CUDA_READY : refuse(rc);
}

static int open_locked(const char *named, const char *const *paths, uint32_t count) {
    if (self.forked)
        return op_error_set(OP_CUDA_FORKED,
                            "this process was forked after CUDA had started in its "
                            "parent, and CUDA does not work in such a child: start it with spawn");
    if (self.ready)
        return OP_CUDA_READY;
    int rc = op_cupti_load(&self.library, named, paths, count);
    if (rc != OP_CUDA_READY || (rc = check_driver()) || (rc = check_alone()))
        return rc;
    choose_clock();
    free(self.devices);
    self.devices = op_cuda_devices(&self.library.cuda, &self.device_count);
    op_cupti_buffers_open(&self.library);
    op_cupti_drain_open(&self.library, &self.clock, MOST_RECORD_BYTES);
    rc = self.library.cupti.ActivityRegisterTimestampCallback(now);
    if (rc == OP_CUPTI_SUCCESS)
        rc = self.library.cupti.ActivityRegisterCallbacks(op_cupti_buffers_request,
                                                          op_cupti_buffers_complete);
    rc = rc == OP_CUPTI_SUCCESS ? try_once() : refuse(rc);
    self.ready = rc == OP_CUDA_READY;
    return rc;
}

int op_cuda_open(const char *named, const char *const *paths, uint32_t count) {
    pthread_mutex_lock(&self.control);
    int rc = open_locked(named, paths, count);
    pthread_mutex_unlock(&self.control);
    return rc;
}

void op_cuda_record(int wanted) {
    pthread_mutex_lock(&self.control);
    self.wanted = wanted;
    pthread_mutex_unlock(&self.control);
}

int op_cuda_parts(void) {
    pthread_mutex_lock(&self.control);
    int parts = self.recorded_parts;
    pthread_mutex_unlock(&self.control);
    return parts;
}

const char *op_cuda_problem(void) { return self.problem; }
const char *op_cuda_library(void) { return self.ready ? self.library.path : ""; }
uint32_t op_cuda_version(void) { return self.ready ? self.library.version : 0; }
struct op_cuda_device *op_cupti_devices(uint32_t *count) {
    op_cuda_device *copy = op_malloc(self.device_count * sizeof *copy + 1);
    *count = copy ? self.device_count : 0;
    if (*count)
        memcpy(copy, self.devices, *count * sizeof *copy);
    return copy;
}

uint32_t op_cupti_recorded(void) { return __atomic_load_n(&self.recorded, __ATOMIC_ACQUIRE); }

void op_cupti_window_pause(enum op_cupti_pause why, bool paused) {
    if (op_cupti_recorded() != OP_CUDA_NOT_RECORDED)
        op_cupti_drain_pause(why, paused);
}

const op_cuda_records *op_cupti_records_lock(const op_cuda_pause **pauses, uint32_t *pause_count) {
    if (op_cupti_recorded() == OP_CUDA_NOT_RECORDED)
        return NULL;
    op_cupti_drain_lock();
    return op_cupti_drain_records(pauses, pause_count);
}

void op_cupti_records_unlock(void) { op_cupti_drain_unlock(); }

static void set_recorded(uint32_t recorded) {
    __atomic_store_n(&self.recorded, recorded, __ATOMIC_RELEASE);
}

/* ---- windows ------------------------------------------------------------------------------- */

/* For each window, because another client may have replaced them since. */
static int take_over(void) {
    const op_cupti_functions *cupti = &self.library.cupti;
    uint8_t zeroed = 1;
    size_t size = sizeof zeroed;
    int rc = cupti->ActivityRegisterTimestampCallback(now);
    if (rc != OP_CUPTI_SUCCESS || (rc = cupti->SetThreadIdType(OP_CUPTI_THREAD_ID_TYPE_SYSTEM)))
        return rc;
    if (cupti->ActivitySetAttribute) /* otherwise CUPTI does it, on the program's threads */
        cupti->ActivitySetAttribute(OP_CUPTI_ZEROED_BUFFERS, &size, &zeroed);
    return cupti->ActivityRegisterCallbacks(op_cupti_buffers_request, op_cupti_buffers_complete);
}

/* For CUPTI's next user. */
static void hand_over(void) {
    self.library.cupti.ActivityRegisterTimestampCallback(realtime);
    self.library.cupti.SetThreadIdType(OP_CUPTI_THREAD_ID_TYPE_DEFAULT);
}

/* If CUPTI refuses memory, the rest is still recorded. */
static int start_memory(void) {
    if (!(self.wanted & OP_CUDA_MEMORY))
        return 0;
    int rc = op_cupti_kinds_enable_memory(&self.library);
    if (rc == OP_CUPTI_SUCCESS)
        return OP_CUDA_MEMORY;
    snprintf(self.problem, sizeof self.problem, "CUPTI cannot record device memory in this process: %s",
             op_cupti_words(&self.library, rc));
    return 0;
}

static bool start_locked(void) {
    self.problem[0] = 0;
    if (self.recording || !self.wanted || !self.ready)
        return false;
    set_recorded(OP_CUDA_NOT_RECORDED);
    self.recorded_parts = 0;
    op_cupti_drain_clear();
    op_cupti_buffers_prepare();
    int rc = take_over();
    if (rc == OP_CUPTI_SUCCESS)
        rc = op_cupti_kinds_enable(&self.library);
    if (rc != OP_CUPTI_SUCCESS) {
        refuse(rc);
        snprintf(self.problem, sizeof self.problem, "%s", op_last_error());
        hand_over();
        return false;
    }
    self.recording = true;
    self.recorded_parts = OP_CUDA_WORK | start_memory();
    set_recorded(OP_CUDA_RECORDED);
    op_cupti_drain_start();
    return true;
}

bool op_cupti_window_start(void) {
    pthread_mutex_lock(&self.control);
    bool started = start_locked();
    pthread_mutex_unlock(&self.control);
    return started;
}

static void note_taken(void) {
    set_recorded(OP_CUDA_PARTIAL);
    snprintf(self.problem, sizeof self.problem,
             "another profiler (torch.profiler?) took over CUPTI while CUDA was recorded: the "
             "recording is incomplete; run one at a time");
}

/* It is unknown which records are missing. */
static void note_kept_back(int code) {
    set_recorded(OP_CUDA_PARTIAL);
    snprintf(self.problem, sizeof self.problem,
             "CUPTI did not deliver all of its records (cuptiActivityFlushAll: %s): the recording is "
             "incomplete; run again",
             op_cupti_words(&self.library, code));
}

/* Waiting for a context breaks the capture of any of its streams, so during a capture it is skipped,
 * and work still running has no times and is counted so. Returns the result of CUPTI's flush. */
static int wait_for_devices(void) {
    int flushed = self.library.cupti.ActivityFlushAll(0); /* delivers the calls that show captures */
    op_cupti_drain_now();
    if (!op_cupti_drain_is_capturing())
        op_cuda_wait(&self.library.cuda);
    return flushed;
}

static void stop_locked(void) {
    const op_cupti_functions *cupti = &self.library.cupti;
    size_t dropped = 0;
    self.recording = false;
    bool ours = op_cupti_kinds_are_enabled(&self.library, self.recorded_parts & OP_CUDA_MEMORY);
    op_cupti_drain_until(now()); /* in case the next call does not help */
    op_cupti_kinds_disable_host(&self.library);
    /* A flush does not wait. A permanently failed device returns at once, and its work has no times. */
    int early = wait_for_devices();
    int flushed = cupti->ActivityFlushAll(0);
    flushed = early != OP_CUPTI_SUCCESS ? early : flushed;
    op_cupti_kinds_disable_devices(&self.library);
    int forced = cupti->ActivityFlushAll(OP_CUPTI_FLUSH_FORCED);
    cupti->ActivityGetNumDroppedRecords(NULL, 0, &dropped);
    hand_over();
    op_cupti_drain_stop(dropped);
    if (!ours || op_cupti_buffers_missing())
        note_taken();
    else if (flushed != OP_CUPTI_SUCCESS || forced != OP_CUPTI_SUCCESS)
        note_kept_back(flushed != OP_CUPTI_SUCCESS ? flushed : forced);
}

void op_cupti_window_stop(void) {
    pthread_mutex_lock(&self.control);
    if (self.recording)
        stop_locked();
    pthread_mutex_unlock(&self.control);
}

void op_cupti_window_update(void) {
    pthread_mutex_lock(&self.control);
    if (self.recording) {
        self.library.cupti.ActivityFlushAll(0);
        op_cupti_drain_now();
    }
    pthread_mutex_unlock(&self.control);
}

void op_cupti_window_forget(void) {
    pthread_mutex_lock(&self.control);
    if (!self.recording)
        op_cupti_drain_clear();
    pthread_mutex_unlock(&self.control);
}

/* ---- fork ---------------------------------------------------------------------------------- */

void op_cupti_fork_announced(void) {
    pthread_mutex_lock(&self.control);
    if (self.recording)
        op_cupti_drain_join();
    pthread_mutex_unlock(&self.control);
}

void op_cupti_before_fork(void) {
    pthread_mutex_lock(&self.control);
    if (self.recording)
        op_cupti_drain_join();
}

void op_cupti_lock_for_fork(void) {
    op_cupti_drain_lock();
    op_cupti_buffers_lock();
}

void op_cupti_after_fork_in_parent(void) {
    op_cupti_buffers_unlock();
    op_cupti_drain_unlock();
    if (self.recording)
        op_cupti_drain_start();
    pthread_mutex_unlock(&self.control);
}

/* The child never calls CUPTI again. What CUPTI holds of the parent's memory is left alone. */
void op_cupti_after_fork_in_child(void) {
    op_cupti_buffers_after_fork();
    op_cupti_buffers_unlock();
    op_cupti_drain_unlock();
    self.forked |= self.ready;
    self.ready = self.recording = false;
    set_recorded(OP_CUDA_NOT_RECORDED);
    pthread_mutex_unlock(&self.control);
}
