#include "views.h"

#include "error.h"
#include "fault.h"
#include "names.h"

#include <string.h>

enum { RAN_VIEWS = 1, RAN_OTHERS = 2, RAN_VIEW_NODE = 4 };

static bool is_op(const op_writable *w, uint64_t row) {
    return w->kind[row] == OP_TORCH && w->scope[row] != OP_SCOPE_USER;
}

/* Of what autograd runs nothing has a schema. A node goes by what it runs; one without a forward op
 * (AccumulateGrad) keeps a gradient. */
static bool is_node(const op_writable *w, uint64_t row) {
    return w->forward_thread[row] != 0 && w->sequence_nr[row] >= 0;
}

/* The engine's wrapper around a node goes by the node alone: which wrapper adds up the gradients of a
 * tensor that was used twice follows from the order of the nodes. */
static bool is_wrapper(const op_writable *w, uint64_t row) {
    return is_node(w, row) && w->scope[row] != OP_SCOPE_BACKWARD;
}

/* What torch's own code records in an op, as it does of aten::detach: no op, and of no namespace. */
static bool is_part_of_view(const op_writable *w, uint64_t row) {
    if (w->parent[row] < 0 || !(w->flags[w->parent[row]] & OP_FLAG_VIEW))
        return false;
    uint32_t length;
    const char *text = op_names_text(w->name[row], &length);
    return memchr(text, ':', length) == NULL;
}

/* Whether it is a view, by what ran in it. What is around it is not settled yet. */
static bool is_view(const op_writable *w, uint64_t row, uint8_t ran) {
    if (is_wrapper(w, row))
        return ran & RAN_VIEW_NODE;
    if (ran & RAN_OTHERS)
        return false;
    return w->flags[row] & OP_FLAG_VIEW || (is_node(w, row) && ran & RAN_VIEWS) ||
           is_part_of_view(w, row);
}

/* Children stand behind their parents. What is no op (a range, a call) passes on what ran in it. */
int op_views_settle(const op_result *r, const op_writable *w) {
    uint64_t n = r->columns.count, first = 0;
    while (first < n && !(w->flags[first] & OP_FLAG_VIEW))
        first++;
    if (first == n)
        return OP_OK;
    uint8_t *ran = op_calloc(n, 1);
    if (!ran)
        return op_error_set(OP_ENOMEM, "no memory to tell views from other ops");
    for (uint64_t row = n; row-- > 0;) {
        if (is_op(w, row)) {
            bool found = is_view(w, row, ran[row]);
            w->flags[row] = (uint8_t)((w->flags[row] & ~OP_FLAG_VIEW) | (found ? OP_FLAG_VIEW : 0));
            ran[row] = found ? RAN_VIEWS | (is_node(w, row) ? RAN_VIEW_NODE : 0) : RAN_OTHERS;
        }
        if (w->parent[row] >= 0)
            ran[w->parent[row]] |= ran[row];
    }
    free(ran);
    return OP_OK;
}
