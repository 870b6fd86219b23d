#include "result/device_time.h"

#include "core/error.h"
#include "core/fault.h"
#include "result/result.h"

/* Ops are charged with this work. Waiting is not work, and a device range only contains work. */
bool op_is_device_work(uint8_t kind) {
    return kind == OP_KERNEL || kind == OP_MEMCPY || kind == OP_MEMSET;
}

/* Torch charges the op, not the calls that led to the launch. */
static bool is_means(const op_columns *c, int32_t row) {
    switch (c->kind[row]) {
    case OP_RUNTIME:
    case OP_DRIVER:
    case OP_PYTHON_CALL:
    case OP_C_CALL:
    case OP_MEMORY:
    case OP_MARK:
        return true;
    default:
        return (c->flags[row] & OP_FLAG_ASYNC) != 0;
    }
}

int32_t op_device_owner(const op_columns *c, int32_t launcher) {
    int32_t row = launcher;
    while (row >= 0 && is_means(c, row))
        row = c->parent[row];
    return row >= 0 ? row : launcher;
}

static void charge(const op_columns *c, op_device_time *out) {
    for (uint64_t row = 0; row < c->count; row++) {
        if (!op_is_on_device(c->kind[row]) || c->duration_ns[row] < 0)
            continue;
        out->self_ns[row] = out->total_ns[row] = c->duration_ns[row];
        if (c->launcher[row] < 0 || !op_is_device_work(c->kind[row]))
            continue;
        int32_t owner = op_device_owner(c, c->launcher[row]);
        out->self_ns[owner] += c->duration_ns[row];
        out->total_ns[owner] += c->duration_ns[row];
    }
    /* In preorder a parent precedes its children, so backwards each total is complete when it is
     * added. */
    for (uint64_t row = c->count; row-- > 0;)
        if (c->parent[row] >= 0 && !(c->flags[row] & OP_FLAG_ASYNC))
            out->total_ns[c->parent[row]] += out->total_ns[row];
}

int op_device_time_sum(const op_result *r, op_device_time *out) {
    const op_columns *c = &r->columns;
    bool any = false;
    for (uint64_t row = 0; row < c->count && !any; row++)
        any = op_is_on_device(c->kind[row]);
    *out = (op_device_time){0};
    if (!any)
        return OP_OK;
    out->total_ns = op_calloc(c->count, sizeof(int64_t));
    out->self_ns = op_calloc(c->count, sizeof(int64_t));
    if (!out->total_ns || !out->self_ns) {
        op_device_time_free(out);
        return op_error_set(OP_ENOMEM, "no memory to sum up device time");
    }
    charge(c, out);
    return OP_OK;
}

void op_device_time_free(op_device_time *times) {
    free(times->total_ns);
    free(times->self_ns);
    *times = (op_device_time){0};
}
