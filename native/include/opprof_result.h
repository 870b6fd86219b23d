/* What a window gave: columns of its events, and what follows from them. */
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
    uint64_t dropped;          /* events begun without room for them; recovered: at least */
    uint64_t unmatched_ends;   /* ends whose begin is not on record in this window */
    uint64_t names_overflowed; /* events that share the name "(overflow)", as theirs found no room */
    uint64_t spilled_bytes;
    uint32_t threads;
    uint32_t names;
    uint32_t truncated;      /* the byte budget or the disk ended the recording early */
    uint32_t crash_recovery; /* the pool was a file that a later process can read */
    uint32_t uncounted;      /* threads on which the counters asked for could not be opened */
    uint32_t counted;        /* how many counters there are, and their numbers */
    uint32_t counters[OP_COUNTERS_MAX];
    double sampling;         /* the share of torch's ops that was recorded, drawn at random; 1: all */
    uint32_t cuda;           /* enum op_cuda_recorded; what follows is 0 where it was not */
    uint64_t device_events;  /* kernels, copies and the like on record */
    uint64_t device_dropped; /* records for which CUPTI, or we, had no room */
    uint64_t device_untimed; /* of device_events: CUPTI does not know when they ran */
    uint64_t device_unlaunched;  /* of device_events: the call that launched them is not on record */
    uint64_t device_overhead_ns; /* time that CUPTI says it took itself */
} op_stats;

enum op_cuda_recorded {
    OP_CUDA_NOT_RECORDED = 0,
    OP_CUDA_RECORDED = 1,
    OP_CUDA_PARTIAL = 2 /* another profiler took over in the window, or CUPTI did not hand all over */
};

typedef struct op_step {
    int64_t number;
    int64_t start_ns, end_ns; /* from the result's trace_start; end -1: open at stop */
} op_step;

typedef struct op_thread_info {
    uint32_t index, os_tid;
    uint64_t torch_thread;             /* torch's own number, 0: no torch op on it */
    int32_t device_type, device_index; /* torch's numbers; 0, -1: a thread of the host */
    int64_t resource;                  /* of a device: the stream */
    char name[16];
} op_thread_info;

/* Columns, one entry an event, thread by thread, each thread in the order of begin. */
typedef struct op_columns {
    uint64_t count;
    const int64_t *start_ns;    /* from trace_start */
    const int64_t *duration_ns; /* -1: open at stop */
    const int64_t *self_ns;     /* duration less that of the children; 0 where async or open */
    const int64_t *sequence_nr; /* -1: none */
    const uint32_t *name, *thread, *forward_thread;
    const uint32_t *args;         /* 1 + word offset into op_result_args(); 0: none */
    const int32_t *parent, *step; /* -1: none */
    const int32_t *launcher;      /* of a device event: the host event that caused it; -1: none known */
    const uint16_t *line;         /* of the Python function around it, where it began; 0: unknown */
    const uint8_t *kind, *flags, *scope;
} op_columns;

/* A call that was open when its thread came to the window. */
typedef struct op_open_call {
    uint32_t thread, name;
    uint32_t line;  /* that it was at */
    int64_t end_ns; /* -1: open at stop */
} op_open_call;

/* A frame of C++ stacks. Most stacks share their outer frames, so a frame names the one that called it.
 */
#define OP_CPP_BOTTOM -1 /* it is the thread's first */
#define OP_CPP_BEYOND -2 /* the stack was deeper than what is kept of it */
typedef struct op_cpp_frame {
    uint64_t address; /* inside of the call, and not of where it returns to */
    uint64_t offset;  /* the same as the module's file has it: what addr2line takes */
    int32_t caller;   /* index of the frame, always smaller; OP_CPP_BOTTOM; OP_CPP_BEYOND */
    uint32_t module;  /* id of the file's path; 0: in no file, as code that was made at run time */
    uint32_t symbol;  /* id of the function's name; 0: not known */
} op_cpp_frame;

