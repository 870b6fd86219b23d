/* Call paths: the most expensive chains of nested names. */
#include "result/paths.h"

#include "core/error.h"
#include "core/fault.h"
#include "core/grow.h"
#include "core/names.h"
#include "result/device_time.h"

#include <string.h>

/* The path that leads to the row, created if necessary; -1: no memory. */
static int32_t find_path(op_tracing *t, int32_t parent, uint32_t name) {
    uint32_t *known = op_key_map_at(&t->by_caller, (uint32_t)parent, name);
    if (!known || !OP_HAS_ROOM(t->paths, t->count, t->capacity, 1024))
        return -1;
    if (!*known) {
        t->paths[t->count] = (op_path){.parent = parent, .name = name};
        *known = (uint32_t)++t->count;
    }
    return (int32_t)*known - 1;
}

bool op_tracing_find(op_tracing *t, const op_result *r, uint64_t row) {
    const op_columns *c = &r->columns;
    t->of_row[row] = -1;
    if ((r->step_count && c->step[row] < 0) || op_is_on_device(c->kind[row]) ||
        c->kind[row] == OP_MEMORY)
        return true;
    int32_t parent = c->parent[row] < 0 ? -1 : t->of_row[c->parent[row]];
    t->of_row[row] = find_path(t, parent, op_names_group(c->name[row]));
    return t->of_row[row] >= 0;
}

void op_tracing_add(const op_tracing *t, const op_columns *c, uint64_t row) {
    if (t->of_row[row] < 0)
        return;
    op_path *path = &t->paths[t->of_row[row]];
    path->count++;
    path->self_ns += c->self_ns[row];
    path->total_ns += c->duration_ns[row] > 0 ? c->duration_ns[row] : 0;
}

void op_tracing_release(op_tracing *t) {
    free(t->paths);
    op_key_map_free(&t->by_caller);
    free(t->of_row);
}

typedef struct ranked {
    int64_t total_ns;
    uint32_t path;
} ranked;

static int costliest_first(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->total_ns != y->total_ns)
        return x->total_ns < y->total_ns ? 1 : -1;
    return (x->path > y->path) - (x->path < y->path);
}

/* Keeps the most expensive paths and all their callers. Callers precede callees, so renumbering the
 * kept ones in their old order keeps `parent` smaller than the node. */
static bool prune(op_tracing *t, uint32_t limit) {
    if (t->count <= limit)
        return true;
    ranked *rank = op_malloc(t->count * sizeof *rank);
    int32_t *place = op_calloc(t->count, sizeof *place);
    if (!rank || !place) {
        free(rank);
        free(place);
        return false;
    }
    for (uint64_t i = 0; i < t->count; i++)
        rank[i] = (ranked){.total_ns = t->paths[i].total_ns, .path = (uint32_t)i};
    qsort(rank, t->count, sizeof *rank, costliest_first);
    uint32_t kept = 0;
    for (uint64_t i = 0; i < t->count; i++) {
        uint32_t missing = 0;
        for (int32_t p = (int32_t)rank[i].path; p >= 0 && !place[p] && kept + missing <= limit;
             p = t->paths[p].parent)
            missing++;
        if (kept + missing > limit)
            continue;
        for (int32_t p = (int32_t)rank[i].path; p >= 0 && !place[p]; p = t->paths[p].parent)
            place[p] = 1;
        kept += missing;
    }
    uint32_t next = 0;
    for (uint64_t i = 0; i < t->count; i++) {
        if (!place[i])
            continue;
        op_path path = t->paths[i];
        if (path.parent >= 0)
            path.parent = place[path.parent];
        place[i] = (int32_t)next;
        t->paths[next++] = path;
    }
    t->count = next;
    free(rank);
    free(place);
    return true;
}

static bool trace_all(op_tracing *t, const op_result *r) {
    const op_columns *c = &r->columns;
    t->of_row = op_malloc(c->count * sizeof(int32_t) + 1);
    for (uint64_t row = 0; t->of_row && row < c->count; row++) {
        if (!op_tracing_find(t, r, row))
            return false;
        op_tracing_add(t, c, row);
    }
    return t->of_row != NULL;
}

static bool copy_all(op_tracing *t, const op_result *r) {
    t->paths = op_malloc(r->path_count * sizeof *t->paths + 1);
    if (t->paths && r->path_count)
        memcpy(t->paths, r->all_paths, r->path_count * sizeof *t->paths);
    t->count = r->path_count;
    return t->paths != NULL;
}

int op_result_paths(op_result *r, uint32_t limit, const op_path **nodes, uint64_t *count) {
    free(r->paths);
    op_tracing t = {0};
    bool ok = (r->folded ? copy_all(&t, r) : trace_all(&t, r)) && prune(&t, limit);
    r->paths = ok ? t.paths : NULL;
    if (ok)
        t.paths = NULL;
    op_tracing_release(&t);
    if (!ok)
        return op_error_set(OP_ENOMEM, "no memory for the call tree");
    *nodes = r->paths;
    *count = t.count;
    return OP_OK;
}
