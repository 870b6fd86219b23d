/* Which event launched what: a call and its work share a correlation number, an op and what started
 * inside it an External id. */
#include "import/correlate.h"

#include "core/error.h"
#include "core/event.h"
#include "core/fault.h"
#include "opprof.h"

#include <string.h>

#define SHARED ((uint32_t)1 << 31) /* several processes have the number: each counts from 1 */
#define ANY UINT32_MAX             /* process */

typedef struct index {
    const op_read_event *events;
    const op_lane *lanes; /* NULL: all events are of one process */
    uint32_t *slots;      /* by number: event + 1, perhaps SHARED; 0: empty */
    uint32_t *of_process; /* by process and number: event + 1; NULL: no number is SHARED */
    uint64_t mask;
} index_by_link;

static uint64_t hash_of(int64_t link, uint32_t process) {
    uint64_t h = ((uint64_t)link ^ (uint64_t)process << 32) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 32;
}

static bool is_call(const op_read_event *e) { return e->kind == OP_RUNTIME || e->kind == OP_DRIVER; }

static bool is_op(const op_read_event *e) { return e->kind == OP_TORCH || e->kind == OP_RANGE; }

static uint32_t process_of(const index_by_link *index, const op_read_event *e) {
    return index->lanes ? index->lanes[e->lane].pid : 0;
}

static uint32_t *find(const index_by_link *index, int64_t link, uint32_t process) {
    uint32_t *slots = process == ANY ? index->slots : index->of_process;
    for (uint64_t at = hash_of(link, process) & index->mask;; at = (at + 1) & index->mask) {
        uint32_t slot = slots[at] & ~SHARED;
        const op_read_event *e = slot ? &index->events[slot - 1] : NULL;
        if (!e || (e->link == link && (process == ANY || process_of(index, e) == process)))
            return &slots[at];
    }
}

/* Work on a device may have the device for a process. 0: unknown. */
static uint32_t launcher_of(const index_by_link *index, const op_read_event *work, int64_t link) {
    uint32_t found = *find(index, link, ANY);
    return found & SHARED ? *find(index, link, process_of(index, work)) : found;
}

/* The first event with each number: a driver call inside a runtime call has the same and begins
 * later. Returns whether several processes have a number. */
static bool fill(index_by_link *index, uint64_t count, bool (*belongs)(const op_read_event *)) {
    bool by_process = index->of_process != NULL, is_shared = false;
    for (uint64_t i = 0; i < count; i++) {
        const op_read_event *e = &index->events[i];
        if (e->link < 0 || !belongs(e))
            continue;
        uint32_t process = process_of(index, e);
        uint32_t *slot = find(index, e->link, by_process ? process : ANY);
        if (!*slot) {
            *slot = (uint32_t)i + 1;
        } else if (process_of(index, &index->events[(*slot & ~SHARED) - 1]) != process) {
            *slot |= SHARED;
            is_shared = true;
        }
    }
    return is_shared;
}

static int build(const op_read_events *read, bool (*belongs)(const op_read_event *),
                 index_by_link *out) {
    uint64_t count = 0, slots = 16;
    for (uint64_t i = 0; i < read->count; i++)
        count += read->events[i].link >= 0 && belongs(&read->events[i]);
    while (slots < count * 2)
        slots *= 2;
    out->events = read->events;
    out->mask = slots - 1;
    out->slots = op_calloc(slots, sizeof *out->slots);
    bool ok = out->slots != NULL;
    if (ok && fill(out, read->count, belongs)) {
        out->of_process = op_calloc(slots, sizeof *out->of_process);
        ok = out->of_process != NULL;
        if (ok)
            fill(out, read->count, belongs);
    }
    return ok ? OP_OK : op_error_set(OP_ENOMEM, "no memory to find what launched what");
}

static void release(index_by_link *index) {
    free(index->slots);
    free(index->of_process);
}

static uint64_t link_to(op_read_events *read, const index_by_link *calls, const index_by_link *ops) {
    uint64_t unknown = 0;
    for (uint64_t i = 0; i < read->count; i++) {
        op_read_event *e = &read->events[i];
        if (e->kind < OP_KERNEL)
            continue;
        if (ops && e->link == 0 && e->sequence_nr > 0)
            e->link = launcher_of(ops, e, e->sequence_nr);
        else if (!ops)
            e->link = e->link >= 0 ? launcher_of(calls, e, e->link) : 0;
        unknown += e->link == 0 && e->sequence_nr > 0;
    }
    return unknown;
}

/* By correlation first: some versions write that number as External id, which then is not an op's. */
int op_correlate(op_read_events *read, const op_lane *lanes) {
    index_by_link calls = {.lanes = lanes}, ops = {.lanes = lanes};
    int rc = build(read, is_call, &calls);
    if (rc == OP_OK && link_to(read, &calls, NULL) && (rc = build(read, is_op, &ops)) == OP_OK)
        link_to(read, NULL, &ops);
    release(&calls);
    release(&ops);
    if (rc != OP_OK)
        return rc;
    for (uint64_t i = 0; i < read->count; i++)
        if (read->events[i].kind >= OP_KERNEL)
            read->events[i].sequence_nr = -1;
    return OP_OK;
}