/* A line of the user's own code: ids of its file's path and its function's name. */
typedef struct op_site {
    uint32_t file, function, line;
    uint32_t caller; /* the site that called the function; 0: none was noted */
} op_site;

/* How often an op or range was called from a site in the steps, with what runs inside of ops. */
typedef struct op_called_from {
    uint32_t name; /* under which it is grouped */
    uint32_t site; /* 1 + index into op_result_sites() */
    uint64_t count;
    int64_t bytes, nodes, flops, retained; /* as op_group has them */
} op_called_from;

/* One row of the key averages. */
typedef struct op_group {
    uint32_t name;
    uint32_t first_event;
    uint32_t args_event; /* an event with this row's inputs */
    uint8_t kind, scope, is_user_annotation, background;
    uint8_t is_async;
    int32_t device_type; /* torch's number; 0: the host */
    int64_t start_ns;    /* of the first event */
    uint64_t count;
    uint64_t views;            /* of these, ops that gave back what they were given, and ran no other */
    int64_t total_ns, self_ns; /* on the host */
    int64_t device_total_ns,
        self_device_ns;                  /* of work launched in its events; by them and no op inside */
    int64_t min_ns, max_ns;              /* of the events' durations */
    int64_t cpu_memory, self_cpu_memory; /* bytes taken less given back; self: by no event inside */
    int64_t device_memory, self_device_memory; /* the same of all devices */
    int64_t flops, counted_flops;              /* 0 until they are counted */
    int64_t bytes, counted_bytes;              /* of the tensors that ops were given; these add up */
    int64_t nodes, counted_nodes;              /* that they added to autograd's graph; the same */
    int64_t retained, counted_retained;        /* bytes that they took, in use when their step ended */
} op_group;

/* What an allocator did in one event of kind OP_MEMORY. */
typedef struct op_memory {
    uint64_t address;                        /* 0: asked for and not to be had */
    int64_t bytes;                           /* negative: given back */
    int64_t total_allocated, total_reserved; /* by then, as the allocator counts; -1: unknown */
    int32_t device_type, device_index;       /* torch's numbers; index -1: the host */
} op_memory;

/* Bytes taken less given back, one entry an event: inside it, and by it and no event inside it. */
typedef struct op_memory_columns {
    const int64_t *cpu, *self_cpu, *device, *self_device;
} op_memory_columns;

/* A call of CUDA's runtime or driver (an event of kind OP_RUNTIME or OP_DRIVER). */
typedef struct op_device_call {
    uint32_t correlation; /* CUPTI's number, which its work has too */
    uint32_t callback;    /* CUPTI's number of the function */
    uint32_t result;      /* cudaError_t or CUresult; 0: it succeeded */
} op_device_call;

/* What ran on a device. */
typedef struct op_device_work {
    uint64_t bytes;      /* copied or set */
    uint64_t graph_node; /* 0: not of a CUDA graph */
    uint32_t correlation, context, graph;
    union {
        uint32_t grid[3]; /* of a kernel, as its registers (of a thread) and shared memory (bytes) */
        struct { /* of a synchronization: the stream that recorded its event, UINT32_MAX: not known, */
            uint32_t waited_stream;
            int32_t waited_call; /* and the row of the call that did; -1: not on record */
        };
    };
    uint16_t block[3], registers;
    uint32_t static_shared, dynamic_shared;
    uint32_t value;                              /* of a memset; of a synchronization: the event */
    uint8_t copy_kind, source_kind, target_kind; /* CUPTI's numbers: CUpti_ActivityMemcpyKind, */
    uint8_t sync_type; /* CUpti_ActivityMemoryKind, CUpti_ActivitySynchronizationType */
} op_device_work;

/* Where the time of one device went in one window, nanoseconds. All but the first two times and
 * `overlap_ns` add up to `span_ns`. */
