/* The collector's control plane: sessions, windows and their settings. opprof_result.h declares what a
 * window yields, opprof_trace.h trace files, src/core/record.h the recording path. cffi reads between
 * the marks. Unless stated otherwise, a function returns 0 or an op_error and sets op_last_error(). */
#ifndef OPPROF_H
#define OPPROF_H

#include "opprof_result.h"
#include "opprof_trace.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* cffi: begin */
enum op_error {
    OP_OK = 0,
    OP_ENOMEM = -1,  /* out of memory */
    OP_EIO = -2,     /* a file could not be created, read or written */
    OP_EBUSY = -3,   /* a window is already open */
    OP_ESTATE = -4,  /* no window or session is open */
    OP_EFORMAT = -5, /* not a trace, or not a session file of this version */
    OP_ELIMIT = -6,  /* larger than the caller's limit */
    OP_EUNSEEN = -7  /* not observable in this process */
};

typedef struct op_config {
    const char *pool_dir;  /* folder of the session file; NULL: anonymous memory, no recovery */
    const char *spill_dir; /* folder for chunks that do not fit the pool; NULL: drop them instead */
    uint64_t pool_bytes;   /* a multiple of 256 KiB; 0: 16 MiB. Grows up to four times as large */
    uint64_t max_bytes; /* limit for one window, past which events are counted and dropped; 0: 2 GiB */
} op_config;

#define OP_NOTE_BYTES 1536

/* What a session file says. Trust it no more than whoever may write the file. */
typedef struct op_left {
    uint32_t pid;
    uint32_t is_alive;        /* its process still has the file open */
    uint32_t window;          /* the open window; 0: nothing was being recorded */
    uint32_t keeps_last;      /* that window is a flight recorder */
    uint32_t note_bytes;      /* length of the note; 0: none, or the process died while writing it */
    uint64_t opened_ns;       /* since the epoch */
    char note[OP_NOTE_BYTES]; /* as passed to op_session_note(), not NUL-terminated */
    char names_path[1024], spill_path[1024];
} op_left;

/* What libraries emit by themselves, for op_window_accept(). */
enum op_injected {
    OP_INJECTED_TORCH = 1, /* torch's ops through ITT */
    OP_INJECTED_ITT = 2,   /* ITT tasks of other domains */
    OP_INJECTED_NVTX = 4
};

int op_session_open(const op_config *config); /* returns 0 and changes nothing if a session is open */
void op_session_close(void);
int op_session_is_open(void);
/* Call this before a fork: Python 3.15 warns about any other thread of the process. Ours end here and
 * start again when needed. */
void op_fork_announced(void);
const char *op_session_path(void); /* the session file; "" if there is none */
const char *op_session_clock(void);
/* What the process is doing, for whoever reads its session file after it died. Text beyond
 * OP_NOTE_BYTES is cut; 0 bytes clear the note. */
void op_session_note(const char *text, uint32_t bytes);
int op_window_start(void);
void op_window_accept(uint32_t injected); /* op_injected bits, for all later windows; initially all */
/* The share of torch's ops that later windows record; initially 1. The collector only reports it. */
void op_window_sample(double sampling);
/* Whether later windows record the inputs of ops. The text of a range is one. */
void op_window_keep_inputs(uint32_t on);
/* Whether later windows are flight recorders: the pool alone, whose newest events replace the
 * oldest. */
void op_window_keep_last(uint32_t on);
int op_window_stop(op_result **out); /* the caller frees it */
/* The same. If there are more than `most_events` events, all of them ops or ranges, the result has
 * their sums by name and their call paths, but no columns. */
int op_window_sum(uint64_t most_events, op_result **out);
/* What has been recorded so far; recording continues. Other threads may have to wait meanwhile. */
int op_window_peek(op_result **out);
int op_window_is_open(void);
void op_window_pause(void); /* nothing begins until op_window_resume(); open events end as usual */
void op_window_resume(void);
void op_window_pause_cuda(int paused); /* the same for CUDA alone; 0 resumes it */
int op_step_begin(int64_t number);     /* called by the thread that steps */
int op_step_end(void);
uint64_t op_window_dropped(void); /* so far */

/* Hardware and kernel counters, read when an op or range begins and ends. They are numbered from 0;
 * past the last the name is NULL. */
