/* The result of a window: columns of its events, and what is derived from them. */
#ifndef OPPROF_RESULT_H
#define OPPROF_RESULT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* cffi: begin */
typedef struct op_result op_result;

#define OP_COUNTERS_MAX 4 /* counted at once */

typedef struct op_stats {
    uint64_t events;
    uint64_t dropped;          /* events that began without room for them; a lower bound if recovered */
    uint64_t unmatched_ends;   /* ends whose begin was not recorded in this window */
    uint64_t names_overflowed; /* events named "(overflow)" because the name table was full */
    uint64_t spilled_bytes;
    uint32_t threads;
    uint32_t names;
    uint32_t truncated;      /* recording ended early: the byte budget or the disk was full */
    uint32_t crash_recovery; /* the pool was a file that a later process can read */
    uint32_t uncounted;      /* threads on which the requested counters could not be opened */
    uint32_t counted;        /* number of counters, followed by their numbers */
    uint32_t counters[OP_COUNTERS_MAX];
    double sampling;        /* share of torch's ops that was recorded, a random sample; 1: all */
    uint32_t cuda;          /* enum op_cuda_recorded; the members below are 0 if nothing was recorded */
    uint64_t device_events; /* recorded kernels, copies and the like */
    uint64_t device_dropped;     /* records that CUPTI or the collector had no room for */
    uint64_t device_untimed;     /* device events for which CUPTI has no times */
    uint64_t device_unlaunched;  /* device events whose launching call was not recorded */
    uint64_t device_overhead_ns; /* CUPTI's own overhead, as it reports it */
} op_stats;

enum op_cuda_recorded {
    OP_CUDA_NOT_RECORDED = 0,
    OP_CUDA_RECORDED = 1,
    OP_CUDA_PARTIAL = 2 /* another profiler took over, or CUPTI did not deliver everything */
};

typedef struct op_step {
    int64_t number;
    int64_t start_ns, end_ns; /* from op_result_trace_start(); end -1: open at stop */
} op_step;

typedef struct op_thread_info {
    uint32_t index, os_tid;
    uint64_t torch_thread;             /* torch's own number; 0: it ran no torch op */
    int32_t device_type, device_index; /* torch's numbers; 0, -1: a host thread */
    int64_t resource;                  /* of a device thread: the stream */
    char name[16];
} op_thread_info;

/* Columns with one entry per event, thread by thread, each thread in the order of begin. */
typedef struct op_columns {
    uint64_t count;
    const int64_t *start_ns;    /* from trace_start */
    const int64_t *duration_ns; /* -1: open at stop */
    const int64_t *self_ns;     /* duration minus that of the children; 0 if async or open */
    const int64_t *sequence_nr; /* -1: none */
    const uint32_t *name, *thread, *forward_thread;
    const uint32_t *args;         /* 1 + word offset into op_result_args(); 0: none */
    const int32_t *parent, *step; /* -1: none */
    const int32_t *launcher;      /* of a device event: the host event that launched it; -1: unknown */
    const uint16_t *line;         /* line in the enclosing Python function at begin; 0: unknown */
    const uint8_t *kind, *flags, *scope;
} op_columns;

/* A call that was already open when its thread entered the window. */
typedef struct op_open_call {
    uint32_t thread, name;
    uint32_t line;  /* the line it was at */
    int64_t end_ns; /* -1: open at stop */
} op_open_call;

/* A frame of C++ stacks. Most stacks share their outer frames, so each frame refers to its caller. */
#define OP_CPP_BOTTOM -1 /* the outermost frame of the thread */
#define OP_CPP_BEYOND -2 /* the stack was deeper than the frame limit */
typedef struct op_cpp_frame {
    uint64_t address; /* inside the call instruction, not the return address */
    uint64_t offset;  /* the address within the module's file, as addr2line takes it */
    int32_t caller;   /* index of the calling frame, always smaller; OP_CPP_BOTTOM; OP_CPP_BEYOND */
    uint32_t module;  /* id of the file's path; 0: in no file, such as code generated at run time */
    uint32_t symbol;  /* id of the function's name; 0: unknown */
} op_cpp_frame;

