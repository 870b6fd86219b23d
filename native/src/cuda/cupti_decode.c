/* Converts CUPTI's records to ours, in 6 to 8 ns each (mostly CUPTI's own walk). */
#include "cuda/cupti_decode.h"

#include "core/event.h"
#include "core/fault.h"
#include "core/names.h"
#include "cuda/cupti_names.h"
#include "cuda/cupti_records.h"

#include <string.h>

enum { FIRST = 1024 };

/* Room for one more in an array that doubles when it is full; NULL: drop it. */
static void *next_of(void **array, uint64_t count, uint64_t *capacity, size_t size, uint64_t *left) {
    if (count == *capacity) {
        uint64_t larger = *capacity ? *capacity * 2 : FIRST;
        if ((larger - *capacity) * size > *left)
            return NULL;
        void *grown = op_realloc(*array, larger * size);
        if (!grown)
            return NULL;
        *left -= (larger - *capacity) * size;
        *array = grown;
        *capacity = larger;
    }
    return (char *)*array + count * size;
}

typedef struct decoding {
    op_cupti_decoder *decoder;
    op_cuda_records *out;
    uint64_t left; /* bytes */
} decoding;

static op_cuda_work *next_work(decoding *d) {
    op_cuda_records *r = d->out;
    void *array = r->work;
    op_cuda_work *w = next_of(&array, r->work_count, &r->work_capacity, sizeof *w, &d->left);
    r->work = array;
    if (w)
        memset(w, 0, sizeof *w);
    else
        r->dropped++;
    return w;
}

/* From here on the record counts. */
static void keep(decoding *d, op_cuda_work *w, uint64_t start, uint64_t end) {
    if (start != 0 && end >= start) {
        w->start = op_cupti_clock_ticks(&d->decoder->clock, start);
        w->end = op_cupti_clock_ticks(&d->decoder->clock, end);
    } else {
        d->out->untimed++;
    }
    d->out->work_count++;
}

static void take_kernel(decoding *d, const op_cupti_kernel *k) {
    op_cuda_work *w = next_work(d);
    if (!w)
        return;
    if (!op_cupti_name_kernel(d->decoder, k->name, &w->name)) {
        d->out->dropped++;
        return;
    }
    w->kind = OP_KERNEL;
    w->device = k->device;
    w->stream = k->stream;
    w->work = (op_device_work){.correlation = k->correlation,
                               .context = k->context,
                               .graph_node = k->graph_node,
                               .graph = k->graph,
                               .static_shared = (uint32_t)k->static_shared,
                               .dynamic_shared = (uint32_t)k->dynamic_shared,
                               .registers = k->registers};
    for (int i = 0; i < 3; i++) {
        w->work.grid[i] = (uint32_t)k->grid[i];
        w->work.block[i] = (uint16_t)k->block[i];
    }
    keep(d, w, k->start, k->end);
}

static void take_copy(decoding *d, const op_cupti_copy *c) {
    op_cuda_work *w = next_work(d);
    if (!w)
        return;
    w->name = op_cupti_name_copy(c);
    w->kind = OP_MEMCPY;
    w->device = c->device;
    w->stream = c->stream;
    w->work = (op_device_work){.correlation = c->correlation,
                               .context = c->context,
                               .bytes = c->bytes,
                               .graph_node = c->graph_node,
                               .graph = c->graph,
                               .copy_kind = c->copy_kind,
                               .source_kind = c->source_kind,
                               .target_kind = c->target_kind};
    keep(d, w, c->start, c->end);
}

static void take_peer_copy(decoding *d, const op_cupti_peer_copy *c) {
    take_copy(d, &(op_cupti_copy){.copy_kind = c->copy_kind,
                                  .source_kind = c->source_kind,
                                  .target_kind = c->target_kind,
                                  .bytes = c->bytes,
                                  .start = c->start,
                                  .end = c->end,
                                  .device = c->device,
                                  .context = c->context,
                                  .stream = c->stream,
                                  .correlation = c->correlation,
                                  .graph_node = c->graph_node,
                                  .graph = c->graph});
}

static void take_set(decoding *d, const op_cupti_set *s) {
    op_cuda_work *w = next_work(d);
    if (!w)
        return;
    w->name = op_cupti_name_set(s->memory_kind);
    w->kind = OP_MEMSET;
    w->device = s->device;
    w->stream = s->stream;
    w->work = (op_device_work){.correlation = s->correlation,
                               .context = s->context,
                               .bytes = s->bytes,
                               .graph_node = s->graph_node,
                               .graph = s->graph,
                               .value = s->value,
                               .target_kind = (uint8_t)s->memory_kind};
    keep(d, w, s->start, s->end);
}

static void take_sync(decoding *d, const op_cupti_sync *s) {
    if (s->start >= d->decoder->until)
        return;
    op_cuda_work *w = next_work(d);
    if (!w)
        return;
    w->name = op_cupti_name_sync(s->type);
    w->kind = OP_SYNC;
    w->stream = s->stream;
    w->work = (op_device_work){.correlation = s->correlation,
                               .context = s->context,
                               .value = s->event,
                               .sync_type = (uint8_t)s->type};
    keep(d, w, s->start, s->end);
}

