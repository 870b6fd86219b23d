#include "session/walk.h"

#include "core/error.h"
#include "core/fault.h"
#include "core/fields.h"
#include "core/names.h"
#include "core/prefault.h"
#include "cuda/cuda_args.h"
#include "cuda/cuda_window.h"
#include "result/cpp_stacks.h"
#include "result/inputs.h"
#include "result/work.h"
#include "sources/retained.h"

/* The record below it, or the nearest one further down if that is async. */
static int32_t parent_of(const op_walk *k, uint32_t depth, uint64_t first_row) {
    uint32_t row = depth ? k->nearest[depth - 1] : 0;
    return row > first_row ? (int32_t)(row - 1) : -1;
}

static void place_in_step(op_walk *k, uint32_t os_tid, uint64_t start, uint64_t row) {
    const op_steps *steps = k->source->steps;
    uint32_t before = k->step;
    while (k->step < steps->count && steps->marks[k->step].start <= start)
        k->step++;
    k->w.step[row] = -1;
    if (k->step == 0)
        return;
    const op_step_mark *mark = &steps->marks[k->step - 1];
    if (k->step != before)
        k->takes_part = op_step_has_thread(mark, os_tid);
    if (mark->end && start >= mark->end)
        return;
    if (k->takes_part)
        k->w.step[row] = (int32_t)k->step - 1;
    else
        k->w.flags[row] |= OP_FLAG_BACKGROUND;
}

static void read_torch_args(op_walk *k, const op_raw *raw, const uint32_t *block, uint64_t row) {
    op_inputs inputs;
    if (!op_inputs_of(block, raw->args + raw->arg_words, &inputs))
        return;
    if (k->w.sequence_nr[row] >= 0) /* a node without a forward (AccumulateGrad) names a thread too */
        k->w.forward_thread[row] = block[1];
    if (!op_work_note(k->result, row, block, raw->args + raw->arg_words, k->w.room))
        k->no_memory = true;
}

/* Blocks read from a file contain its ids; the result's copy gets ours. */
static void rename_args(const op_walk *k, uint32_t args) {
    const op_source *s = k->source;
    uint32_t *block = k->result->args + args - 1;
    const uint32_t *limit = k->result->args + k->result->arg_words;
    if (s->names) {
        op_fields_rename(block, limit, s->names, s->name_count);
        op_inputs_rename(block, limit, s->names, s->name_count);
    }
}

static uint32_t name_here(const op_source *s, uint32_t name) {
    if (!s->names)
        return name;
    return name < s->name_count ? s->names[name] : OP_NAME_NONE;
}

/* Not an event: it is unknown where it began, only what it contains. */
static void add_open_call(op_walk *k, const op_raw *raw, const op_event *e) {
    uint64_t end = __atomic_load_n(&e->end, __ATOMIC_RELAXED);
    uint32_t line = k->line;
    op_nest_before(&k->calls, e->depth,
                   (op_open_call){.thread = raw->thread,
                                  .name = name_here(k->source, e->name),
                                  .line = e->line,
                                  .end_ns = end ? op_tick_map_ns(&k->time, &line, end) : -1});
}

/* Not an event either: its block belongs to the op around it, in a column that few results need. */
static void add_to_op(op_walk *k, uint32_t **column, const op_raw *raw, const op_event *e,
                      uint64_t first_row) {
    int32_t op = parent_of(k, e->depth, first_row);
    if (op < 0 || e->args < raw->args_at || e->args >= raw->args_at + raw->arg_words)
        return;
    if (!*column)
        *column = op_calloc(k->result->columns.count, sizeof **column);
    if (!*column) {
        k->no_memory = true;
        return;
    }
    (*column)[op] = 1 + k->arg_base + (e->args - raw->args_at);
    if (e->kind == OP_COUNTERS)
        rename_args(k, (*column)[op]);
}

static void put_record(op_walk *k, const op_raw *raw, const op_event *e, uint64_t row) {
    op_writable *w = &k->w;
    uint64_t end = __atomic_load_n(&e->end, __ATOMIC_RELAXED);
    uint8_t flags = __atomic_load_n(&e->flags, __ATOMIC_RELAXED);
    uint32_t ends_on = k->line;
    w->start_ns[row] = op_tick_map_ns(&k->time, &k->line, e->start);
    w->duration_ns[row] = end ? op_tick_map_ns(&k->time, &ends_on, end) - w->start_ns[row] : -1;
    if (end && w->duration_ns[row] < 0)
        w->duration_ns[row] = 0;
    w->self_ns[row] = end && !(flags & OP_FLAG_ASYNC) ? w->duration_ns[row] : 0;
    w->name[row] = name_here(k->source, e->name);
    w->thread[row] = raw->thread;
    /* A damaged session file may contain other kinds, which no reader knows. */
    w->kind[row] = e->kind >= OP_RANGE && e->kind <= OP_DEVICE_RANGE ? e->kind : OP_RANGE;
    w->scope[row] = flags & OP_SCOPE_MASK;
    w->flags[row] = (uint8_t)((flags & OP_FLAG_ASYNC) | (end ? 0 : OP_FLAG_UNFINISHED));
    if (e->kind == OP_TORCH && w->scope[row] != OP_SCOPE_USER && flags & OP_FLAG_ALIASES)
        w->flags[row] |= OP_FLAG_VIEW; /* unless something else runs in it */
    bool numbered = e->kind == OP_TORCH && e->aux != OP_NO_SEQUENCE;
    w->sequence_nr[row] = numbered ? (int64_t)e->aux : -1;
    w->forward_thread[row] = 0;
    w->launcher[row] = -1;
    w->args[row] = 0;
    w->line[row] = e->line;
    if (k->result->work)
        k->result->work[row] = (op_work){0};
}

