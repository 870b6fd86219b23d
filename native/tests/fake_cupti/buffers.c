/* Activity buffers: requested when a record needs one, returned when full or flushed. */
#include "fake.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct buffer {
    uint8_t *data;
    size_t size, used;
    size_t records, most; /* most 0: as many as fit */
    uint64_t owner;       /* a thread; 0: all threads */
    bool full;
} buffer;

static fake_callbacks callbacks;
static bool zeroed, per_thread = true;
static buffer *buffers; /* all that the library holds */
static size_t held, room;
static uint64_t dropped, drop_next, seed;
static fake_totals totals;

void fake_set_callbacks(fake_callbacks c) { callbacks = c; }
fake_callbacks fake_get_callbacks(void) { return callbacks; }

/* The client may set it inside a buffer callback. */
void fake_set_zeroed(bool on) { __atomic_store_n(&zeroed, on, __ATOMIC_RELAXED); }
bool fake_is_zeroed(void) { return __atomic_load_n(&zeroed, __ATOMIC_RELAXED); }
void fake_set_per_thread(bool on) { per_thread = on; }
bool fake_is_per_thread(void) { return per_thread; }

size_t fake_stride(CUpti_ActivityKind kind) {
    switch ((uint32_t)kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        return sizeof(fake_kernel);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        return sizeof(fake_copy);
    case CUPTI_ACTIVITY_KIND_MEMSET:
        return sizeof(fake_set);
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
        return sizeof(CUpti_ActivityMemcpyPtoP4);
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
        return sizeof(CUpti_ActivityAPI);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
        return sizeof(CUpti_ActivitySynchronization2);
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
        return sizeof(CUpti_ActivityCudaEvent2);
    case CUPTI_ACTIVITY_KIND_MEMORY2:
        return sizeof(CUpti_ActivityMemory4);
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
        return sizeof(CUpti_ActivityOverhead3);
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
        return sizeof(CUpti_ActivityGraphTrace2);
    default:
        return 0;
    }
}

size_t fake_draw(size_t n) {
    if (!seed)
        return n - 1;
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % n;
}

/* ---- to and from the client -------------------------------------------------------------- */

static void check_not_held(const uint8_t *data, size_t size) {
    for (size_t i = 0; i < held; i++)
        if (data < buffers[i].data + buffers[i].size && buffers[i].data < data + size)
            fake_die("the client handed out the buffer at %p while CUPTI still had it",
                     (const void *)data);
}

static void prepare(uint8_t *data, size_t size) {
    if (!fake_is_zeroed()) {
        memset(data, 0, size);
        return;
    }
    for (size_t i = 0; i < size; i++)
        if (data[i]) {
            totals.dirty++;
            return;
        }
}

static buffer *request(uint64_t owner) {
    uint8_t *data = NULL;
    size_t size = 0, most = 0;
    if (callbacks.request)
        callbacks.request(&data, &size, &most);
    totals.requested++;
    if (!data) {
        if (callbacks.request && fake_api_version() < 27)
            fake_die("the client refused a buffer, which crashes CUPTI before version 27");
        return NULL;
    }
    if ((uintptr_t)data % 8)
        fake_die("the client's buffer at %p is not aligned to 8 bytes", (void *)data);
    check_not_held(data, size);
    prepare(data, size);
    if (held == room) {
        room = room ? 2 * room : 16;
        buffers = realloc(buffers, room * sizeof *buffers);
        if (!buffers)
            fake_die("no memory for %zu buffers", room);
    }
    buffers[held] = (buffer){.data = data, .size = size, .most = most, .owner = owner};
    return &buffers[held++];
}

static void complete(size_t at) {
    buffer b = buffers[at];
    memmove(&buffers[at], &buffers[at + 1], (held - at - 1) * sizeof *buffers);
    held--;
    totals.completed++;
    callbacks.complete(NULL, 0, b.data, b.size, b.used);
}

/* A buffer that may be returned now: the first, or with a seed any. */
static bool pick(bool all, bool empty_too, size_t *at) {
    size_t fit = 0;
    for (size_t i = held; i-- > 0;)
        if (buffers[i].full || (all && (buffers[i].used || empty_too))) {
            if (fake_draw(fit + 1) == fit)
                *at = i;
            fit++;
        }
    return fit > 0;
}

static void deliver(bool all, bool empty_too) {
    size_t at = 0;
    while (callbacks.complete && pick(all, empty_too, &at))
        complete(at);
}

void fake_deliver_full(void) { deliver(false, false); }
void fake_deliver_all(bool forced) { deliver(true, forced); }

/* ---- records ----------------------------------------------------------------------------- */

static buffer *find(uint64_t owner) {
    for (size_t i = 0; i < held; i++)
        if (!buffers[i].full && buffers[i].owner == owner)
            return &buffers[i];
    return NULL;
}

static bool has_room(const buffer *b, size_t bytes) {
    return b->used + bytes <= b->size && (!b->most || b->records < b->most);
}

static void drop(uint32_t kind) {
    dropped++;
    totals.dropped[kind]++;
}

void fake_append(uint64_t owner, const fake_record *record) {
    size_t bytes = fake_stride(record->kind);
    if (drop_next) {
        drop_next--;
        drop(record->kind);
        return;
    }
    buffer *b = find(per_thread ? owner : 0);
    if (b && !has_room(b, bytes)) {
        b->full = true;
        fake_wake();
        b = NULL;
    }
    if (!b)
        b = request(per_thread ? owner : 0);
    if (!b || !has_room(b, bytes)) {
        drop(record->kind);
        return;
    }
    memcpy(b->data + b->used, record, bytes);
    b->used += bytes;
    b->records++;
    totals.appended[record->kind]++;
}

uint64_t fake_take_dropped(void) {
    uint64_t n = dropped;
    dropped = 0;
    return n;
}

void fake_add_buffer_totals(fake_totals *out) {
    *out = totals;
    out->held = held;
}

void fake_drop(uint64_t n) {
    fake_lock(__func__);
    drop_next = n;
    fake_unlock();
}

void fake_shuffle(uint64_t other) {
    fake_lock(__func__);
    seed = other;
    fake_unlock();
}

void fake_reset_buffers(void) {
    free(buffers);
    buffers = NULL;
    held = room = 0;
    callbacks = (fake_callbacks){0};
    fake_set_zeroed(false);
    per_thread = true;
    dropped = drop_next = seed = 0;
    totals = (fake_totals){0};
}