/* A line of the user's own code; `file` and `function` are name ids. */
typedef struct op_site {
    uint32_t file, function, line;
    uint32_t caller; /* the site that called the function; 0: not recorded */
} op_site;

/* How often the steps ran an op or range from a site, and its totals including what ran inside. */
typedef struct op_called_from {
    uint32_t name; /* the name it is grouped by */
    uint32_t site; /* 1 + index into op_result_sites() */
    uint64_t count;
    int64_t bytes, nodes, flops, retained; /* as op_group has them */
} op_called_from;

/* One row of the key averages. */
typedef struct op_group {
    uint32_t name;
    uint32_t first_event;
    uint32_t args_event; /* an event with the inputs of this row */
    uint8_t kind, scope, is_user_annotation, background;
    uint8_t is_async;
    int32_t device_type; /* torch's number; 0: the host */
    int64_t start_ns;    /* of the first event */
    uint64_t count;
    uint64_t views;            /* of these, ops that returned a view of an input and ran no other op */
    int64_t total_ns, self_ns; /* on the host */
    int64_t device_total_ns,
        self_device_ns;     /* of work that its events launched; self: not from an op inside */
    int64_t min_ns, max_ns; /* shortest and longest event */
    int64_t cpu_memory, self_cpu_memory; /* bytes allocated minus freed; self: not in an event inside */
    int64_t device_memory, self_device_memory; /* the same on all devices */
    int64_t flops, counted_flops;              /* 0 until counted; the second counts each FLOP once */
    int64_t bytes, counted_bytes;              /* of the tensors passed to ops; these add up */
    int64_t nodes, counted_nodes;              /* added to autograd's graph; the same */
    int64_t retained, counted_retained; /* bytes allocated and still in use at the end of the step */
} op_group;

/* What an allocator did in an event of kind OP_MEMORY. */
typedef struct op_memory {
    uint64_t address;                        /* 0: the allocation failed */
    int64_t bytes;                           /* negative: freed */
    int64_t total_allocated, total_reserved; /* afterwards, by the allocator's own count; -1: unknown */
    int32_t device_type, device_index;       /* torch's numbers; index -1: the host */
} op_memory;

/* Bytes allocated minus freed, one entry per event: inside it, and in it but in no event inside it. */
typedef struct op_memory_columns {
    const int64_t *cpu, *self_cpu, *device, *self_device;
} op_memory_columns;

/* A call of CUDA's runtime or driver (an event of kind OP_RUNTIME or OP_DRIVER). */
typedef struct op_device_call {
    uint32_t correlation; /* CUPTI's number, shared with the work it launched */
    uint32_t callback;    /* CUPTI's number of the function */
    uint32_t result;      /* cudaError_t or CUresult; 0: success */
} op_device_call;

/* What ran on a device. */
typedef struct op_device_work {
    uint64_t bytes;      /* copied or set */
    uint64_t graph_node; /* 0: not part of a CUDA graph */
    uint32_t correlation, context, graph;
    union {
        uint32_t grid[3]; /* of a kernel, as are registers (per thread) and shared memory (bytes) */
        struct { /* of a synchronization: the stream that recorded the event, UINT32_MAX if unknown, */
            uint32_t waited_stream;
            int32_t waited_call; /* and the row of the call that did; -1: not recorded */
        };
    };
    uint16_t block[3], registers;
    uint32_t static_shared, dynamic_shared;
    uint32_t value;                              /* of a memset; of a synchronization: the event */
    uint8_t copy_kind, source_kind, target_kind; /* CUPTI's numbers: CUpti_ActivityMemcpyKind, */
    uint8_t sync_type; /* CUpti_ActivityMemoryKind, CUpti_ActivitySynchronizationType */
} op_device_work;

