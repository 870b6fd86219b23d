#include "cuda/cuda_memory.h"

#include "core/error.h"
#include "core/fault.h"
#include "core/names.h"

static uint64_t time_of(const op_cuda_window *w, uint32_t record) {
    const op_cuda_call *call = &w->records->calls[w->memory.caller[record]];
    uint64_t at = w->records->memory[record].at;
    return at < call->start ? call->start : at > call->end ? call->end : at;
}

int op_cuda_memory_list(const op_cuda_window *w, op_cuda_memory_lists *out) {
    static const char name[] = "[memory]"; /* torch's name */
    const op_cuda_records *r = w->records;
    if (!r->memory_count)
        return OP_OK;
    out->name = op_names_intern(name, sizeof name - 1);
    out->first = op_calloc(r->call_count + 1, sizeof *out->first);
    out->next = op_calloc(r->memory_count, sizeof *out->next);
    out->caller = op_calloc(r->memory_count, sizeof *out->caller);
    if (!out->first || !out->next || !out->caller)
        return op_error_set(OP_ENOMEM, "no memory to place the memory of devices");
    for (uint64_t i = r->memory_count; i-- > 0;) { /* each is put before those already listed */
        uint32_t call = op_cuda_index_find(&w->index, r->memory[i].correlation);
        out->adrift += call == 0;
        if (call == 0 || call == OP_CUDA_OUTSIDE)
            continue;
        out->caller[i] = call - 1;
        out->next[i] = out->first[call - 1];
        out->first[call - 1] = (uint32_t)i + 1;
        out->listed++;
    }
    return OP_OK;
}

void op_cuda_memory_free(op_cuda_memory_lists *lists) {
    free(lists->first);
    free(lists->next);
    free(lists->caller);
    *lists = (op_cuda_memory_lists){0};
}

/* After those of the same time, because a call frees what it had before it allocates again. */
static void insert(const op_cuda_window *w, op_cuda_memory_queue *queue, uint32_t record) {
    uint32_t *at = queue;
    while (*at && time_of(w, *at - 1) <= time_of(w, record))
        at = &w->memory.next[*at - 1];
    w->memory.next[record] = *at;
    *at = record + 1;
}

void op_cuda_memory_enqueue(const op_cuda_window *w, op_cuda_memory_queue *queue, uint32_t call) {
    uint32_t record = w->memory.first ? w->memory.first[call] : 0;
    while (record) {
        uint32_t next = w->memory.next[record - 1];
        insert(w, queue, record - 1);
        record = next;
    }
}

bool op_cuda_memory_take(const op_cuda_window *w, op_cuda_memory_queue *queue, uint64_t ticks,
                         op_event *out) {
    if (!*queue || time_of(w, *queue - 1) >= ticks)
        return false;
    uint32_t record = *queue - 1;
    uint64_t at = time_of(w, record);
    *queue = w->memory.next[record];
    *out = (op_event){
        .start = at, .end = at, .name = w->memory.name, .aux = record, .kind = OP_DEVICE_MEMORY};
    return true;
}