/* Credits blocks retained by steps, which are in the order of the thread's records. A block without its
 * record, as after a flight recorder forgot it, belongs to nobody. */
static void take_blocks(op_walk *k, const op_event *e, uint64_t row) {
    while (k->block < k->blocks_end && k->block->start < e->start)
        k->block++;
    for (; k->block < k->blocks_end && k->block->start == e->start; k->block++) {
        op_work *work = op_work_of(k->result, k->w.room);
        if (work)
            work[row].retained += k->block->bytes;
        k->no_memory = k->no_memory || !work;
    }
}

static void take_self_time(op_walk *k, uint64_t row) {
    const op_writable *w = &k->w;
    if (w->parent[row] >= 0 && !(w->flags[row] & (OP_FLAG_ASYNC | OP_FLAG_UNFINISHED)))
        w->self_ns[w->parent[row]] -= w->duration_ns[row];
}

/* A CUDA call, inserted by cuda_calls.c: it contains only calls of its own kind. */
static void add_cuda_call(op_walk *k, const op_raw *raw, const op_event *e, uint64_t first_row) {
    uint64_t row = k->row++;
    put_record(k, raw, e, row);
    bool nested = k->cuda_row >= first_row && e->end <= k->cuda_end;
    k->w.parent[row] = nested ? (int32_t)k->cuda_row : parent_of(k, e->depth, first_row);
    k->w.args[row] = (uint32_t)(1 + k->cuda_args + (uint64_t)e->aux * OP_CUDA_CALL_WORDS);
    k->source->cuda->row_of[e->aux] = (uint32_t)row;
    if (!nested) {
        k->cuda_row = row;
        k->cuda_end = e->end;
    }
    take_self_time(k, row);
    place_in_step(k, raw->os_tid, e->start, row);
}

/* It belongs to the op around its call, and to that call's step. */
static void add_device_memory(op_walk *k, const op_raw *raw, const op_event *e, uint64_t first_row) {
    const op_cuda_window *cuda = k->source->cuda;
    op_writable *w = &k->w;
    uint64_t row = k->row++, call = cuda->row_of[cuda->memory.caller[e->aux]];
    put_record(k, raw, e, row);
    w->kind[row] = OP_MEMORY;
    w->parent[row] = parent_of(k, e->depth, first_row);
    w->args[row] = (uint32_t)(1 + k->cuda_args + op_cuda_words_before_memory(cuda) +
                              (uint64_t)e->aux * OP_CUDA_MEMORY_WORDS);
    w->step[row] = w->step[call];
    w->flags[row] |= (w->flags[call] & OP_FLAG_BACKGROUND) | op_memory_note(k->result, row);
}

/* The stack of the preceding event. */
static void add_stack(op_walk *k, const op_raw *raw, const op_event *e, uint64_t first_row) {
    bool has_args = e->args >= raw->args_at && e->args < raw->args_at + raw->arg_words;
    const uint32_t *block = has_args ? k->result->args + k->arg_base + (e->args - raw->args_at) : NULL;
    int rc = OP_OK;
    if (e->kind == OP_MODULE)
        rc = op_cpp_stacks_file(k->result, name_here(k->source, e->name), block);
    else if (k->last > first_row && e->depth == k->depth + 1)
        rc = op_cpp_stacks_read(k->result, e, raw->thread, k->last - 1, block);
    k->no_memory = k->no_memory || rc != OP_OK;
}

static bool follows_alone(uint8_t kind) {
    return kind == OP_RANGE || kind == OP_TORCH || kind == OP_ITT || kind == OP_NVTX || kind == OP_MARK;
}