/* How one device spent one window, in nanoseconds. All times from compute_ns on add up to span_ns. */
typedef struct op_device_span {
    int64_t device; /* torch's number */
    int64_t span_ns;
    int64_t communication_ns;         /* collectives were running */
    int64_t overlap_ns;               /* collectives and other kernels ran at the same time */
    int64_t compute_ns;               /* kernels other than collectives were running */
    int64_t exposed_communication_ns; /* collectives were running, and no other kernel */
    int64_t copy_ns;                  /* only copies and fills were running */
    /* Nothing was running: before it launched the next work, the host thread was in ops and calls, */
    int64_t launch_bound_ns;
    int64_t host_ns;        /* or outside of them, */
    int64_t synchronize_ns; /* or in a call that waits for the device; */
    int64_t queued_ns;      /* the work was launched but had not begun; */
    int64_t unknown_ns;     /* the next work or its launch was not recorded */
} op_device_span;

typedef struct op_memory_use {
    int64_t allocated, freed; /* bytes allocated, and how many of them were freed */
    int64_t peak;             /* the most of these bytes in use at once */
    uint64_t allocations;
} op_memory_use;

typedef struct op_path {
    int32_t parent; /* index of the calling node, always smaller; -1: a root */
    uint32_t name;
    uint64_t count;
    int64_t total_ns, self_ns;
} op_path;

void op_result_free(op_result *result);
int64_t op_result_trace_start(const op_result *result);    /* nanoseconds since the epoch */
uint64_t op_result_first_id(const op_result *result);      /* row n has the id first_id + 1 + n */
int64_t op_result_trace_duration(const op_result *result); /* nanoseconds */
void op_result_columns(const op_result *result, op_columns *out);
int op_result_is_folded(const op_result *result); /* it only has sums of its events */
void op_result_stats(const op_result *result, op_stats *out);
const op_thread_info *op_result_threads(const op_result *result, uint32_t *count);
void op_result_name_thread(op_result *result, uint32_t index, const char *name);
const op_step *op_result_steps(const op_result *result, uint32_t *count);
/* Thread by thread, outermost first. */
const op_open_call *op_result_open_calls(const op_result *result, uint32_t *count);
const uint32_t *op_result_args(const op_result *result, uint64_t *words);
/* 1 + word offset into op_result_args() of an op's outputs; 0: none, or not recorded. */
uint32_t op_result_outputs(const op_result *result, uint64_t event);
/* Name of a torch op's overload; 0: none, or not recorded. */
uint32_t op_result_overload(const op_result *result, uint64_t event);
/* The same for the values counted in an event. */
uint32_t op_result_counters(const op_result *result, uint64_t event);
/* 1 + index of the innermost frame at an event's begin; 0: not recorded. */
uint32_t op_result_cpp_stack(const op_result *result, uint64_t event);
/* All frames. The first call looks up their names. The result owns them. */
int op_result_cpp_frames(const op_result *result, const op_cpp_frame **frames, uint64_t *count);
enum op_group_by {
    OP_GROUP_BY_NAME = 0,
    OP_GROUP_BY_SHAPES = 1,
    OP_GROUP_BY_INPUTS = 2, /* shapes, strides, types and values */
    OP_GROUP_BY_OVERLOAD = 4
};
/* `by` is a set of op_group_by bits. With a `stack_depth`, events are also kept apart by that many
 * innermost calls and their lines; as two lines may print alike, two rows may rarely show the same
 * stack. Rows are in the order of their first start. `samples` has an array of rows x steps for each
 * op_group_column(). The result owns both until the next call. */
int op_result_groups(op_result *result, int by, uint32_t stack_depth, const op_group **rows,
                     uint64_t *count, const int64_t **samples);
/* Name of a sample column, and of the op_group member with its sum over all events; NULL: past the
 * last. */
