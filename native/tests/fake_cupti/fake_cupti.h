/* Controls of the fake libcupti: what a program on a GPU would have done, and what CUPTI would then do.
 * Tests load these libraries in place of NVIDIA's: libcupti.so.12 (CUPTI 12.9), libcupti.so.13 (13.0)
 * and libcuda.so.1 (fake_cuda.h). They simulate a device that takes time but computes nothing. Records
 * have the layout of the official headers and arrive as from the real library: at the real stride, on
 * the library's own thread, in buffers that the client hands out, late, unordered, or not at all.
 * This header needs none of NVIDIA's. Controls may be called from any thread, but not in a buffer
 * callback. Wrong use by the client (a CUPTI call inside a buffer callback, two threads that wait for
 * each other's lock, a buffer handed out twice, CUPTI used in a forked child) ends the process with a
 * message on stderr, where the real library would hang or crash. */
#ifndef FAKE_CUPTI_H
#define FAKE_CUPTI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FAKE_EXPORT __attribute__((visibility("default")))

/* ---- activities -------------------------------------------------------------------------- */

enum fake_kind {
    FAKE_LAUNCH = 1,       /* a kernel */
    FAKE_GRAPH_LAUNCH = 2, /* one call launches `nodes` kernels, all with its correlation id */
    FAKE_MEMCPY = 3,
    FAKE_MEMCPY_PEER = 4, /* between two devices */
    FAKE_MEMSET = 5,
    FAKE_SYNC_DEVICE = 6, /* the host waits for the context's work */
    FAKE_SYNC_STREAM = 7, /* for the stream's work */
    FAKE_SYNC_EVENT = 8,  /* for the context's work: an event after the latest work */
    FAKE_WAIT_EVENT = 9,  /* cudaStreamWaitEvent: the host does not wait */
    FAKE_QUERY = 10,      /* cudaStreamQuery: does not wait; returns 600 if unfinished */
    FAKE_CALL = 11,       /* a call that starts nothing; `cbid` says which */
    FAKE_MALLOC = 12,
    FAKE_FREE = 13,
    FAKE_OVERHEAD = 14, /* `ns` of CUPTI's own time, without a call */
    FAKE_RECORD = 15,   /* cudaEventRecord: `event` stands for the stream's work so far */
    FAKE_CAPTURE = 16,  /* cudaStreamBeginCapture; a wait for the device breaks it */
    FAKE_END_CAPTURE = 17
};

/* The API that the host called. */
enum fake_api {
    FAKE_RUNTIME = 0,
    FAKE_DRIVER = 1,
    FAKE_NESTED = 2,     /* a runtime call calls the driver; both have one correlation id */
    FAKE_NESTED_OWN = 3, /* the same, but the driver call has its own correlation id */
    FAKE_NO_CALL = 4     /* device work without a recorded call */
};

enum fake_activity_flag {
    FAKE_LATE = 1,         /* its device records arrive only with a forced flush */
    FAKE_ENDLESS = 2,      /* its device records never complete; forced, they have no times */
    FAKE_UNTIMED = 4,      /* complete, but start and end are 0: the device's buffers ran out */
    FAKE_BACKWARD = 8,     /* complete, but the end is before the start */
    FAKE_LOST = 16,        /* no device record at all, and not counted as dropped */
    FAKE_NON_BLOCKING = 32 /* for a capture: its stream does not wait for the legacy one */
};

