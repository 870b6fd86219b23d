/* Which event launched what: a call and its work share a correlation number, an op and what started
 * inside it an External id. */
#include "import/correlate.h"

#include "core/error.h"
#include "core/event.h"
#include "core/fault.h"
#include "opprof.h"

#include <string.h>

typedef struct index {
    uint32_t *slots; /* event + 1; 0: empty */
    uint64_t mask;
} index_by_link;

static uint64_t hash_of(int64_t link) {
    uint64_t h = (uint64_t)link * 0x9e3779b97f4a7c15u;
    return h ^ h >> 32;
}

static bool is_call(const op_read_event *e) { return e->kind == OP_RUNTIME || e->kind == OP_DRIVER; }

static bool is_op(const op_read_event *e) { return e->kind == OP_TORCH || e->kind == OP_RANGE; }

static uint32_t *find(const index_by_link *index, const op_read_event *events, int64_t link) {
    uint64_t at = hash_of(link) & index->mask;
    while (index->slots[at] && events[index->slots[at] - 1].link != link)
        at = (at + 1) & index->mask;
    return &index->slots[at];
}

/* The first event with each number: a driver call inside a runtime call has the same and begins
 * later. */
static int build(const op_read_events *read, bool (*belongs)(const op_read_event *),
                 index_by_link *out) {
    uint64_t count = 0, slots = 16;
    for (uint64_t i = 0; i < read->count; i++)
        count += read->events[i].link >= 0 && belongs(&read->events[i]);
    while (slots < count * 2)
        slots *= 2;
    out->mask = slots - 1;
    out->slots = op_calloc(slots, sizeof *out->slots);
    if (!out->slots)
        return op_error_set(OP_ENOMEM, "no memory to find what launched what");
    for (uint64_t i = 0; i < read->count; i++) {
        const op_read_event *e = &read->events[i];
        if (e->link < 0 || !belongs(e))
            continue;
        uint32_t *slot = find(out, read->events, e->link);
        if (!*slot)
            *slot = (uint32_t)i + 1;
    }
    return OP_OK;
}

static uint64_t link_to(op_read_events *read, const index_by_link *calls, const index_by_link *ops) {
    uint64_t unknown = 0;
    for (uint64_t i = 0; i < read->count; i++) {
        op_read_event *e = &read->events[i];
        if (e->kind < OP_KERNEL)
            continue;
        if (ops && e->link == 0 && e->sequence_nr > 0)
            e->link = *find(ops, read->events, e->sequence_nr);
        else if (!ops)
            e->link = e->link >= 0 ? *find(calls, read->events, e->link) : 0;
        unknown += e->link == 0 && e->sequence_nr > 0;
    }
    return unknown;
}

/* By correlation first: some versions write that number as External id, which then is not an op's. */
int op_correlate(op_read_events *read) {
    index_by_link calls, ops;
    int rc = build(read, is_call, &calls);
    if (rc != OP_OK)
        return rc;
    uint64_t unknown = link_to(read, &calls, NULL);
    free(calls.slots);
    if (unknown && (rc = build(read, is_op, &ops)) == OP_OK) {
        link_to(read, NULL, &ops);
        free(ops.slots);
    }
    for (uint64_t i = 0; i < read->count; i++)
        if (read->events[i].kind >= OP_KERNEL)
            read->events[i].sequence_nr = -1;
    return rc;
}
