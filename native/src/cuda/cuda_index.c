#include "cuda/cuda_index.h"

#include "core/error.h"
#include "core/fault.h"
#include "opprof.h"

int op_cuda_index_make(op_cuda_index *index, uint64_t count) {
    uint64_t slots = 16;
    while (slots < count * 2)
        slots *= 2;
    index->mask = slots - 1;
    index->ids = op_malloc(slots * sizeof *index->ids);
    index->calls = op_calloc(slots, sizeof *index->calls);
    return index->ids && index->calls ? OP_OK
                                      : op_error_set(OP_ENOMEM, "no memory to find calls of CUDA");
}

/* A process's ids are consecutive, so an id is its own hash. The last call stored for an id wins. */
void op_cuda_index_put(op_cuda_index *index, uint32_t id, uint32_t call) {
    uint64_t at = id & index->mask;
    while (index->calls[at] && index->ids[at] != id)
        at = (at + 1) & index->mask;
    index->ids[at] = id;
    index->calls[at] = call;
}

uint32_t op_cuda_index_find(const op_cuda_index *index, uint32_t id) {
    uint64_t at = id & index->mask;
    while (index->calls[at] && index->ids[at] != id)
        at = (at + 1) & index->mask;
    return index->calls[at];
}

void op_cuda_index_free(op_cuda_index *index) {
    free(index->ids);
    free(index->calls);
}
