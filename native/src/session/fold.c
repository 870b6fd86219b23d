#include "session/fold.h"

#include "core/error.h"
#include "core/fault.h"
#include "core/names.h"
#include "result/views.h"
#include "result/work.h"

#include <string.h>

static int no_memory(void) { return op_error_set(OP_ENOMEM, "no memory to sum events up"); }

static bool grow(void *array, uint64_t count, size_t size) {
    void *bigger = op_realloc(*(void **)array, count * size);
    if (bigger)
        *(void **)array = bigger;
    return bigger != NULL;
}

/* As much as the columns have. */
static bool make_room(op_fold *f) {
    uint64_t room = f->rows.w->room;
    if (room == f->room)
        return true;
    if (!grow(&f->state, room, sizeof *f->state) || !grow(&f->is_open, room, sizeof *f->is_open) ||
        !grow(&f->place, room, sizeof *f->place) ||
        !grow(&f->paths.of_row, room, sizeof *f->paths.of_row))
        return false;
    f->room = room;
    f->rows.state = f->state;
    f->rows.is_open = f->is_open;
    return true;
}

int op_fold_open(op_fold *f, op_result *r, op_writable *w, uint64_t most) {
    *f = (op_fold){.groups = {.r = r}, .rows = {.r = r, .w = w}, .most = most};
    op_grouping_by_name(&f->groups);
    return OP_OK;
}

void op_fold_release(op_fold *f) {
    op_grouping_release(&f->groups);
    op_tracing_release(&f->paths);
    op_numbers_free(&f->numbers);
    op_calling_release(&f->calling);
    free(f->state);
    free(f->is_open);
    free(f->place);
}

#define MOST_WAITING 1000 /* rows; they are searched before each record */

/* Whether an open wrapper of the engine has not run its node yet, so that its step is unknown. */
static bool waits_for_node(const op_fold *f, const uint32_t *nearest, uint32_t depth) {
    for (uint32_t i = 0; i < depth; i++)
        if (nearest[i] && op_backward_waits(f->rows.w, nearest[i] - 1))
            return true;
    return false;
}

static int count_rows(op_fold *f) {
    const op_segment *s = &f->rows;
    const op_writable *w = s->w;
    op_result *r = f->groups.r;
    op_backward_number(s);
    op_backward_move(s, &f->numbers);
    op_views_settle(s);
    op_work_settle(s);
    if (r->sites)
        op_calling_settle(&f->calling, s);
    for (uint64_t row = 0; row < s->count; row++) {
        uint32_t group;
        if (row >= s->first_new &&
            !(op_tracing_find(&f->paths, r, row) && op_grouping_find(&f->groups, row, &group)))
            return no_memory();
        if (op_stays(s, row))
            continue;
        if (w->flags[row] & (OP_FLAG_UNFINISHED | OP_FLAG_ASYNC))
            w->self_ns[row] = 0;
        if (!op_grouping_add(&f->groups, row))
            return no_memory();
        op_tracing_add(&f->paths, &r->columns, row);
        if (r->sites && !op_calling_add(&f->calling, r, row))
            return no_memory();
        r->stats.events++;
        r->stats.names_overflowed += w->name[row] == OP_NAME_OVERFLOW;
    }
    return OP_OK;
}

/* Records the steps and sites of autograd's numbers. */
static int take_numbers(op_fold *f) {
    if (f->groups.r->sites && !op_calling_note(&f->calling, &f->rows))
        return no_memory();
    return op_numbers_take(&f->numbers, &f->rows);
}

/* Keeps only the open rows, in their order. */
static void keep_open(op_fold *f) {
    const op_writable *w = f->rows.w;
    uint64_t kept = 0;
    for (uint64_t row = 0; row < f->rows.count; row++) {
        if (!f->is_open[row])
            continue;
        f->place[row] = (uint32_t)kept;
        op_columns_move(w, row, kept);
        if (f->groups.r->work)
            f->groups.r->work[kept] = f->groups.r->work[row];
        int32_t parent = w->parent[kept];
        /* -1 also if chunks between them are missing */
        w->parent[kept] = parent >= 0 && f->is_open[parent] ? (int32_t)f->place[parent] : -1;
        f->state[kept] = f->state[row];
        f->paths.of_row[kept] = f->paths.of_row[row];
        kept++;
    }
    f->rows.first_new = kept;
}

static int fold(op_fold *f, uint64_t *count, uint32_t *nearest, uint32_t depth) {
    if (!make_room(f))
        return no_memory();
    op_segment *s = &f->rows;
    s->count = f->groups.r->columns.count = *count;
    memset(f->state + s->first_new, 0, *count - s->first_new);
    memset(f->is_open, 0, *count);
    for (uint32_t i = 0; i < depth; i++)
        if (nearest[i])
            f->is_open[nearest[i] - 1] = 1;
    int rc = f->counts ? count_rows(f) : take_numbers(f);
    if (rc != OP_OK)
        return rc;
    keep_open(f);
    for (uint32_t i = 0; i < depth; i++)
        if (nearest[i])
            nearest[i] = f->place[nearest[i] - 1] + 1;
    memset(nearest + depth, 0, (UINT16_MAX + 1 - depth) * sizeof *nearest);
    *count = s->first_new;
    return OP_OK;
}

int op_fold_rows(op_fold *f, uint64_t *count, uint32_t *nearest, uint32_t depth) {
    if (*count - f->rows.first_new < f->most)
        return OP_OK;
    bool may_wait = f->counts && *count - f->rows.first_new < f->most + MOST_WAITING;
    f->rows.count = *count;
    op_backward_number(&f->rows);
    if (may_wait && waits_for_node(f, nearest, depth))
        return OP_OK;
    return fold(f, count, nearest, depth);
}

int op_fold_thread(op_fold *f, uint64_t *count, uint32_t *nearest) {
    return *count ? fold(f, count, nearest, 0) : OP_OK;
}

void op_fold_begin_counting(op_fold *f) {
    op_numbers_sort(&f->numbers);
    f->counts = true;
}

int op_fold_finish(op_fold *f) {
    op_result *r = f->groups.r;
    if (!op_grouping_finish(&f->groups))
        return no_memory();
    r->all_paths = f->paths.paths;
    r->path_count = f->paths.count;
    op_calling_finish(&f->calling, r);
    f->paths.paths = NULL;
    op_columns_free(r);
    r->folded = true;
    return OP_OK;
}
