/* Argument blocks of CUDA calls and device work, as for any event. */
#include "cuda/cuda_args.h"

#include "cuda/cuda_window.h"

#include <string.h>

uint64_t op_cuda_arg_words(const op_cuda_window *w) {
    return op_cuda_words_before_work(w) + w->records->work_count * OP_CUDA_WORK_WORDS;
}

uint64_t op_cuda_words_before_memory(const op_cuda_window *w) {
    return w->records->call_count * OP_CUDA_CALL_WORDS;
}

uint64_t op_cuda_words_before_work(const op_cuda_window *w) {
    return op_cuda_words_before_memory(w) + w->records->memory_count * OP_CUDA_MEMORY_WORDS;
}

void op_cuda_put_call_args(const op_cuda_window *w, uint32_t *words) {
    const op_cuda_records *r = w->records;
    for (uint64_t i = 0; i < r->call_count; i++) {
        *words = OP_ARGS_HEADER(OP_ARGS_DEVICE_CALL, OP_CUDA_CALL_WORDS - 1);
        memcpy(words + 1, &r->calls[i].call, sizeof r->calls[i].call);
        words += OP_CUDA_CALL_WORDS;
    }
}

/* memory.c fills in the totals once all changes are in order. */
void op_cuda_put_memory_args(const op_cuda_window *w, uint32_t *words) {
    const op_cuda_records *r = w->records;
    for (uint64_t i = 0; i < r->memory_count; i++) {
        const op_memory change = {.address = r->memory[i].address,
                                  .bytes = r->memory[i].bytes,
                                  .total_allocated = -1,
                                  .total_reserved = -1,
                                  .device_type = OP_CUDA_DEVICE_TYPE,
                                  .device_index = (int32_t)r->memory[i].device};
        *words = OP_ARGS_HEADER(OP_ARGS_MEMORY, OP_ARGS_MEMORY_WORDS);
        memcpy(words + 1, &change, sizeof change);
        words += OP_CUDA_MEMORY_WORDS;
    }
}

void op_cuda_put_work_args(const op_device_work *work, uint32_t *words) {
    *words = OP_ARGS_HEADER(OP_ARGS_DEVICE_WORK, OP_CUDA_WORK_WORDS - 1);
    memcpy(words + 1, work, sizeof *work);
}

static int read_block(const op_result *r, uint64_t row, enum op_args_type type, void *out,
                      size_t bytes) {
    if (row >= r->columns.count || !r->columns.args[row])
        return 0;
    const uint32_t *block = r->args + r->columns.args[row] - 1;
    if ((*block & 0xff) != (uint32_t)type || *block >> 8 != bytes / sizeof(uint32_t))
        return 0;
    memcpy(out, block + 1, bytes);
    return 1;
}

int op_result_device_call(const op_result *r, uint64_t row, op_device_call *out) {
    return read_block(r, row, OP_ARGS_DEVICE_CALL, out, sizeof *out);
}

int op_result_device_work(const op_result *r, uint64_t row, op_device_work *out) {
    return read_block(r, row, OP_ARGS_DEVICE_WORK, out, sizeof *out);
}
