/* As Kineto (torch/csrc/profiler/collection.cpp, generateForwardBackwardLinks): ops with a sequence
 * number are taken in order of end. Of the forward ops with the same thread and number, the last to
 * begin made the autograd node; the first backward op with them is the node. */
#include "export/flows.h"

#include "core/error.h"
#include "core/fault.h"
#include "result/forwards.h"

typedef struct numbered {
    int64_t end_ns;
    uint32_t row;
} numbered;

typedef struct matching {
    const op_result *r;
    numbered *ops;
    uint64_t count;
    op_forwards forwards;
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

static void note_forward(const matching *m, uint32_t row) {
    const op_columns *c = &m->r->columns;
    uint64_t thread = m->r->threads[c->thread[row]].torch_thread;
    if (thread == 0)
        return;
    uint32_t *known = op_forwards_add(&m->forwards, thread, c->sequence_nr[row]);
    if (*known == 0 || c->start_ns[row] >= c->start_ns[*known - 1])
        *known = row + 1;
}

static void link_backward(const matching *m, uint32_t row, op_flows *out) {
    const op_columns *c = &m->r->columns;
    uint32_t forward = op_forwards_take(&m->forwards, c->forward_thread[row], c->sequence_nr[row]);
    if (forward != OP_NO_FORWARD)
        out->of_row[forward] = out->of_row[row] = ++out->count;
}

static int match(matching *m, op_flows *out) {
    const op_columns *c = &m->r->columns;
    uint64_t at = 0;
    int rc = op_forwards_open(&m->forwards, m->count);
    if (rc != OP_OK)
        return rc;
    m->ops = op_malloc(m->count * sizeof *m->ops);
    out->of_row = op_calloc(c->count, sizeof *out->of_row);
    if (!m->ops || !out->of_row)
        return op_error_set(OP_ENOMEM, "no memory to match backward ops");
    for (uint64_t row = 0; row < c->count; row++)
        if (is_numbered(c, row))
            m->ops[at++] = (numbered){.end_ns = end_of(m->r, row), .row = (uint32_t)row};
    qsort(m->ops, m->count, sizeof *m->ops, earliest_end_first);
    for (uint64_t i = 0; i < m->count; i++)
        if (c->forward_thread[m->ops[i].row] == 0)
            note_forward(m, m->ops[i].row);
        else
            link_backward(m, m->ops[i].row, out);
    return OP_OK;
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
    op_forwards_close(&m.forwards);
    free(m.ops);
    if (rc != OP_OK) {
        free(out->of_row);
        out->of_row = NULL;
    }
    return rc;
}
