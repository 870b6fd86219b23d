#include "backward.h"

#include "error.h"
#include "fault.h"
#include "forwards.h"
#include "names.h"

#include <string.h>

/* Torch gives the autograd node's number to the engine's wrapper around it too (Kineto does this
 * after the fact, and so do we). */
static bool lift_sequence_numbers(const op_writable *w, uint64_t n) {
    static const char wrapper[] = "autograd::engine::evaluate_function";
    bool any = false;
    for (uint64_t row = 0; row < n; row++) {
        if (w->kind[row] != OP_TORCH || w->scope[row] != OP_SCOPE_BACKWARD)
            continue;
        any = true;
        int32_t p = w->parent[row];
        if (p < 0 || w->sequence_nr[p] >= 0 || w->kind[p] != OP_TORCH)
            continue;
        uint32_t length;
        const char *text = op_names_text(w->name[p], &length);
        if (length < sizeof wrapper - 1 || memcmp(text, wrapper, sizeof wrapper - 1) != 0)
            continue;
        w->sequence_nr[p] = w->sequence_nr[row];
        w->forward_thread[p] = w->forward_thread[row];
    }
    return any;
}

/* A backward op belongs to the step of its forward, whichever thread and time it runs at, and
 * everything inside it goes along. */
static void hand_over(const op_forwards *forwards, const op_writable *w, uint64_t n, uint8_t *moved) {
    for (uint64_t row = 0; row < n; row++) {
        uint32_t from = OP_NO_FORWARD;
        if (w->forward_thread[row] != 0 && w->sequence_nr[row] >= 0)
            from = op_forwards_find(forwards, w->forward_thread[row], w->sequence_nr[row]);
        else if (w->parent[row] >= 0 && moved[w->parent[row]])
            from = (uint32_t)w->parent[row];
        if (from == OP_NO_FORWARD || w->step[from] < 0)
            continue;
        w->step[row] = w->step[from];
        w->flags[row] &= (uint8_t)~OP_FLAG_BACKGROUND;
        moved[row] = 1;
    }
}

int op_backward_settle(const op_result *r, const op_writable *w) {
    uint64_t n = r->columns.count;
    if (!lift_sequence_numbers(w, n) || r->step_count == 0)
        return OP_OK;
    op_forwards forwards;
    int rc = op_forwards_index(&forwards, r, OP_FORWARD_LAST);
    uint8_t *moved = op_calloc(n, 1);
    if (rc == OP_OK && !moved)
        rc = op_error_set(OP_ENOMEM, "no memory to match backward ops");
    if (rc == OP_OK)
        hand_over(&forwards, w, n, moved);
    free(moved);
    op_forwards_close(&forwards);
    return rc;
}