const char *op_group_column(uint32_t index);
/* What devices did for an op, including the ops inside it. Times are in nanoseconds. */
enum op_use_of_device {
    OP_USE_KERNELS,
    OP_USE_LAUNCHES, /* calls; one may launch many kernels (a graph) */
    OP_USE_MEMSETS,
    OP_USE_SYNCS, /* calls in which the host waited for a device */
    OP_USE_COPIES,
    OP_USE_COPIES_HTOD, /* then in the order of op_copy_direction (device_calls.h) */
    OP_USE_COPIES_HTOH = OP_USE_COPIES_HTOD + 4,
    OP_USE_BYTES,
    OP_USE_BYTES_HTOD,
    OP_USE_BYTES_HTOH = OP_USE_BYTES_HTOD + 4,
    OP_USE_BUSY,  /* union of the work's intervals on each device, summed over devices */
    OP_USE_IDLE,  /* part of OP_USE_SPAN without any work, whoever launched it; summed over devices */
    OP_USE_SPAN,  /* host duration times the number of devices in use */
    OP_USE_DEPTH, /* kernels launched but not begun, summed over OP_USE_DEPTHS moments */
    OP_USE_DEPTHS,
    OP_USE_MEASURES /* number of measures */
};
typedef struct op_device_use {
    /* By row of the groups: its index in `values`, 0 for none. Index 0 of `values` is the whole. */
    const uint32_t *of_group;
    const uint32_t *launcher; /* by row of work: 1 + the row that launched most of it; 0: unknown */
    /* count x OP_USE_MEASURES x (steps + 1); the last entry is for events outside of steps */
    const int64_t *values;
    uint64_t count;
    uint64_t unmatched_launches; /* launches without a recorded kernel */
    uint64_t unmatched_kernels;  /* kernels, copies and fills without a recorded launch */
    uint64_t untimed;            /* work without times */
    uint64_t unsized;            /* copies without a known size */
    uint64_t undirected;         /* copies without a known direction */
} op_device_use;
/* For the rows of the last op_result_groups(). The result owns it until the next call of that. */
int op_result_device_use(op_result *result, op_device_use *out);
/* Spans of each window, device by device. `bounds` has the start and end of each window, from the
 * trace's start. The result owns them until the next call. */
int op_result_device_spans(op_result *result, const int64_t *bounds, uint64_t windows,
                           const op_device_span **spans, uint64_t *count);
/* Timed rows of kernels in which ranks wait for each other. The result owns them until the next
 * call. */
int op_result_collectives(op_result *result, const uint32_t **rows, uint64_t *count);
/* Whether a kernel of this name is such a collective. */
int op_name_is_collective(const char *utf8, size_t length);
/* FLOPs per row of the last groups by inputs; negative: unknown. Later groups include their sums. */
#define OP_FLOPS_BY_FORMULA -2 /* use the collector's own formula */
int op_result_count_flops(op_result *result, const int64_t *per_row, uint64_t count);
/* Two columns, NULL until counted: FLOPs of each event including what runs inside it, and the part not
 * already counted in an event around it. */
const int64_t *op_result_flops(const op_result *result);
/* Kineto's name of a torch scalar type (c10::ScalarType); "" if it has none. */
const char *op_dtype_name(uint32_t dtype);
/* 1: the event allocates or frees memory, described by *out; 0: it does not. */
int op_result_memory(const op_result *result, uint64_t event, op_memory *out);
/* 1: the event is of that kind and was recorded by this collector. */
int op_result_device_call(const op_result *result, uint64_t event, op_device_call *out);
int op_result_device_work(const op_result *result, uint64_t event, op_device_work *out);
/* Computed on the first call; the result owns it. */
int op_result_memory_columns(op_result *result, op_memory_columns *out);
/* One entry per step, then one for the whole window. The result owns them until the next call. */
int op_result_memory_use(op_result *result, int on_device, const op_memory_use **rows);
/* All sites of the process. NULL: the window recorded none. */
const op_site *op_result_sites(const op_result *result, uint32_t *count);
/* One entry for each pair of op and site. */
const op_called_from *op_result_called_from(const op_result *result, uint64_t *count);
/* At most `limit` nodes, the most expensive, each with its callers. The result owns them. */
int op_result_paths(op_result *result, uint32_t limit, const op_path **nodes, uint64_t *count);
/* cffi: end */

#ifdef __cplusplus
}
#endif
#endif
