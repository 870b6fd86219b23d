/* A finished window: its columns and what is derived from them. */
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

/* The content of one chunk, wherever it is stored. */
typedef struct op_raw {
    uint32_t thread, sequence, os_tid, count, arg_words;
    uint64_t torch_thread;
    const op_event *events;
    const uint32_t *args; /* its argument words */
    uint32_t args_at;     /* word offset of args[0] in the chunk */
} op_raw;

/* Totals of an event including all that ran inside it, and of what ran inside. */
typedef struct op_work {
    int64_t bytes, inner_bytes;       /* of the tensors passed to ops */
    int64_t flops, inner_flops;       /* by formula */
    int64_t retained, inner_retained; /* bytes allocated in it and in use at the end of its step */
    uint32_t nodes, inner_nodes;      /* added to autograd's graph */
    uint32_t called_from;             /* 1 + its row of the result's `called_from`; 0: none */
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
    uint64_t first_id; /* see op_result_id() */
    uint32_t pid;      /* of the process that recorded it */
    op_stats stats;
    op_group *groups;
    uint64_t group_count;
    int64_t *samples;
    op_path *paths;
    bool folded; /* the events were discarded; `groups` has their sums by name, next to `all_paths` */
    op_path *all_paths;
    uint64_t path_count;   /* of these */
    uint64_t memory_count; /* events of kind OP_MEMORY */
    uint32_t *input_group; /* by event: its row of the last groups by inputs, or OP_NO_GROUP */
    uint64_t input_group_count;
    uint32_t *device_group; /* by event: its row of the last groups, or OP_NO_GROUP; NULL: no devices */
    uint64_t device_group_count;
    struct op_device_sums *device_sums; /* NULL: not requested */
    op_device_span *device_spans;       /* the last requested; so are `collectives` */
    uint32_t *collectives;
    int64_t *
        flops; /* two columns: including what runs inside; not counted further out. NULL: not counted */
    int64_t *memory; /* four columns; NULL: not requested yet */
    op_memory_use *memory_use;
    op_work *work;      /* by row; NULL: not recorded */
    uint32_t *outputs;  /* by row: 1 + word offset of the op's outputs; NULL: not recorded */
    uint32_t *counters; /* the same for the values counted in it; NULL: none */
    struct op_cpp_stacks *cpp_stacks; /* NULL: none were recorded */
    op_name_loans names;              /* names on loan, of an imported trace */
    struct op_imported *imported;     /* of an imported trace; else NULL */
    struct op_cuda_device *devices;   /* CUDA devices, if recorded here */
    uint32_t device_count;
    op_site *sites; /* NULL: not recorded */
    uint32_t site_count;
    op_called_from *called_from;
    uint64_t called_from_count;
    op_open_call *open_calls;
    uint32_t open_call_count;
};

/* Input of the columns. Arrays are sorted by thread and sequence. */
typedef struct op_source {
    const op_raw *raw;
    uint32_t raw_count;
    const op_timeline *timeline; /* at least two pairs */
    const op_steps *steps;
    const op_block *blocks; /* retained by steps (retained.h) */
    uint64_t block_count;
    const uint32_t *names; /* id in the file -> id here; NULL: the same */
    uint32_t name_count;
    struct op_cuda_window *cuda; /* NULL: not recorded */
    void *mapping;               /* file mapping that contains chunks; NULL: none */
    size_t mapping_bytes;
    uint64_t most_events; /* beyond this only sums are made, if possible (fold.h); 0: no limit */
} op_source;

op_result *op_result_new(void);
/* Gives the rows ids that are new in the process, as torch does; returns the result. */
op_result *op_result_number(op_result *r);
static inline uint64_t op_result_id(const op_result *r, uint64_t row) { return r->first_id + row + 1; }
int op_tree_build(const op_source *source, op_result *result);
/* source.c: called by the above. */
int op_source_copy_args(const op_source *source, op_result *result);
int op_source_list_threads(const op_source *source, op_result *result);
/* While columns are built, the flags of an OP_MEMORY event; once all exist, settles their bytes. */
uint8_t op_memory_note(op_result *result, uint64_t event);
int op_memory_settle(op_result *result, uint8_t *flags);
/* Call this once the steps of rows are known. `room` is the capacity in rows. */
int op_memory_retain(op_result *result, uint64_t room);
/* Whether it runs inside an event of its name and step, whose numbers include its own. */
bool op_is_recursive(const op_result *result, uint64_t event);
/* Bytes allocated in an event and in use at its step's end; 0 inside one of the same name. */
int64_t op_memory_retained(const op_result *result, uint64_t event);
int op_raw_order(const void *a, const void *b); /* for qsort */

/* The columns, writable for the collector's own code. */
typedef struct op_writable {
    int64_t *start_ns, *duration_ns, *self_ns, *sequence_nr;
    uint32_t *name, *thread, *forward_thread, *args;
    int32_t *parent, *step, *launcher;
    uint16_t *line;
    uint8_t *kind, *flags, *scope;
    uint64_t room; /* capacity in rows */
} op_writable;

/* Allocates one block for all columns of `n` events. The result owns it. */
int op_columns_allocate(op_result *r, op_writable *w, uint64_t n);
/* The same with capacity for about `more` that will follow, which saves copying all columns. */
int op_columns_reserve(op_result *r, op_writable *w, uint64_t n, uint64_t more);
/* Makes room for `more` rows after the existing ones, which are kept. */
int op_columns_extend(op_result *r, op_writable *w, uint64_t more);
void op_columns_move(const op_writable *w, uint64_t from, uint64_t to); /* copies a row over another */
void op_columns_free(op_result *r);

#endif
