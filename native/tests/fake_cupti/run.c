/* fake_run(): a call from begin to end, and the host's records. */
#include "fake.h"

#include <unistd.h>

#define NS_OF_A_KERNEL 1000
#define NOT_WHILE_CAPTURING 900 /* cudaErrorStreamCaptureUnsupported, and CUDA's own number */
#define NOT_READY 600           /* cudaErrorNotReady, CUDA_ERROR_NOT_READY */

static uint32_t correlation;           /* the last one assigned */
static uint64_t taken_at, taken_bytes; /* the last allocation */
static uint64_t used_devices;          /* a bit each */
static int capture;                    /* enum fake_capture_state */

static void fill_in(fake_activity *a) {
    a->context = a->context ? a->context : a->device + 1;
    a->stream = a->stream ? a->stream : 7;
    a->name = a->name ? a->name : "fake_kernel";
    a->ns = a->ns ? a->ns : NS_OF_A_KERNEL;
    a->copy_kind = a->copy_kind ? a->copy_kind : CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
    a->nodes = a->nodes ? a->nodes : 1;
    a->graph = a->graph ? a->graph : 1;
    a->registers = a->registers ? a->registers : 16;
    for (int i = 0; i < 3; i++) {
        a->grid[i] = a->grid[i] ? a->grid[i] : 1;
        a->block[i] = a->block[i] ? a->block[i] : 1;
    }
}

/* ---- host records
 * ------------------------------------------------------------------------------------------ */

typedef struct stretch {
    uint64_t start, end;
} stretch;

static void add_call(CUpti_ActivityKind kind, uint32_t cbid, uint32_t id, stretch when,
                     uint32_t result) {
    if (!fake_call_is_on(kind, cbid))
        return;
    fake_record r = fake_blank();
    r.call.kind = kind;
    r.call.cbid = cbid;
    r.call.start = when.start;
    r.call.end = when.end;
    r.call.processId = (uint32_t)getpid();
    r.call.threadId = fake_thread_id();
    r.call.correlationId = id;
    r.call.returnValue = result;
    fake_append(fake_thread_id(), &r);
}

static uint32_t sync_type(uint32_t kind) {
    switch (kind) {
    case FAKE_SYNC_DEVICE:
        return CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE;
    case FAKE_SYNC_STREAM:
    case FAKE_QUERY:
        return CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
    case FAKE_SYNC_EVENT:
        return CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE;
    case FAKE_WAIT_EVENT:
        return CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT;
    default:
        return 0;
    }
}

static void add_sync(const fake_activity *a, uint32_t id, stretch when) {
    uint32_t type = sync_type(a->kind);
    if (a->result == NOT_READY && !fake_wants_idle_queries())
        return;
    if (!type || !fake_kind_is_on(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION))
        return;
    bool has_stream = a->kind != FAKE_SYNC_DEVICE && a->kind != FAKE_SYNC_EVENT;
    bool has_event = a->kind == FAKE_SYNC_EVENT || a->kind == FAKE_WAIT_EVENT;
    fake_record r = fake_blank();
    r.sync.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
    r.sync.type = type;
    r.sync.start = when.start;
    r.sync.end = when.end;
    r.sync.correlationId = id;
    r.sync.contextId = a->context;
    r.sync.streamId = has_stream ? a->stream : (uint32_t)CUPTI_SYNCHRONIZATION_INVALID_VALUE;
    r.sync.cudaEventId = has_event ? a->event : (uint32_t)CUPTI_SYNCHRONIZATION_INVALID_VALUE;
    r.sync.returnValue = a->result;
    fake_append(fake_thread_id(), &r);
}

static void add_memory(const fake_activity *a, uint32_t id, uint64_t when) {
    if (a->kind != FAKE_MALLOC && a->kind != FAKE_FREE)
        return;
    bool taken = a->kind == FAKE_MALLOC;
    if (taken) {
        taken_at = a->address ? a->address : taken_at + taken_bytes + 0x7f0000000000u * !taken_at;
        taken_bytes = (a->bytes + 511) / 512 * 512;
    }
    if (!fake_kind_is_on(CUPTI_ACTIVITY_KIND_MEMORY2))
        return;
    fake_record r = fake_blank();
    r.memory.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
    r.memory.memoryOperationType = taken ? CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION
                                         : CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE;
    r.memory.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
    r.memory.correlationId = id;
    r.memory.address = !taken && a->address ? a->address : taken_at;
    r.memory.bytes = a->bytes;
    r.memory.timestamp = when;
    r.memory.processId = (uint32_t)getpid();
    r.memory.deviceId = a->device;
    r.memory.contextId = a->context;
    r.memory.streamId = (uint32_t)CUPTI_INVALID_STREAM_ID;
    fake_append(fake_thread_id(), &r);
}

