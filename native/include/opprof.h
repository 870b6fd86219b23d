/* The collector's control plane: sessions, their windows, and what these record. What a window gave is
 * in opprof_result.h, trace files are in opprof_trace.h; the recording path is in src/core/record.h.
 * cffi reads the parts between the marks. Functions return 0 or one of op_error, and leave a sentence
 * in op_last_error(), unless said otherwise. */
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
    OP_ENOMEM = -1,  /* the system gave no memory */
    OP_EIO = -2,     /* a file could not be made, written or read */
    OP_EBUSY = -3,   /* a window is open already */
    OP_ESTATE = -4,  /* no window is open, or the session is not */
    OP_EFORMAT = -5, /* not a session file of this version, or not a trace */
    OP_ELIMIT = -6,  /* larger than the caller allows */
    OP_EUNSEEN = -7  /* nothing shows it in this process */
};

typedef struct op_config {
    const char *pool_dir;  /* folder of the session file; NULL: anonymous memory, nothing to recover */
    const char *spill_dir; /* folder for chunks that the pool cannot hold; NULL: none, drop instead */
    uint64_t pool_bytes;   /* a multiple of 256 KiB; 0: 16 MiB. Grows to four times that */
    uint64_t max_bytes;    /* of one window, past which events are counted but dropped; 0: 2 GiB */
} op_config;

#define OP_NOTE_BYTES 1536

/* Of a session file. Nothing in it can be trusted more than whoever may write the file. */
typedef struct op_left {
    uint32_t pid;
    uint32_t is_alive;        /* its process has it open */
    uint32_t window;          /* a window was open; 0: nothing was being recorded */
    uint32_t keeps_last;      /* and was a flight recorder */
    uint32_t note_bytes;      /* of the note; 0: none, or the process died while it changed it */
    uint64_t opened_ns;       /* since the epoch */
    char note[OP_NOTE_BYTES]; /* as of op_session_note(), without an end */
    char names_path[1024], spill_path[1024];
} op_left;

/* What libraries emit by themselves, and whether a window records it. */
enum op_injected {
    OP_INJECTED_TORCH = 1, /* torch's ops through ITT */
    OP_INJECTED_ITT = 2,   /* ITT tasks of other domains */
    OP_INJECTED_NVTX = 4
};

int op_session_open(const op_config *config); /* a second call while open is 0 and changes nothing */
void op_session_close(void);
int op_session_is_open(void);
/* The caller is about to fork, and may count the process's threads before: Python 3.15 warns of any.
 * Ours end here, and start again when they are needed. */
void op_fork_announced(void);
const char *op_session_path(void); /* the session file; "" when there is none */
const char *op_session_clock(void);
/* What the process is doing, for whoever finds its session file after its death; the end of what is
 * longer than OP_NOTE_BYTES is left out. 0 bytes: nothing worth a word. */
void op_session_note(const char *text, uint32_t bytes);
int op_window_start(void);
void op_window_accept(
    uint32_t injected); /* bits of op_injected, for all windows to come; all at first */
/* Torch's ops in all windows to come are such a share of them; 1 at first. It is only noted here. */
void op_window_sample(double sampling);
/* Whether the inputs of ops are recorded in all windows to come: the text of a range is one. */
void op_window_keep_inputs(uint32_t on);
/* Whether windows to come are flight recorders: the pool alone, in which the oldest events make room
 * for the newest. */
void op_window_keep_last(uint32_t on);
int op_window_stop(op_result **out); /* the caller frees it */
/* The same; where there are more events than so many, and nothing but ops and ranges, the result has
 * their sums by name, their paths, and no columns. */
int op_window_sum(uint64_t most_events, op_result **out);
/* What was recorded so far, while recording goes on; other threads may wait meanwhile. */
int op_window_peek(op_result **out);
int op_window_is_open(void);
void op_window_pause(void); /* nothing begins until it is resumed; what was begun ends as usual */
void op_window_resume(void);
void op_window_pause_cuda(int paused); /* the same of CUDA alone; 0: it goes on */
int op_step_begin(int64_t number);     /* by the thread that steps */
int op_step_end(void);
uint64_t op_window_dropped(void); /* so far */

/* Counters of the processor and of the kernel, read when an op or range begins and ends. They are
 * numbered from 0; a name is NULL past the last. */
