#include "result/work.h"

#include "core/fault.h"
#include "result/inputs.h"

#include <string.h>

op_work *op_work_of(op_result *r, uint64_t room) {
    if (!r->work)
        r->work = op_calloc(room + 1, sizeof *r->work);
    return r->work;
}

bool op_is_recursive(const op_result *r, uint64_t row) {
    const op_columns *c = &r->columns;
    bool is_users = c->scope[row] == OP_SCOPE_USER;
    for (int32_t around = c->parent[row]; around >= 0; around = c->parent[around])
        if (c->name[around] == c->name[row] && c->step[around] == c->step[row] &&
            (c->scope[around] == OP_SCOPE_USER) == is_users)
            return true;
    return false;
}

bool op_work_note(op_result *r, uint64_t row, const uint32_t *block, const uint32_t *limit,
                  uint64_t room) {
    const uint32_t *token = op_inputs_work(block, limit);
    if (!token)
        return true;
    if (!op_work_of(r, room))
        return false;
    memcpy(&r->work[row].bytes, token + 1, sizeof r->work[row].bytes);
    r->work[row].nodes = *token >> 8;
    int64_t flops = op_inputs_flops(block, limit);
    r->work[row].flops = flops > 0 ? flops : 0;
    return true;
}

/* An op that runs others has the larger of its own inputs and their total: `linear` reads what the
 * `addmm` in it reads, and only once. A view reads nothing. */
void op_work_settle(const op_segment *s) {
    op_work *work = s->r->work;
    for (uint64_t row = work ? s->count : 0; row-- > 0;) {
        if (op_stays(s, row))
            continue;
        op_work *own = &work[row];
        int32_t parent = s->w->parent[row];
        if (own->bytes < own->inner_bytes || s->w->flags[row] & OP_FLAG_VIEW)
            own->bytes = own->inner_bytes;
        if (own->nodes < own->inner_nodes)
            own->nodes = own->inner_nodes;
        if (own->flops == 0) /* a formula covers all that is inside */
            own->flops = own->inner_flops;
        own->retained += own->inner_retained;
        if (parent >= 0) {
            work[parent].inner_retained += own->retained;
            work[parent].inner_bytes += own->bytes;
            work[parent].inner_nodes += own->nodes;
            work[parent].inner_flops += own->flops;
        }
    }
}
