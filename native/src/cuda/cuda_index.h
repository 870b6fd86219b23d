/* Finds calls by correlation id. */
#ifndef OP_CUDA_INDEX_H
#define OP_CUDA_INDEX_H

#include <stdint.h>

/* From a correlation id to its call: 1 + the call's index; 0: not recorded. */
typedef struct op_cuda_index {
    uint32_t *ids, *calls;
    uint64_t mask;
} op_cuda_index;

int op_cuda_index_make(op_cuda_index *index, uint64_t count); /* OP_OK or OP_ENOMEM */
void op_cuda_index_put(op_cuda_index *index, uint32_t id, uint32_t call);
uint32_t op_cuda_index_find(const op_cuda_index *index, uint32_t id);
void op_cuda_index_free(op_cuda_index *index);

#endif
