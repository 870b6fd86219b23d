/* The device work that a call starts, and its records. */
#include "fake.h"

#include <stdlib.h>
#include <string.h>

/* ---- names: kept forever, like the real library's ----------------------------------------- */

typedef struct name {
    struct name *next;
    char text[];
} name;

static const char *kept(const char *text) {
    static name *names[256];
    uint32_t hash = 2166136261u;
    for (const char *c = text; *c; c++)
        hash = (hash ^ (uint8_t)*c) * 16777619u;
    name **at = &names[hash % 256];
    for (name *n = *at; n; n = n->next)
        if (strcmp(n->text, text) == 0)
            return n->text;
    name *n = malloc(sizeof *n + strlen(text) + 1);
    if (!n)
        fake_die("no memory for a name");
    n->next = *at;
    *at = n;
    return strcpy(n->text, text);
}

/* ---- records - --------------------------------------------------------------------------- */

static fake_record kernel_record(const fake_activity *a) {
    fake_record r = fake_blank();
    r.kernel.kind = fake_kind_is_on(CUPTI_ACTIVITY_KIND_KERNEL) ? CUPTI_ACTIVITY_KIND_KERNEL
                                                                : CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    r.kernel.registersPerThread = (uint16_t)a->registers;
    r.kernel.deviceId = a->device;
    r.kernel.contextId = a->context;
    r.kernel.streamId = a->stream;
    r.kernel.gridX = (int32_t)a->grid[0];
    r.kernel.gridY = (int32_t)a->grid[1];
    r.kernel.gridZ = (int32_t)a->grid[2];
    r.kernel.blockX = (int32_t)a->block[0];
    r.kernel.blockY = (int32_t)a->block[1];
    r.kernel.blockZ = (int32_t)a->block[2];
    r.kernel.staticSharedMemory = (int32_t)a->static_shared;
    r.kernel.dynamicSharedMemory = (int32_t)a->dynamic_shared;
    r.kernel.name = kept(a->name);
    return r;
}

/* The host's memory is pageable here. */
static uint8_t memory_kind(bool of_host) {
    return of_host ? CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE : CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
}

static fake_record copy_record(const fake_activity *a) {
    fake_record r = fake_blank();
    bool within_host = a->copy_kind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOH;
    r.copy.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
    r.copy.copyKind = (uint8_t)a->copy_kind;
    r.copy.srcKind = memory_kind(within_host || a->copy_kind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD);
    r.copy.dstKind = memory_kind(within_host || a->copy_kind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOH);
    r.copy.bytes = a->bytes;
    r.copy.deviceId = a->device;
    r.copy.contextId = a->context;
    r.copy.streamId = a->stream;
    return r;
}

static fake_record peer_record(const fake_activity *a) {
    fake_record r = fake_blank();
    r.peer.kind = CUPTI_ACTIVITY_KIND_MEMCPY2;
    r.peer.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
    r.peer.bytes = a->bytes;
    r.peer.deviceId = r.peer.srcDeviceId = a->device;
    r.peer.contextId = r.peer.srcContextId = a->context;
    r.peer.streamId = a->stream;
    r.peer.dstDeviceId = a->peer;
    r.peer.dstContextId = a->peer + 1;
    return r;
}

static fake_record set_record(const fake_activity *a) {
    fake_record r = fake_blank();
    r.set.kind = CUPTI_ACTIVITY_KIND_MEMSET;
    r.set.bytes = a->bytes;
    r.set.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
    r.set.deviceId = a->device;
    r.set.contextId = a->context;
    r.set.streamId = a->stream;
    return r;
}

static fake_record graph_record(const fake_activity *a) {
    fake_record r = fake_blank();
    r.graph.kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE;
    r.graph.deviceId = r.graph.endDeviceId = a->device;
    r.graph.contextId = r.graph.endContextId = a->context;
    r.graph.streamId = a->stream;
    r.graph.graphId = a->graph;
    return r;
}

/* The same four fields, at their place in each kind. */
static void set_times(fake_record *r, uint32_t correlation_id, uint64_t start, uint64_t end) {
    switch ((uint32_t)r->kind) {
#define TIMES(part)                                                                                    \
    r->part.correlationId = correlation_id;                                                            \
    r->part.start = start;                                                                             \
    r->part.end = end
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        TIMES(copy);
        break;
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
        TIMES(peer);
        break;
    case CUPTI_ACTIVITY_KIND_MEMSET:
        TIMES(set);
        break;
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
        TIMES(graph);
        break;
    default:
        TIMES(kernel);
#undef TIMES
    }
}

/* Returns its start, so that a graph's next node can follow. */
static void start_on_device(const fake_activity *a, fake_record *r, uint32_t id, uint64_t called) {
    fake_place place = {.device = a->device, .context = a->context, .stream = a->stream};
    uint64_t start, due;
    fake_schedule(place, called + a->delay_ns, a->ns, &start, &due);
    if ((a->flags & FAKE_LOST) || !fake_kind_is_on(r->kind))
        return;
    uint64_t end = start + a->ns;
    if (a->start || a->end) {
        start = a->start;
        end = a->end ? a->end : start + a->ns;
        due = 0;
    }
    if (a->flags & FAKE_UNTIMED)
        start = end = 0;
    if (a->flags & FAKE_BACKWARD)
        set_times(r, id, end, start);
    else
        set_times(r, id, start, end);
    fake_add_pending(r, place, due, a->flags);
}

static void launch_graph(const fake_activity *a, uint32_t id, uint64_t called) {
    fake_activity one = *a;
    if (fake_kind_is_on(CUPTI_ACTIVITY_KIND_GRAPH_TRACE)) { /* instead of the kernels' own records */
        one.ns = a->ns * a->nodes;
        fake_record r = graph_record(a);
        start_on_device(&one, &r, id, called);
        return;
    }
    for (uint32_t i = 0; i < a->nodes; i++) {
        fake_record r = kernel_record(a);
        r.kernel.graphNodeId = ((uint64_t)a->graph << 32) + i + 1; /* the same at each replay */
        r.kernel.graphId = a->graph;
        start_on_device(&one, &r, id, called);
        if (one.start) {
            one.start += a->ns;
            one.end = one.start + a->ns;
        }
    }
}

void fake_start_work(const fake_activity *a, uint32_t id, uint64_t called) {
    fake_record r;
    switch (a->kind) {
    case FAKE_GRAPH_LAUNCH:
        launch_graph(a, id, called);
        return;
    case FAKE_LAUNCH:
        r = kernel_record(a);
        break;
    case FAKE_MEMCPY:
        r = copy_record(a);
        break;
    case FAKE_MEMCPY_PEER:
        r = peer_record(a);
        break;
    case FAKE_MEMSET:
        r = set_record(a);
        break;
    default:
        return;
    }
    start_on_device(a, &r, id, called);
}