static void take_call(decoding *d, const op_cupti_call *c) {
    op_cupti_decoder *decoder = d->decoder;
    op_cuda_records *r = d->out;
    if (c->start >= decoder->until)
        return;
    op_cupti_call_name name;
    uint32_t domain = c->kind == OP_CUPTI_DRIVER ? OP_CUPTI_OF_DRIVER : OP_CUPTI_OF_RUNTIME;
    bool named = op_cupti_name_call(decoder, domain, c->callback, &name);
    if (named && name.ignored)
        return;
    void *array = r->calls;
    op_cuda_call *to =
        named ? next_of(&array, r->call_count, &r->call_capacity, sizeof *to, &d->left) : NULL;
    r->calls = array;
    if (!to) {
        r->dropped++;
        return;
    }
    uint64_t start = op_cupti_clock_last_tick(&decoder->clock, c->start);
    uint64_t end = op_cupti_clock_ticks(&decoder->clock, c->end);
    *to = (op_cuda_call){
        .start = start,
        .end = end < start ? start : end,
        .thread = c->thread,
        .name = name.id,
        .kind = c->kind == OP_CUPTI_DRIVER ? OP_DRIVER : OP_RUNTIME,
        .role = name.role,
        .call = {.correlation = c->correlation, .callback = c->callback, .result = c->result}};
    r->call_count++;
}

static void take_event(decoding *d, const op_cupti_event *e) {
    op_cuda_records *r = d->out;
    void *array = r->events;
    op_cuda_event *to = next_of(&array, r->event_count, &r->event_capacity, sizeof *to, &d->left);
    r->events = array;
    if (!to) {
        r->dropped++;
        return;
    }
    *to = (op_cuda_event){
        .context = e->context, .event = e->event, .stream = e->stream, .correlation = e->correlation};
    r->event_count++;
}

/* Excludes pinned and other host memory. Managed memory may be on either side; like CUPTI, it counts
 * for the device that was current. */
static bool is_of_device(const op_cupti_memory *m) {
    return m->memory_kind == OP_CUPTI_ON_DEVICE || m->memory_kind == OP_CUPTI_ARRAY ||
           m->memory_kind == OP_CUPTI_MANAGED;
}

static void take_memory(decoding *d, const op_cupti_memory *m) {
    op_cuda_records *r = d->out;
    if (m->timestamp >= d->decoder->until || !is_of_device(m) || !m->address)
        return;
    void *array = r->memory;
    op_cuda_memory *to = next_of(&array, r->memory_count, &r->memory_capacity, sizeof *to, &d->left);
    r->memory = array;
    if (!to) {
        r->dropped++;
        return;
    }
    int64_t given_back = m->bytes ? -(int64_t)m->bytes : OP_BYTES_UNKNOWN;
    *to = (op_cuda_memory){.at = op_cupti_clock_ticks(&d->decoder->clock, m->timestamp),
                           .address = m->address,
                           .bytes = m->operation == OP_CUPTI_ALLOCATED ? (int64_t)m->bytes : given_back,
                           .correlation = m->correlation,
                           .device = m->device};
    r->memory_count++;
}

static void take(decoding *d, const op_cupti_record *record) {
    switch (record->kind) {
    case OP_CUPTI_KERNEL:
        take_kernel(d, (const void *)record);
        break;
    case OP_CUPTI_RUNTIME:
    case OP_CUPTI_DRIVER:
        take_call(d, (const void *)record);
        break;
    case OP_CUPTI_MEMCPY:
        take_copy(d, (const void *)record);
        break;
    case OP_CUPTI_PEER_COPY:
        take_peer_copy(d, (const void *)record);
        break;
    case OP_CUPTI_MEMSET:
        take_set(d, (const void *)record);
        break;
    case OP_CUPTI_SYNC:
        take_sync(d, (const void *)record);
        break;
    case OP_CUPTI_EVENT:
        take_event(d, (const void *)record);
        break;
    case OP_CUPTI_MEMORY:
        take_memory(d, (const void *)record);
        break;
    case OP_CUPTI_OVERHEAD: {
        const op_cupti_overhead *o = (const void *)record;
        d->out->overhead_ns += o->end > o->start ? o->end - o->start : 0;
        break;
    }
    default: /* a kind that another client enabled */
        break;
    }
}

void op_cupti_decode(op_cupti_decoder *decoder, uint8_t *data, size_t valid, op_cuda_records *out) {
    uint64_t used = out->call_capacity * sizeof *out->calls + out->work_capacity * sizeof *out->work +
                    out->memory_capacity * sizeof *out->memory +
                    out->event_capacity * sizeof *out->events;
    decoding d = {.decoder = decoder,
                  .out = out,
                  .left = used < decoder->most_bytes ? decoder->most_bytes - used : 0};
    op_cupti_record *record = NULL;
    int rc;
    while (!(rc = decoder->library->cupti.ActivityGetNextRecord(data, valid, &record)))
        take(&d, record);
    out->dropped += rc != OP_CUPTI_MAX_LIMIT_REACHED; /* it is unknown how many were to follow */
}

void op_cuda_records_clear(op_cuda_records *r) {
    free(r->calls);
    free(r->work);
    free(r->memory);
    free(r->events);
    *r = (op_cuda_records){0};
}
