/* As Kineto (torch/csrc/profiler/collection.cpp, generateForwardBackwardLinks): ops with a sequence
 * number are taken in order of end. Of the forward ops with the same thread and number, the last to
 * begin made the autograd node; the first backward op with them is the node. */
#include "export/flows.h"

#include "core/error.h"
#include "core/fault.h"
#include "core/key_map.h"

typedef struct numbered {
    int64_t end_ns;
    uint32_t row;
} numbered;

typedef struct matching {
    const op_result *r;
    numbered *ops;
    uint64_t count;
    op_key_map forwards; /* row + 1, by thread and number; 0: taken */
} matching;

static int earliest_end_first(const void *a, const void *b) {
    const numbered *x = a, *y = b;
    if (x->end_ns != y->end_ns)
        return x->end_ns < y->end_ns ? -1 : 1;
    return (x->row < y->row) - (x->row > y->row); /* inner ones end first */
}

static bool is_numbered(const op_columns *c, uint64_t row) {
    return c->sequence_nr[row] >= 0 && c->kind[row] == OP_TORCH;
}

static int64_t end_of(const op_result *r, uint64_t row) {
    int64_t duration = r->columns.duration_ns[row];
    return duration < 0 ? r->trace_duration : r->columns.start_ns[row] + duration;
}

static bool note_forward(matching *m, uint32_t row) {
    const op_columns *c = &m->r->columns;
    uint64_t thread = m->r->threads[c->thread[row]].torch_thread;
    if (thread == 0)
        return true;
    uint32_t *known = op_key_map_at(&m->forwards, thread, (uint64_t)c->sequence_nr[row]);
    if (!known)
        return false;
    if (*known == 0 || c->start_ns[row] >= c->start_ns[*known - 1])
        *known = row + 1;
    return true;
}

static void link_backward(const matching *m, uint32_t row, op_flows *out) {
    const op_columns *c = &m->r->columns;
    uint32_t *known =
        op_key_map_find(&m->forwards, c->forward_thread[row], (uint64_t)c->sequence_nr[row]);
    if (!known || *known == 0)
        return;
    out->of_row[*known - 1] = out->of_row[row] = ++out->count;
    *known = 0;
}

static int no_memory(void) { return op_error_set(OP_ENOMEM, "no memory to match backward ops"); }

static int match(matching *m, op_flows *out) {
    const op_columns *c = &m->r->columns;
    uint64_t at = 0;
    bool worked = true;
    m->ops = op_malloc(m->count * sizeof *m->ops);
    out->of_row = op_calloc(c->count, sizeof *out->of_row);
    if (!m->ops || !out->of_row)
        return no_memory();
    for (uint64_t row = 0; row < c->count; row++)
        if (is_numbered(c, row))
            m->ops[at++] = (numbered){.end_ns = end_of(m->r, row), .row = (uint32_t)row};
    qsort(m->ops, m->count, sizeof *m->ops, earliest_end_first);
    for (uint64_t i = 0; i < m->count && worked; i++)
        if (c->forward_thread[m->ops[i].row] == 0)
            worked = note_forward(m, m->ops[i].row);
        else
            link_backward(m, m->ops[i].row, out);
    return worked ? OP_OK : no_memory();
}

int op_flows_find(op_flows *out, const op_result *r) {
    const op_columns *c = &r->columns;
    matching m = {.r = r};
    bool any_backward = false;
    *out = (op_flows){0};
    for (uint64_t row = 0; row < c->count; row++)
        if (is_numbered(c, row)) {
            m.count++;
            any_backward |= c->forward_thread[row] != 0;
        }
    int rc = any_backward ? match(&m, out) : OP_OK;
    op_key_map_free(&m.forwards);
    free(m.ops);
    if (rc != OP_OK) {
        free(out->of_row);
        out->of_row = NULL;
    }
    return rc;
}