/* One activity. For a field that is 0, its comment has the default. */
typedef struct fake_activity {
    uint32_t kind;      /* enum fake_kind */
    uint32_t api;       /* enum fake_api */
    uint32_t flags;     /* enum fake_activity_flag */
    uint32_t cbid;      /* the usual one of the kind */
    uint32_t result;    /* the call's result; an error starts nothing on the device */
    uint32_t device;    /* 0 is the first */
    uint32_t context;   /* device + 1 */
    uint32_t stream;    /* 7, CUPTI's number of the default stream */
    const char *name;   /* of the kernel: "fake_kernel"; need not outlive the call */
    uint64_t ns;        /* time on the device: 1000 */
    uint64_t delay_ns;  /* from the call's end to the start on an idle stream: 0 */
    uint64_t bytes;     /* of a copy, memset or allocation: 0 */
    uint64_t address;   /* of an allocation: a new one; of FAKE_FREE: the last one allocated */
    uint32_t copy_kind; /* CUpti_ActivityMemcpyKind: 1, host to device */
    uint32_t peer;      /* the other device of a FAKE_MEMCPY_PEER */
    uint32_t nodes;     /* kernels of a graph: 1 */
    uint32_t graph;     /* its id: 1 */
    uint32_t grid[3];   /* 1 each */
    uint32_t block[3];  /* 1 each */
    uint32_t registers; /* per thread: 16 */
    uint32_t static_shared, dynamic_shared; /* bytes */
    uint32_t event;                         /* id of a CUDA event */
    /* Explicit times, by the clock given to CUPTI, instead of now. `start` and `end` on the device are
     * those of a graph's first node (the others follow it). */
    uint64_t api_start, api_end, start, end;
} fake_activity;

/* Runs it on the calling thread. Returns its correlation id (the runtime call's if nested). */
FAKE_EXPORT uint32_t fake_run(const fake_activity *activity);

static inline uint32_t fake_launch(const char *name, uint32_t stream, uint64_t ns) {
    fake_activity a = {.kind = FAKE_LAUNCH, .name = name, .stream = stream, .ns = ns};
    return fake_run(&a);
}
static inline uint32_t fake_graph_launch(const char *name, uint32_t stream, uint32_t nodes,
                                         uint64_t ns) {
    fake_activity a = {
        .kind = FAKE_GRAPH_LAUNCH, .name = name, .stream = stream, .nodes = nodes, .ns = ns};
    return fake_run(&a);
}
static inline uint32_t fake_memcpy(uint32_t copy_kind, uint64_t bytes, uint32_t stream, uint64_t ns) {
    fake_activity a = {
        .kind = FAKE_MEMCPY, .copy_kind = copy_kind, .bytes = bytes, .stream = stream, .ns = ns};
    return fake_run(&a);
}
static inline uint32_t fake_memset(uint64_t bytes, uint32_t stream, uint64_t ns) {
    fake_activity a = {.kind = FAKE_MEMSET, .bytes = bytes, .stream = stream, .ns = ns};
    return fake_run(&a);
}
static inline uint32_t fake_synchronize(void) {
    fake_activity a = {.kind = FAKE_SYNC_DEVICE};
    return fake_run(&a);
}
static inline uint32_t fake_call(uint32_t api, uint32_t cbid) {
    fake_activity a = {.kind = FAKE_CALL, .api = api, .cbid = cbid};
    return fake_run(&a);
}

/* ---- delivery ---------------------------------------------------------------------------- */

/* Whether the library's own thread completes and delivers (default), or the calling threads do. */
FAKE_EXPORT void fake_worker(int on);
/* Device records and full buffers arrive in an order drawn from this seed; 0: as they complete. */
FAKE_EXPORT void fake_shuffle(uint64_t seed);
/* Completed device records wait for this many further flushes (a forced one delivers all). */
FAKE_EXPORT void fake_late(uint32_t flushes);
/* The next n records are dropped and counted. */
FAKE_EXPORT void fake_drop(uint64_t n);
/* Whether synchronizing host calls wait for the device (default), or treat its work as done. */
FAKE_EXPORT void fake_waiting(int on);

/* How many milliseconds a wait for a lock may take before it is a deadlock (default 30,000). */
FAKE_EXPORT void fake_deadlock_after(unsigned milliseconds);

/* ---- answers ----------------------------------------------------------------------------- */

/* The nth call of this function from now returns this code and does nothing; nth 0: every call. Code 0:
 * off. */