static void add_event(const fake_activity *a, uint32_t id) {
    if (a->kind != FAKE_RECORD || !fake_kind_is_on(CUPTI_ACTIVITY_KIND_CUDA_EVENT))
        return;
    fake_record r = fake_blank();
    r.event.kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT;
    r.event.correlationId = id;
    r.event.contextId = a->context;
    r.event.streamId = a->stream;
    r.event.eventId = a->event;
    r.event.deviceId = a->device;
    fake_append(fake_thread_id(), &r);
}

static uint32_t add_overhead(const fake_activity *a) {
    fake_lock("an overhead of CUPTI's");
    if (fake_kind_is_on(CUPTI_ACTIVITY_KIND_OVERHEAD)) {
        fake_record r = fake_blank();
        r.overhead.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
        r.overhead.overheadKind = CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH;
        r.overhead.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
        r.overhead.objectId.pt.processId = (uint32_t)getpid();
        r.overhead.objectId.pt.threadId = fake_thread_id();
        r.overhead.start = a->start ? a->start : fake_now();
        r.overhead.end = a->end ? a->end : r.overhead.start + a->ns;
        fake_append(fake_thread_id(), &r);
    }
    fake_unlock();
    return 0;
}

/* ---- one activity, from the call's begin to its end
 * --------------------------------------------------------- */

static uint32_t next_correlation(void) { return __atomic_add_fetch(&correlation, 1, __ATOMIC_RELAXED); }

static fake_place place_of(const fake_activity *a) {
    bool one = a->kind == FAKE_SYNC_STREAM || a->kind == FAKE_QUERY;
    return (fake_place){.device = a->device, .context = a->context, .stream = one ? a->stream : 0};
}

static void block_host(const fake_activity *a) {
    if (a->kind >= FAKE_SYNC_DEVICE && a->kind <= FAKE_SYNC_EVENT)
        fake_wait_for(place_of(a));
}

static void note_capture(fake_activity *a) {
    if (a->kind == FAKE_CAPTURE)
        capture = FAKE_CAPTURING | (a->flags & FAKE_NON_BLOCKING ? 0 : FAKE_CAPTURING_BLOCKING);
    if (a->kind == FAKE_END_CAPTURE && !a->result)
        capture = 0;
    if (a->kind == FAKE_SYNC_DEVICE && capture & FAKE_CAPTURING) {
        capture = FAKE_CAPTURE_BROKEN;
        a->result = NOT_WHILE_CAPTURING;
    }
}

static void add_calls(const fake_activity *a, uint32_t id, stretch outer, stretch inner) {
    uint32_t cbid = a->cbid;
    if (a->api == FAKE_DRIVER)
        add_call(CUPTI_ACTIVITY_KIND_DRIVER, cbid ? cbid : fake_usual_call(true, a->kind), id, outer,
                 a->result);
    if (a->api == FAKE_NESTED || a->api == FAKE_NESTED_OWN)
        add_call(CUPTI_ACTIVITY_KIND_DRIVER, fake_usual_call(true, a->kind),
                 a->api == FAKE_NESTED ? id : next_correlation(), inner, a->result);
    if (a->api != FAKE_DRIVER && a->api != FAKE_NO_CALL)
        add_call(CUPTI_ACTIVITY_KIND_RUNTIME, cbid ? cbid : fake_usual_call(false, a->kind), id, outer,
                 a->result);
}

uint32_t fake_run(const fake_activity *activity) {
    fake_activity a = *activity;
    fill_in(&a);
    if (a.kind == FAKE_OVERHEAD)
        return add_overhead(&a);
    if (a.kind == FAKE_QUERY && !a.result && !fake_is_idle(place_of(&a)))
        a.result = NOT_READY;
    __atomic_or_fetch(&used_devices, 1ull << (a.device % 64), __ATOMIC_RELAXED);
    uint32_t id = next_correlation();
    fake_lock("a capture");
    note_capture(&a);
    fake_unlock();
    stretch outer = {.start = fake_now()}, inner = {.start = fake_now()};
    if (!a.result)
        block_host(&a);
    inner.end = fake_now();
    outer.end = fake_now();
    if (a.api_start || a.api_end)
        outer = inner = (stretch){.start = a.api_start, .end = a.api_end ? a.api_end : a.api_start};
    fake_lock("a CUDA call");
    if (!a.result) {
        add_memory(&a, id, inner.start);
        add_event(&a, id);
        fake_start_work(&a, id, outer.end);
    }
    add_calls(&a, id, outer, inner);
    add_sync(&a, id, inner);
    fake_unlock();
    return id;
}

int fake_capture(void) {
    fake_lock(__func__);
    int state = capture;
    fake_unlock();
    return state;
}

int fake_device_is_used(uint32_t device) {
    return (__atomic_load_n(&used_devices, __ATOMIC_RELAXED) >> (device % 64)) & 1;
}

void fake_reset_run(void) {
    fake_lock(__func__);
    taken_at = taken_bytes = 0;
    capture = 0;
    fake_unlock();
    __atomic_store_n(&used_devices, 0, __ATOMIC_RELAXED);
}
