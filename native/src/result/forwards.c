#include "result/forwards.h"

#include "core/error.h"
#include "core/fault.h"

/* The op's slot, or the empty one where it belongs. At least half of the slots are empty. */
static op_forward *slot_of(const op_forwards *f, uint64_t thread, int64_t sequence) {
    uint64_t h = (thread * 0x9e3779b97f4a7c15u) ^ ((uint64_t)sequence * 0xc2b2ae3d27d4eb4fu);
    for (uint64_t i = (h ^ h >> 31) & f->mask;; i = (i + 1) & f->mask) {
        op_forward *slot = &f->slots[i];
        if (!slot->is_used || (slot->thread == thread && slot->sequence == sequence))
            return slot;
    }
}

int op_forwards_open(op_forwards *out, uint64_t count) {
    uint64_t slots = 16;
    while (slots < count * 2)
        slots *= 2;
    out->mask = slots - 1;
    out->slots = op_calloc(slots, sizeof *out->slots);
    return out->slots ? OP_OK : op_error_set(OP_ENOMEM, "no memory to match backward ops");
}

void op_forwards_close(op_forwards *f) { free(f->slots); }

uint32_t *op_forwards_add(const op_forwards *f, uint64_t thread, int64_t sequence) {
    op_forward *slot = slot_of(f, thread, sequence);
    slot->thread = thread;
    slot->sequence = sequence;
    slot->is_used = true;
    return &slot->row;
}

uint32_t op_forwards_find(const op_forwards *f, uint64_t thread, int64_t sequence) {
    return slot_of(f, thread, sequence)->row - 1;
}

uint32_t op_forwards_take(const op_forwards *f, uint64_t thread, int64_t sequence) {
    op_forward *slot = slot_of(f, thread, sequence);
    uint32_t row = slot->row - 1;
    slot->row = 0;
    return row;
}

int op_forwards_index(op_forwards *out, const op_result *r) {
    const op_columns *c = &r->columns;
    uint64_t numbered = 0;
    for (uint64_t row = 0; row < c->count; row++)
        numbered += c->sequence_nr[row] >= 0 && c->forward_thread[row] == 0;
    int rc = op_forwards_open(out, numbered);
    for (uint64_t row = 0; rc == OP_OK && row < c->count; row++) {
        if (c->sequence_nr[row] < 0 || c->forward_thread[row] != 0)
            continue;
        uint32_t *known =
            op_forwards_add(out, r->threads[c->thread[row]].torch_thread, c->sequence_nr[row]);
        if (*known == 0)
            *known = (uint32_t)row + 1;
    }
    return rc;
}
