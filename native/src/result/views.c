#include "result/views.h"

#include "core/names.h"

#include <string.h>

enum { RAN = OP_RAN_VIEWS | OP_RAN_OTHERS | OP_RAN_VIEW_NODE };

static bool is_op(const op_writable *w, uint64_t row) {
    return w->kind[row] == OP_TORCH && w->scope[row] != OP_SCOPE_USER;
}

/* Nodes run by autograd have no schema, so a node is judged by what it runs. One without a forward op
 * (AccumulateGrad) stores a gradient. */
static bool is_node(const op_writable *w, uint64_t row) {
    return w->forward_thread[row] != 0 && w->sequence_nr[row] >= 0;
}

/* The engine's wrapper around a node is judged by the node alone: which wrapper adds up the gradients
 * of a tensor used twice depends on the order of the nodes. */
static bool is_wrapper(const op_writable *w, uint64_t row) {
    return is_node(w, row) && w->scope[row] != OP_SCOPE_BACKWARD;
}

/* What torch's own code records inside an op, such as aten::detach: not an op, in no namespace. */
static bool is_part_of_view(const op_writable *w, uint64_t row) {
    if (w->parent[row] < 0 || !(w->flags[w->parent[row]] & OP_FLAG_VIEW))
        return false;
    uint32_t length;
    const char *text = op_names_text(w->name[row], &length);
    return memchr(text, ':', length) == NULL;
}

/* Whether it is a view, judged by what ran in it. The rows around it are not settled yet. */
static bool is_view(const op_writable *w, uint64_t row, uint8_t ran) {
    if (is_wrapper(w, row))
        return ran & OP_RAN_VIEW_NODE;
    if (ran & OP_RAN_OTHERS)
        return false;
    return w->flags[row] & OP_FLAG_VIEW || (is_node(w, row) && ran & OP_RAN_VIEWS) ||
           is_part_of_view(w, row);
}

static bool may_have_views(const op_segment *s) {
    for (uint64_t row = 0; row < s->count; row++)
        if (s->w->flags[row] & OP_FLAG_VIEW)
            return true;
    return s->is_open != NULL;
}

/* Children follow their parents. A row that is not an op (a range, a call) passes on what ran in it. */
void op_views_settle(const op_segment *s) {
    const op_writable *w = s->w;
    for (uint64_t row = may_have_views(s) ? s->count : 0; row-- > 0;) {
        if (op_stays(s, row))
            continue;
        uint8_t ran = s->state[row] & RAN;
        if (is_op(w, row)) {
            bool found = is_view(w, row, ran);
            w->flags[row] = (uint8_t)((w->flags[row] & ~OP_FLAG_VIEW) | (found ? OP_FLAG_VIEW : 0));
            ran = OP_RAN_OTHERS;
            if (found)
                ran = OP_RAN_VIEWS | (is_node(w, row) ? OP_RAN_VIEW_NODE : 0);
        }
        if (w->parent[row] >= 0)
            s->state[w->parent[row]] |= ran;
    }
}