const char *op_counter_name(uint32_t counter);
int op_counter_refusal(uint32_t counter); /* 0: it can be counted here; else the kernel's errno */
/* These are counted in all windows to come; none at first. OP_EIO: the kernel does not count them
 * together, and then none is. Not while a window is open: OP_EBUSY. */
int op_window_count(const uint32_t *counters, uint32_t count);

/* CUDA's activities, by CUPTI: why they cannot be recorded. */
enum op_cuda {
    OP_CUDA_READY = 0,
    OP_CUDA_ABSENT = 1,    /* nothing in this process has started CUDA */
    OP_CUDA_NO_CUPTI = 2,  /* there is no libcupti */
    OP_CUDA_TOO_OLD = 3,   /* the driver, or libcupti */
    OP_CUDA_TAKEN = 4,     /* another profiler has it */
    OP_CUDA_FORBIDDEN = 5, /* the driver lets this user not */
    OP_CUDA_FORKED = 6,    /* the parent had started CUDA */
    OP_CUDA_FAILED = 7
};
/* Finds CUPTI where CUDA was started: the file `named`, unless NULL; else the library in the process,
 * else the first of these that loads. An enum op_cuda, and in op_last_error() why. Again only costs a
 * look. */
int op_cuda_open(const char *named, const char *const *paths, uint32_t count);
int op_cuda_is_loaded(void); /* 1: something in this process has loaded libcuda */
enum op_cuda_part {
    OP_CUDA_WORK = 1,  /* calls, and what runs on devices */
    OP_CUDA_MEMORY = 2 /* of devices: what calls take and give back */
};
/* What of it windows to come record, 0: nothing; only where it is ready. */
void op_cuda_record(int wanted);
int op_cuda_parts(void); /* enum op_cuda_part: what the last window to begin records */
/* Why the last window that should have recorded it did not, or not all of it; "": it did. */
const char *op_cuda_problem(void);
const char *op_cuda_library(void); /* the file; "": none */
uint32_t op_cuda_version(void);    /* of CUPTI's API; 0: none */

/* The C++ stack of each op and range is recorded in all windows to come, of so many frames at most, 256
 * or fewer; 0, as at first: none is. Not while a window is open: OP_EBUSY. */
int op_window_unwind(uint32_t frames);

/* What the loaded libraries take by malloc() and its like is recorded; a library loaded since then
 * is seen from the next call on. `take` and `give` are how the program itself takes memory: where that
 * is not seen, nothing is watched, and it returns OP_EUNSEEN. */
int op_malloc_watch(void *(*take)(size_t), void (*give)(void *));
void op_malloc_unwatch(void);

/* The last window of the session file of a process that died. */
int op_recover(const char *path, op_result **out);
/* What a session file says of its process, also of one that recorded nothing. */
int op_recover_look(const char *path, op_left *out);

/* Ranges for another tool, of which the environment names the library. */
enum op_emit_target { OP_EMIT_ITT = 1, OP_EMIT_NVTX = 2 };
int op_emit_open(uint32_t target);   /* loads it, once; before all that follows */
void op_emit_start(uint32_t target); /* from here on our own ranges are emitted too; counted */
void op_emit_stop(uint32_t target);
uint32_t op_emit_push(uint32_t target, const char *text); /* its depth on this thread, from 0 */
uint32_t op_emit_depth(uint32_t target);                  /* ranges pushed on this thread */
void op_emit_pop(uint32_t target);                        /* only where the depth is not 0 */
void op_emit_mark(uint32_t target, const char *text);

/* Waits until the devices that this process uses have done all that they were given. How many contexts
 * that were, 0 without CUDA; or an error, also of an earlier kernel's. */
int op_cuda_synchronize(void);

/* Nanoseconds that a fixed amount of integer work takes just now, some 30 us on a machine of 2020. */
uint64_t op_speed_probe(void);

/* What the code at addresses of this process is called: names of the file and of the function that each
 * lies in; 0: of none that is known. They are sorted. */
int op_code_names(const uint64_t *addresses, uint32_t count, uint32_t *files, uint32_t *functions);
/* Tell native/replay/count_instructions.c where what it counts begins and ends; nobody else hears. */
void op_replay_begin(void);
void op_replay_end(void);

const char *op_name_text(uint32_t id, uint32_t *length);
uint32_t op_name_group(uint32_t id); /* the name of the row that its events are summed up in */
const char *op_last_error(void);
/* cffi: end */

#ifdef __cplusplus
}
#endif
#endif