static void add_event(op_walk *k, const op_raw *raw, const op_event *e, uint64_t first_row) {
    op_writable *w = &k->w;
    if (k->fold && !follows_alone(e->kind)) {
        k->cannot_fold = true;
        return;
    }
    if (e->kind == OP_STACK || e->kind == OP_MODULE) {
        add_stack(k, raw, e, first_row);
        return;
    }
    if (e->kind == OP_OUTPUTS || e->kind == OP_COUNTERS) {
        op_result *r = k->result;
        add_to_op(k, e->kind == OP_OUTPUTS ? &r->outputs : &r->counters, raw, e, first_row);
        return;
    }
    bool is_call = e->kind == OP_PYTHON_CALL || e->kind == OP_C_CALL;
    if (is_call && e->flags & OP_FLAG_BEFORE) {
        add_open_call(k, raw, e);
        return;
    }
    if (k->source->cuda && (e->kind == OP_RUNTIME || e->kind == OP_DRIVER)) {
        add_cuda_call(k, raw, e, first_row);
        return;
    }
    if (k->source->cuda && e->kind == OP_DEVICE_MEMORY) {
        add_device_memory(k, raw, e, first_row);
        return;
    }
    uint64_t row = k->row++;
    k->last = row + 1;
    k->depth = e->depth;
    put_record(k, raw, e, row);
    take_blocks(k, e, row);
    if (e->args >= raw->args_at && e->args < raw->args_at + raw->arg_words) {
        read_torch_args(k, raw, raw->args + (e->args - raw->args_at), row);
        if (!k->fold) {
            w->args[row] = 1 + k->arg_base + (e->args - raw->args_at);
            rename_args(k, w->args[row]);
        }
    }
    w->parent[row] =
        is_call ? op_nest_call(&k->calls, e->depth, row, first_row) : parent_of(k, e->depth, first_row);
    if (e->kind == OP_MEMORY) /* contains nothing */
        w->flags[row] |= op_memory_note(k->result, row);
    else if (!is_call)
        k->nearest[e->depth] =
            1 + (w->flags[row] & OP_FLAG_ASYNC ? (uint32_t)w->parent[row] : (uint32_t)row);
    take_self_time(k, row);
    place_in_step(k, raw->os_tid, e->start, row);
}

/* Chunks before this one are missing: a flight recorder forgot them, or they were torn. Rows that had
 * ended by then contain nothing that follows. */
static void skip_gap(op_walk *k, const op_raw *raw) {
    if (!raw->count)
        return;
    const op_event *first = &raw->events[0];
    uint32_t line = k->line;
    int64_t at_ns = op_tick_map_ns(&k->time, &line, first->start);
    for (uint32_t depth = 0; depth < first->depth; depth++) {
        uint32_t row = k->nearest[depth];
        if (row && k->w.duration_ns[row - 1] >= 0 &&
            k->w.start_ns[row - 1] + k->w.duration_ns[row - 1] <= at_ns)
            k->nearest[depth] = 0;
    }
    op_nest_skip_gap(&k->calls, &k->w, first->depth, at_ns);
}

static void begin_thread(op_walk *k, uint32_t thread) {
    const op_source *s = k->source;
    const op_block *end = s->blocks + s->block_count;
    k->block = s->blocks;
    while (k->block < end && k->block->thread < thread)
        k->block++;
    k->blocks_end = k->block;
    while (k->blocks_end < end && k->blocks_end->thread == thread)
        k->blocks_end++;
    k->line = 0;
    k->step = 0;
    k->cuda_end = 0;
}

static int walk_chunk(op_walk *k, const op_raw *raw, uint64_t first_row) {
    for (uint32_t j = 0; j < raw->count; j++) {
        int rc = k->fold ? op_fold_rows(k->fold, &k->row, k->nearest, raw->events[j].depth) : OP_OK;
        if (rc == OP_OK && k->row == k->w.room) {
            k->result->columns.count = k->row;
            rc = op_columns_extend(k->result, &k->w, k->row);
        }
        if (rc != OP_OK)
            return rc;
        add_event(k, raw, &raw->events[j], first_row);
    }
    return OP_OK;
}

int op_walk_threads(op_walk *k) {
    const op_source *s = k->source;
    uint32_t index = 0;
    uint64_t first_row = 0;
    int rc = OP_OK;
    for (uint32_t i = 0; rc == OP_OK && i < s->raw_count; i++) {
        const op_raw *raw = &s->raw[i];
        if (i == 0) {
            begin_thread(k, raw->thread);
        } else if (raw->thread != s->raw[i - 1].thread) {
            if (k->fold && (rc = op_fold_thread(k->fold, &k->row, k->nearest)) != OP_OK)
                return rc;
            index++;
            begin_thread(k, raw->thread);
            first_row = k->row;
        } else if (raw->sequence > s->raw[i - 1].sequence + 1) {
            skip_gap(k, raw);
        }
        op_raw numbered = *raw;
        numbered.thread = index;
        rc = walk_chunk(k, &numbered, first_row);
        k->arg_base += raw->arg_words;
        if (k->fold)
            op_prefault_forget(s->mapping, s->mapping_bytes);
    }
    if (rc == OP_OK && k->fold)
        rc = op_fold_thread(k->fold, &k->row, k->nearest);
    /* A parent without an end has no duration, so it has no self time. */
    for (uint64_t row = 0; row < k->row; row++)
        if (k->w.flags[row] & (OP_FLAG_UNFINISHED | OP_FLAG_ASYNC))
            k->w.self_ns[row] = 0;
    if (rc == OP_OK && k->no_memory)
        rc = op_error_set(OP_ENOMEM, "no memory for the inputs, outputs or stacks of ops");
    return rc;
}