const char *op_counter_name(uint32_t counter);
int op_counter_refusal(uint32_t counter); /* 0: available; else the kernel's errno */
/* Choose the counters of all later windows; initially none. OP_EIO: the kernel cannot count them
 * together, and none is chosen. OP_EBUSY: a window is open. */
int op_window_count(const uint32_t *counters, uint32_t count);

/* Whether CUDA activities can be recorded by CUPTI, and if not, why. */
enum op_cuda {
    OP_CUDA_READY = 0,
    OP_CUDA_ABSENT = 1,    /* nothing in this process has started CUDA */
    OP_CUDA_NO_CUPTI = 2,  /* libcupti was not found */
    OP_CUDA_TOO_OLD = 3,   /* the driver or libcupti */
    OP_CUDA_TAKEN = 4,     /* another profiler uses CUPTI */
    OP_CUDA_FORBIDDEN = 5, /* the driver does not allow it for this user */
    OP_CUDA_FORKED = 6,    /* the parent process had started CUDA */
    OP_CUDA_FAILED = 7
};
/* Finds CUPTI if CUDA was started: the file `named`, unless NULL; else the library already in the
 * process, else the first of `paths` that loads. Returns an enum op_cuda and sets op_last_error().
 * Repeated calls are cheap. */
int op_cuda_open(const char *named, const char *const *paths, uint32_t count);
int op_cuda_is_loaded(void); /* 1: libcuda is loaded in this process */
enum op_cuda_part {
    OP_CUDA_WORK = 1,  /* calls, and the work of devices */
    OP_CUDA_MEMORY = 2 /* device memory that calls allocate and free */
};
/* The op_cuda_part bits that later windows record, 0 for none. Needs OP_CUDA_READY. */
void op_cuda_record(int wanted);
int op_cuda_parts(void); /* the op_cuda_part bits of the last window to begin */
/* Why the last window that should have recorded CUDA did not, or only in part; "": it did. */
const char *op_cuda_problem(void);
const char *op_cuda_library(void); /* CUPTI's file; "": none */
uint32_t op_cuda_version(void);    /* version of CUPTI's API; 0: none */

/* Record the C++ stack of each op and range in all later windows, up to `frames` frames (256 at most);
 * 0, the initial value, for none. OP_EBUSY: a window is open. */
int op_window_unwind(uint32_t frames);

/* Record what loaded libraries allocate with malloc() and its relatives; a library loaded later is
 * included from the next call on. `take` and `give` are the program's own allocation functions: if
 * their calls cannot be observed, nothing is watched and it returns OP_EUNSEEN. */
int op_malloc_watch(void *(*take)(size_t), void (*give)(void *));
void op_malloc_unwatch(void);

/* The last window of a dead process, from its session file. */
int op_recover(const char *path, op_result **out);
/* What a session file says about its process, even if nothing was recorded. */
int op_recover_look(const char *path, op_left *out);

/* Ranges emitted for another tool, whose library the environment names. */
enum op_emit_target { OP_EMIT_ITT = 1, OP_EMIT_NVTX = 2 };
int op_emit_open(uint32_t target);   /* loads the library once; call it before the others */
void op_emit_start(uint32_t target); /* emits our own ranges too from now on; calls nest */
void op_emit_stop(uint32_t target);
uint32_t op_emit_push(uint32_t target, const char *text); /* returns its depth on this thread, from 0 */
uint32_t op_emit_depth(uint32_t target);                  /* open ranges of this thread */
void op_emit_pop(uint32_t target);                        /* only if the depth is not 0 */
void op_emit_mark(uint32_t target, const char *text);

/* Waits until all devices that this process uses are idle. Returns how many contexts it waited for, 0
 * without CUDA; or an error, which may be that of an earlier kernel. */
int op_cuda_synchronize(void);

/* Nanoseconds that a fixed amount of integer work takes right now, about 30 us on a machine of 2020. */
uint64_t op_speed_probe(void);

/* File and function names for each address of this process; 0: unknown. `addresses` is sorted. */
int op_code_names(const uint64_t *addresses, uint32_t count, uint32_t *files, uint32_t *functions);
/* Tell native/replay/count_instructions.c where to start and stop counting; otherwise no-ops. */
void op_replay_begin(void);
void op_replay_end(void);

const char *op_name_text(uint32_t id, uint32_t *length);
uint32_t op_name_group(uint32_t id); /* name of the row in which its events are summed up */
const char *op_last_error(void);
/* cffi: end */

#ifdef __cplusplus
}
#endif
#endif
