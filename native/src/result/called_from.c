#include "result/called_from.h"

#include "core/fault.h"
#include "core/grow.h"
#include "core/names.h"
#include "result/device_time.h"

#include <string.h>

#define MOST_AHEAD (1 << 24) /* numbers beyond the last known one; a thread counts up by one */

/* ---- forward ops ---------------------------------------------------------------------------- */

static op_forward_sites *thread_of(op_calling *c, uint64_t thread, int64_t number) {
    for (uint32_t i = 0; i < c->forward_count; i++)
        if (c->forwards[i].thread == thread)
            return &c->forwards[i];
    op_forward_sites *more = op_realloc(c->forwards, (c->forward_count + 1) * sizeof *more);
    if (!more)
        return NULL;
    c->forwards = more;
    more[c->forward_count] = (op_forward_sites){.thread = thread, .first = number};
    return &more[c->forward_count++];
}

/* If ops share a number, the last one made the node. */
static bool note_forward(op_calling *c, uint64_t thread, int64_t number, uint16_t site) {
    op_forward_sites *f = thread_of(c, thread, number);
    if (!f)
        return false;
    int64_t at = number - f->first;
    if (at < 0 || at > (int64_t)f->count + MOST_AHEAD)
        return true;
    if ((uint64_t)at >= f->room) {
        uint64_t room = f->room * 2 > (uint64_t)at + 1 ? f->room * 2 : (uint64_t)at + 64;
        uint16_t *sites = op_realloc(f->sites, room * sizeof *sites);
        if (!sites)
            return false;
        f->sites = sites;
        f->room = room;
    }
    if ((uint64_t)at >= f->count) {
        memset(f->sites + f->count, 0, ((uint64_t)at - f->count) * sizeof *f->sites);
        f->count = (uint64_t)at + 1;
    }
    f->sites[at] = site;
    return true;
}

static uint16_t site_of_forward(const op_calling *c, uint64_t thread, int64_t number) {
    for (uint32_t i = 0; i < c->forward_count; i++) {
        const op_forward_sites *f = &c->forwards[i];
        if (f->thread == thread)
            return number >= f->first && (uint64_t)(number - f->first) < f->count
                       ? f->sites[number - f->first]
                       : 0;
    }
    return 0;
}

static bool is_call(uint8_t kind) { return kind == OP_PYTHON_CALL || kind == OP_C_CALL; }

/* An event without a site of its own was called from where the event around it was. So was a call,
 * which has a line instead of a site. */
static void inherit(const op_segment *s, uint64_t row) {
    const op_writable *w = s->w;
    if (is_call(w->kind[row]))
        w->line[row] = 0;
    if (!w->line[row])
        s->state[row] |= OP_ROW_INHERITS;
    if (s->state[row] & OP_ROW_INHERITS && w->parent[row] >= 0)
        w->line[row] = w->line[w->parent[row]];
}

bool op_calling_note(op_calling *c, const op_segment *s) {
    const op_writable *w = s->w;
    for (uint64_t row = s->first_new; row < s->count; row++) {
        inherit(s, row);
        bool is_forward = w->sequence_nr[row] >= 0 && w->forward_thread[row] == 0;
        if (is_forward && w->line[row] &&
            !note_forward(c, s->r->threads[w->thread[row]].torch_thread, w->sequence_nr[row],
                          w->line[row]))
            return false;
    }
    return true;
}

void op_calling_settle(const op_calling *c, const op_segment *s) {
    const op_writable *w = s->w;
    for (uint64_t row = s->first_new; row < s->count; row++) {
        inherit(s, row);
        if (w->forward_thread[row] == 0 || w->sequence_nr[row] < 0)
            continue;
        uint16_t site = site_of_forward(c, w->forward_thread[row], w->sequence_nr[row]);
        if (site)
            w->line[row] = site;
    }
}

/* ---- sums ----------------------------------------------------------------------------------- */

static bool is_called_from_a_line(uint8_t kind) {
    return !is_call(kind) && kind != OP_MARK && kind != OP_MEMORY && !op_is_on_device(kind);
}

bool op_calling_add(op_calling *c, const op_result *r, uint64_t row) {
    const op_columns *columns = &r->columns;
    uint32_t site = columns->line[row];
    bool is_known = site && site <= r->site_count; /* a later one was added during a peek */
    if (!is_known || columns->step[row] < 0 || !is_called_from_a_line(columns->kind[row]))
        return true;
    uint32_t name = op_names_group(columns->name[row]), *known = op_key_map_at(&c->by_site, name, site);
    if (!known || !OP_HAS_ROOM(c->rows, c->count, c->room, 256))
        return false;
    if (!*known) {
        c->rows[c->count] = (op_called_from){.name = name, .site = site};
        *known = (uint32_t)++c->count;
    }
    op_called_from *called = &c->rows[*known - 1];
    called->count++;
    if (r->work) {
        r->work[row].called_from = *known;
        called->bytes += r->work[row].bytes;
        called->nodes += r->work[row].nodes;
        if (r->work[row].flops && !op_is_recursive(r, row))
            called->flops += r->work[row].flops;
    }
    called->retained += op_memory_retained(r, row);
    return true;
}

void op_calling_finish(op_calling *c, op_result *r) {
    r->called_from = c->rows;
    r->called_from_count = c->count;
    c->rows = NULL;
}

void op_calling_release(op_calling *c) {
    for (uint32_t i = 0; i < c->forward_count; i++)
        free(c->forwards[i].sites);
    free(c->forwards);
    free(c->rows);
    op_key_map_free(&c->by_site);
}

const op_called_from *op_result_called_from(const op_result *r, uint64_t *count) {
    *count = r->called_from_count;
    return r->called_from;
}

const op_site *op_result_sites(const op_result *r, uint32_t *count) {
    *count = r->site_count;
    return r->sites;
}