FAKE_EXPORT void fake_fail(const char *symbol, int code, unsigned nth);
/* Result of cuptiGetVersion; below 27 a refused buffer ends the process, as in the real library. */
FAKE_EXPORT void fake_version(uint32_t version);

/* Behave like the real libraries without a driver (each answers differently). */
enum fake_mode { FAKE_GPU = 0, FAKE_NO_GPU_12 = 1, FAKE_NO_GPU_13 = 2, FAKE_NO_GPU_13_5 = 3 };
FAKE_EXPORT void fake_mode(int mode);

/* Another client has subscribed under this name; NULL: no longer. */
FAKE_EXPORT void fake_other_subscriber(const char *name);
/* Another client that never subscribes (torch.profiler): it installs its own buffer callbacks and takes
 * all later records; when it leaves (0), it disables all kinds. */
FAKE_EXPORT void fake_other_client(int on);

/* ---- what happened ----------------------------------------------------------------------- */

/* Records by CUpti_ActivityKind. */
#define FAKE_KINDS 64

typedef struct fake_totals {
    uint64_t appended[FAKE_KINDS]; /* records written to a buffer */
    uint64_t dropped[FAKE_KINDS];  /* had no room, or fake_drop() */
    uint64_t untimed;              /* of the appended: incomplete, by a forced flush */
    uint64_t pending;              /* device records not in a buffer yet */
    uint64_t requested, completed; /* buffers */
    uint64_t held;                 /* buffers that the library holds */
    uint64_t dirty;                /* buffers that were promised to be zeroed but were not */
    uint64_t flushes;
} fake_totals;

FAKE_EXPORT void fake_count(fake_totals *out);
/* Calls of an entry point since the last reset. */
FAKE_EXPORT uint64_t fake_calls(const char *symbol);
/* Whether a kind is enabled (CUpti_ActivityKind). */
FAKE_EXPORT int fake_is_enabled(uint32_t kind);
/* Whether a call used the device. */
FAKE_EXPORT int fake_device_is_used(uint32_t device);
enum fake_capture_state { FAKE_CAPTURING = 1, FAKE_CAPTURING_BLOCKING = 2, FAKE_CAPTURE_BROKEN = 4 };
/* Bits of these. */
FAKE_EXPORT int fake_capture(void);
/* The current time by the clock of records. */
FAKE_EXPORT uint64_t fake_now(void);
/* Restores the initial state. Buffers that the library holds are forgotten, not completed. */
FAKE_EXPORT void fake_reset(void);

/* ---- scripts ----------------------------------------------------------------------------- */

/* A script is text, each line an activity or a control; `#` begins a comment:
 *
 *     launch name=gemm stream=7 ns=2000    graph memcpy peer memset sync_device sync_stream sync_event
 *     memcpy copy_kind=2 bytes=4096        wait_event query call malloc free overhead record; then the
 * fields of graph name="a b" nodes=5 grid=8,1,1  fake_activity by their names begin NAME / end / step a
 * range, a step: by the hooks below wait                                 until all devices have come to
 * their end; no call, no record flush 0|1                            cuptiActivityFlushAll, as another
 * client may drop N / late N / shuffle N          as the functions above thread N what follows runs on
 * thread N; 0, the calling one, at first join                                 until all threads have
 * done what stands above; what stands below runs on new threads
 *
 * api= runtime driver nested nested_own none; flags= late,endless,untimed,backward,lost. Times:
 * `start=+500` is 500 ns after the line is run, `start=500` is 500 by the records' clock. */
typedef struct fake_hooks {
    void (*begin)(const char *name);
    void (*end)(void);
    void (*step)(void);
} fake_hooks;

/* 0; else the number of the first invalid line, and nothing was run. */
FAKE_EXPORT int fake_script(const char *text, const fake_hooks *hooks);

#ifdef __cplusplus
}
#endif
#endif
