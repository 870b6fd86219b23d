/* A finished window: columns and what is derived from them. */
#ifndef OP_RESULT_H
#define OP_RESULT_H

#include "core/clock.h"
#include "core/event.h"
#include "core/names.h"
#include "core/steps.h"
#include "opprof.h"
#include "sources/retained.h"

#include <stdbool.h>

#define OP_NO_GROUP UINT32_MAX

/* One chunk's content, wherever it lies. */
typedef struct op_raw {
    uint32_t thread, sequence, os_tid, count, arg_words;
    uint64_t torch_thread;
    const op_event *events;
    const uint32_t *args; /* its argument words */
    uint32_t args_at;     /* word offset in the chunk of args[0] */
} op_raw;

/* Of an event with all that ran inside it, and inside alone. */
typedef struct op_work {
    int64_t bytes, inner_bytes;       /* of tensors that ops were given */
    int64_t flops, inner_flops;       /* by formula */
    int64_t retained, inner_retained; /* bytes taken in it and left in use by its step */
    uint32_t nodes, inner_nodes;      /* of autograd's graph */
} op_work;

struct op_result {
    op_columns columns; /* pointers into `storage` */
    void *storage;
    uint32_t *args;
    uint64_t arg_words;
    op_thread_info *threads;
    uint32_t thread_count;
    op_step *steps;
    uint32_t step_count;
    int64_t trace_start, trace_duration;
    uint64_t first_id; /* of its rows: op_result_id */
    op_stats stats;
    op_group *groups;
    uint64_t group_count;
    int64_t *samples;
    op_path *paths;
    bool folded; /* its events were let go: `groups` has their sums by name, and `all_paths` */
    op_path *all_paths;
    uint64_t path_count;   /* of these */
    uint64_t memory_count; /* events of kind OP_MEMORY */
    uint32_t *input_group; /* by event: its row of the last groups by inputs, or OP_NO_GROUP */
    uint64_t input_group_count;
    uint32_t *device_group; /* by event: its row of the last groups, or OP_NO_GROUP; NULL: no devices */
    uint64_t device_group_count;
    struct op_device_sums *device_sums; /* NULL: not asked for */
    op_device_span *device_spans;       /* what was asked for last, as `collectives` */
    uint32_t *collectives;
    int64_t *flops;  /* two columns: of the event, and what of it counts; NULL: not counted */
    int64_t *memory; /* four columns; NULL: not asked for yet */
    op_memory_use *memory_use;
    op_work *work;      /* by row; NULL: not asked for */
    uint32_t *outputs;  /* by row: 1 + word offset of what the op gave back; NULL: not asked for */
    uint32_t *counters; /* the same, of what was counted in it; NULL: nothing */
    struct op_cpp_stacks *cpp_stacks; /* NULL: none were recorded */
    op_name_loans names;              /* of what was read: beside the process's */
    struct op_imported *imported;     /* of what was read from a file; NULL: of nothing else */
    struct op_cuda_device *devices;   /* of CUDA, where it was recorded here */
    uint32_t device_count;
    op_site *sites; /* NULL: not noted */
    uint32_t site_count;
    op_called_from *called_from;
    uint64_t called_from_count;
    op_open_call *open_calls;
    uint32_t open_call_count;
};

/* What the columns are made from. Arrays are sorted by thread and sequence. */
typedef struct op_source {
    const op_raw *raw;
    uint32_t raw_count;
    const op_timeline *timeline; /* at least two pairs */
    const op_steps *steps;
    const op_block *blocks; /* that steps left in use (retained.h) */
    uint64_t block_count;
    const uint32_t *names; /* id in the file -> id here; NULL: the same */
    uint32_t name_count;
    struct op_cuda_window *cuda; /* NULL: it was not recorded */
    void *mapping;               /* of a file that chunks lie in; NULL: none do */
    size_t mapping_bytes;
    uint64_t most_events; /* of more only sums are made, where that can be (fold.h); 0: no limit */
} op_source;

op_result *op_result_new(void);
/* Gives its rows ids that no row of the process has had, as torch's are; the result. */
op_result *op_result_number(op_result *r);
static inline uint64_t op_result_id(const op_result *r, uint64_t row) { return r->first_id + row + 1; }
int op_tree_build(const op_source *source, op_result *result);
/* source.c: by the above. */
int op_source_copy_args(const op_source *source, op_result *result);
int op_source_list_threads(const op_source *source, op_result *result);
/* While the columns are made: of an event of kind OP_MEMORY its flags, and when all are there. */
uint8_t op_memory_note(op_result *result, uint64_t event);
int op_memory_settle(op_result *result, uint8_t *flags);
/* Once it is known which steps rows belong to. `room` is how many rows there may be. */
int op_memory_retain(op_result *result, uint64_t room);
/* Bytes of an event that were taken in it and left in use by its step. An op that runs one of its own
 * name has them once. */
int64_t op_memory_retained(const op_result *result, uint64_t event);
int op_raw_order(const void *a, const void *b); /* for qsort */

/* The columns as the collector's own code may write them. */
typedef struct op_writable {
    int64_t *start_ns, *duration_ns, *self_ns, *sequence_nr;
    uint32_t *name, *thread, *forward_thread, *args;
    int32_t *parent, *step, *launcher;
    uint16_t *line;
    uint8_t *kind, *flags, *scope;
    uint64_t room; /* rows that the block holds */
} op_writable;

/* One block for all columns of `n` events; the result's too. */
int op_columns_allocate(op_result *r, op_writable *w, uint64_t n);
/* The same, with room for `more`, about so many of which will follow: that saves copying all columns.
 */
int op_columns_reserve(op_result *r, op_writable *w, uint64_t n, uint64_t more);
/* Room for `more` after those that are filled, which stay. */
int op_columns_extend(op_result *r, op_writable *w, uint64_t more);
void op_columns_move(const op_writable *w, uint64_t from, uint64_t to); /* a row over another one */
void op_columns_free(op_result *r);

#endif