typedef struct op_device_span {
    int64_t device; /* torch's number */
    int64_t span_ns;
    int64_t communication_ns;         /* collectives ran */
    int64_t overlap_ns;               /* collectives and other kernels ran at once */
    int64_t compute_ns;               /* kernels that are not collectives ran */
    int64_t exposed_communication_ns; /* collectives ran, and no other kernel */
    int64_t copy_ns;                  /* nothing but copies and fills ran */
    /* Nothing ran: until the next work was launched its thread was inside of ops and calls, */
    int64_t launch_bound_ns;
    int64_t host_ns;        /* or in none, */
    int64_t synchronize_ns; /* or in a call that waits for the device; */
    int64_t queued_ns;      /* it was launched and had not begun; */
    int64_t unknown_ns;     /* what came next, or who launched it, is not on record */
} op_device_span;

typedef struct op_memory_use {
    int64_t allocated, freed; /* bytes taken, and of these given back */
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
uint64_t op_result_first_id(const op_result *result);      /* row n has this one + 1 + n */
int64_t op_result_trace_duration(const op_result *result); /* nanoseconds */
void op_result_columns(const op_result *result, op_columns *out);
int op_result_is_folded(const op_result *result); /* it has the events' sums alone */
void op_result_stats(const op_result *result, op_stats *out);
const op_thread_info *op_result_threads(const op_result *result, uint32_t *count);
void op_result_name_thread(op_result *result, uint32_t index, const char *name);
const op_step *op_result_steps(const op_result *result, uint32_t *count);
/* Thread by thread, outermost first. */
const op_open_call *op_result_open_calls(const op_result *result, uint32_t *count);
const uint32_t *op_result_args(const op_result *result, uint64_t *words);
/* 1 + word offset into op_result_args() of what an op gave back; 0: none, or not recorded. */
uint32_t op_result_outputs(const op_result *result, uint64_t event);
/* The name of a torch op's overload; 0: it has none, or it was not recorded. */
uint32_t op_result_overload(const op_result *result, uint64_t event);
/* As op_result_outputs(), of what was counted in an event: named values. */
uint32_t op_result_counters(const op_result *result, uint64_t event);
/* 1 + index of the innermost frame that an event was begun in; 0: not recorded. */
uint32_t op_result_cpp_stack(const op_result *result, uint64_t event);
/* All frames. The first call looks up what they are called; they belong to the result. */
int op_result_cpp_frames(const op_result *result, const op_cpp_frame **frames, uint64_t *count);
enum op_group_by {
    OP_GROUP_BY_NAME = 0,
    OP_GROUP_BY_SHAPES = 1,
    OP_GROUP_BY_INPUTS = 2, /* shapes, strides, types and values */
    OP_GROUP_BY_OVERLOAD = 4
};
/* `by` is bits of op_group_by; events are also apart by so many innermost calls of their stacks, and
 * the lines these were at (two lines may read as one entry: rows of one stack, if rarely).
 * Rows in the order of their first start. `samples` is an array of rows x steps for each column of
 * op_group_column(), one after the other.
 * Both belong to the result until the next call. */
int op_result_groups(op_result *result, int by, uint32_t stack_depth, const op_group **rows,
                     uint64_t *count, const int64_t **samples);
/* What a column of the samples is called, and the member of op_group that is its sum over all events.
 * NULL: there are no more. */
const char *op_group_column(uint32_t index);
/* What devices did for an op, with all that ran inside it. Times are nanoseconds. */
enum op_use_of_device {
    OP_USE_KERNELS,
    OP_USE_LAUNCHES, /* calls; one may run many kernels (a graph) */
    OP_USE_MEMSETS,
    OP_USE_SYNCS, /* calls in which the host waited for a device */
    OP_USE_COPIES,
    OP_USE_COPIES_HTOD, /* and so on in the order of op_copy_direction (device_calls.h) */
    OP_USE_COPIES_HTOH = OP_USE_COPIES_HTOD + 4,
    OP_USE_BYTES,
    OP_USE_BYTES_HTOD,
    OP_USE_BYTES_HTOH = OP_USE_BYTES_HTOD + 4,
    OP_USE_BUSY,  /* union of the work's intervals on each device, summed over devices */
    OP_USE_IDLE,  /* of OP_USE_SPAN: no work ran, whoever launched it; summed over devices */
    OP_USE_SPAN,  /* how long it took on the host, times the devices in use */
    OP_USE_DEPTH, /* kernels launched and not begun yet, summed over OP_USE_DEPTHS moments */
    OP_USE_DEPTHS,
    OP_USE_MEASURES /* how many these are */
};
typedef struct op_device_use {
    /* By row of the groups: which of `values` it is, 0 for none. The first of `values` is the whole. */
    const uint32_t *of_group;
    const uint32_t *launcher; /* by row of work: 1 + the row that launched most of it; 0: none known */
    /* count x OP_USE_MEASURES x (steps + 1); the last is what belongs to no step. */
    const int64_t *values;
    uint64_t count;
    uint64_t unmatched_launches; /* no kernel of theirs is on record */
    uint64_t unmatched_kernels;  /* of steps; their launch is not on record */
    uint64_t untimed;            /* work without a time */
    uint64_t unsized;            /* copies of which the bytes are not known */
    uint64_t undirected;         /* copies of which it is not known from where to where */
} op_device_use;
/* Of the rows that op_result_groups() gave last. Belongs to the result until that is asked again. */
int op_result_device_use(op_result *result, op_device_use *out);
/* Each device's spans of all windows, device by device; `bounds` are from and to of each window, from
 * the trace's start. They belong to the result until the next call. */
int op_result_device_spans(op_result *result, const int64_t *bounds, uint64_t windows,
                           const op_device_span **spans, uint64_t *count);
/* The rows of kernels in which ranks wait for each other, and that have a time. They belong to the
 * result until the next call. */
int op_result_collectives(op_result *result, const uint32_t **rows, uint64_t *count);
/* Whether a kernel of this name is one of those. */
int op_name_is_collective(const char *utf8, size_t length);
/* FLOPs of each row of the last groups by inputs; negative: they are not known. Rows made from then
 * on have sums of them. */
#define OP_FLOPS_BY_FORMULA -2 /* as the collector's own formula has them */
int op_result_count_flops(op_result *result, const int64_t *per_row, uint64_t count);
/* Two columns, NULL before they are counted: FLOPs of each event with what runs inside it, and of
 * those what is not also in an event around it. */
const int64_t *op_result_flops(const op_result *result);
/* Kineto's word for one of torch's scalar types (c10::ScalarType); "" for one that it has no word for.
 */
const char *op_dtype_name(uint32_t dtype);
/* 1: the event is memory taken or given back, and *out says what; 0: it is not. */
int op_result_memory(const op_result *result, uint64_t event, op_memory *out);
/* 1: the event is of that kind, and was recorded here. */
int op_result_device_call(const op_result *result, uint64_t event, op_device_call *out);
int op_result_device_work(const op_result *result, uint64_t event, op_device_work *out);
/* Made when first asked for; it belongs to the result. */
int op_result_memory_columns(op_result *result, op_memory_columns *out);
/* One entry a step, and one more for the whole window. Belongs to the result until the next call. */
int op_result_memory_use(op_result *result, int on_device, const op_memory_use **rows);
/* All sites of the process. NULL: none were noted in the window. */
const op_site *op_result_sites(const op_result *result, uint32_t *count);
/* Each op and site once. */
const op_called_from *op_result_called_from(const op_result *result, uint64_t *count);
/* At most `limit` nodes, the costliest, each with its caller. Belongs to the result. */
int op_result_paths(op_result *result, uint32_t limit, const op_path **nodes, uint64_t *count);
/* cffi: end */

#ifdef __cplusplus
}
#endif
#endif
