/* A call lies in the op that was running when it began, an op in the call that made it, if the outer
 * one contains all of the inner one and neither tree breaks: without the calls, the ops' tree is that
 * of a recording without calls, and likewise the calls' tree without the ops. A range that outlives the
 * call that began it (a context manager's) therefore lies in the next outer call around all of it. */
#include "result/nest.h"

#include "core/error.h"
#include "core/fault.h"
#include "core/grow.h"

#include <string.h>

int32_t op_nest_call(op_nest *nest, uint32_t depth, uint64_t row, uint64_t first_row) {
    if (!nest->nearest)
        nest->nearest = op_calloc(UINT16_MAX + 1, sizeof *nest->nearest);
    if (!nest->nearest) {
        nest->no_memory = true;
        return -1;
    }
    uint32_t around = depth ? nest->nearest[depth - 1] : 0;
    nest->nearest[depth] = (uint32_t)row + 1;
    nest->rows++;
    return around > first_row ? (int32_t)around - 1 : -1;
}

void op_nest_before(op_nest *nest, uint32_t depth, op_open_call call) {
    if (nest->nearest)
        nest->nearest[depth] = 0;
    if (OP_HAS_ROOM(nest->open, nest->open_count, nest->open_capacity, 64))
        nest->open[nest->open_count++] = call;
    else
        nest->no_memory = true;
}

static bool is_call(const op_writable *w, int64_t row) {
    return w->kind[row] == OP_PYTHON_CALL || w->kind[row] == OP_C_CALL;
}

static bool ended_by(const op_writable *w, int64_t row, int64_t at_ns) {
    return w->duration_ns[row] >= 0 && w->start_ns[row] + w->duration_ns[row] <= at_ns;
}

/* Whether the outer row, which began first, also ends last. */
static bool holds(const op_writable *w, int64_t outer, int64_t inner) {
    if (w->duration_ns[outer] < 0)
        return true;
    return w->duration_ns[inner] >= 0 &&
           w->start_ns[inner] + w->duration_ns[inner] <= w->start_ns[outer] + w->duration_ns[outer];
}

void op_nest_skip_gap(op_nest *nest, const op_writable *w, uint32_t depth, int64_t at_ns) {
    for (uint32_t i = 0; nest->nearest && i < depth; i++)
        if (nest->nearest[i] && ended_by(w, nest->nearest[i] - 1, at_ns))
            nest->nearest[i] = 0;
}

typedef struct joining {
    const op_writable *w;
    const int32_t *own; /* parents, each within its own tree */
    int64_t call, op;   /* the innermost that began and may be open; -1: none */
    bool has_sites;     /* of events; only calls have lines */
} joining;

/* The innermost row of the other tree, from `candidate` outwards, that contains the row and lies in the
 * row's parent of its own tree; else that parent. */
static int32_t parent_across(const joining *j, int64_t row, int64_t candidate) {
    int32_t parent = j->own[row];
    while (candidate > parent &&
           !(holds(j->w, candidate, row) && (parent < 0 || holds(j->w, parent, candidate))))
        candidate = j->own[candidate];
    return candidate > parent ? (int32_t)candidate : parent;
}

/* Flags calls that end before an op that began in them, or after one that they began in. */
static void note_crossing(const joining *j, int64_t row) {
    uint8_t *flags = j->w->flags;
    if (is_call(j->w, row)) {
        if (j->op >= 0 && !holds(j->w, j->op, row))
            flags[row] |= OP_FLAG_CROSSING;
    } else if (!(flags[row] & OP_FLAG_ASYNC)) {
        for (int64_t call = j->call; call >= 0 && !holds(j->w, call, row); call = j->own[call])
            flags[call] |= OP_FLAG_CROSSING;
    }
}

/* An event's line is that of the innermost call at its begin. If the tree places the event further out,
 * it takes the line at which the outermost call in between was made. */
static void move_line_out(const joining *j, int64_t row) {
    int64_t outermost = -1;
    for (int64_t call = j->call; call > j->w->parent[row]; call = j->own[call])
        outermost = call;
    if (outermost >= 0 && j->w->line[row])
        j->w->line[row] = j->w->line[outermost];
}

static void join(joining *j, int64_t row) {
    const op_writable *w = j->w;
    while (j->call >= 0 && ended_by(w, j->call, w->start_ns[row]))
        j->call = j->own[j->call];
    while (j->op >= 0 && ended_by(w, j->op, w->start_ns[row]))
        j->op = j->own[j->op];
    note_crossing(j, row);
    if (is_call(w, row)) {
        w->parent[row] = parent_across(j, row, j->op);
        j->call = row;
    } else {
        w->parent[row] = parent_across(j, row, j->call);
        if (!j->has_sites)
            move_line_out(j, row);
        if (!(w->flags[row] & OP_FLAG_ASYNC))
            j->op = row;
    }
}

/* Siblings may overlap if a call ends inside a range that began in it. Time that two of them share is
 * subtracted from their parent once. */
static int count_self_times(const op_writable *w, uint64_t n) {
    int64_t *covered_to = op_malloc(n * sizeof *covered_to);
    if (!covered_to)
        return op_error_set(OP_ENOMEM, "no memory to count self times");
    for (uint64_t row = 0; row < n; row++) {
        covered_to[row] = w->start_ns[row];
        w->self_ns[row] =
            w->flags[row] & (OP_FLAG_ASYNC | OP_FLAG_UNFINISHED) ? 0 : w->duration_ns[row];
    }
    for (uint64_t row = 0; row < n; row++) {
        int32_t parent = w->parent[row];
        bool takes = parent >= 0 && !(w->flags[row] & (OP_FLAG_ASYNC | OP_FLAG_UNFINISHED));
        if (!takes || w->flags[parent] & (OP_FLAG_ASYNC | OP_FLAG_UNFINISHED))
            continue;
        int64_t start = w->start_ns[row], end = start + w->duration_ns[row];
        int64_t from = start > covered_to[parent] ? start : covered_to[parent];
        if (end > from) {
            w->self_ns[parent] -= end - from;
            covered_to[parent] = end;
        }
    }
    free(covered_to);
    return OP_OK;
}

int op_nest_finish(op_nest *nest, op_result *r, const op_writable *w) {
    uint64_t n = r->columns.count;
    r->open_calls = nest->open;
    r->open_call_count = nest->open_count;
    nest->open = NULL;
    if (nest->no_memory)
        return op_error_set(OP_ENOMEM, "no memory for the stack of open calls");
    if (nest->rows == 0)
        return OP_OK;
    int32_t *own = op_malloc(n * sizeof *own);
    if (!own)
        return op_error_set(OP_ENOMEM, "no memory to join ops and calls");
    memcpy(own, w->parent, n * sizeof *own);
    joining j = {.w = w, .own = own, .has_sites = r->sites != NULL};
    for (uint64_t row = 0; row < n; row++) {
        if (row == 0 || w->thread[row] != w->thread[row - 1])
            j.call = j.op = -1;
        join(&j, (int64_t)row);
    }
    free(own);
    return count_self_times(w, n);
}

void op_nest_release(op_nest *nest) {
    free(nest->nearest);
    free(nest->open);
}

const op_open_call *op_result_open_calls(const op_result *r, uint32_t *count) {
    *count = r->open_call_count;
    return r->open_calls;
}
