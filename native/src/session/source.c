/* The parts of a source besides events that go into a result: argument blocks and threads. */
#include "core/error.h"
#include "core/fault.h"
#include "core/prefault.h"
#include "cuda/cuda_args.h"
#include "cuda/cuda_window.h"
#include "result/result.h"

#include <string.h>

int op_source_copy_args(const op_source *s, op_result *r) {
    uint64_t words = 0;
    for (uint32_t i = 0; i < s->raw_count; i++)
        words += s->raw[i].arg_words;
    uint64_t recorded = words;
    words += s->cuda ? op_cuda_arg_words(s->cuda) : 0;
    r->args = op_malloc(words * sizeof(uint32_t) + 1);
    if (!r->args)
        return op_error_set(OP_ENOMEM, "no memory for %llu argument words", (unsigned long long)words);
    op_prefault_expect(r->args, words * sizeof *r->args);
    r->arg_words = words;
    words = 0;
    for (uint32_t i = 0; i < s->raw_count; i++) {
        if (s->raw[i].arg_words)
            memcpy(r->args + words, s->raw[i].args, s->raw[i].arg_words * sizeof(uint32_t));
        words += s->raw[i].arg_words;
    }
    if (s->cuda) {
        op_cuda_put_call_args(s->cuda, r->args + recorded);
        op_cuda_put_memory_args(s->cuda, r->args + recorded + op_cuda_words_before_memory(s->cuda));
    }
    return OP_OK;
}

int op_source_list_threads(const op_source *s, op_result *r) {
    r->threads = op_calloc(s->raw_count + 1, sizeof *r->threads);
    if (!r->threads)
        return op_error_set(OP_ENOMEM, "no memory for the list of threads");
    for (uint32_t i = 0; i < s->raw_count; i++) {
        const op_raw *raw = &s->raw[i];
        if (i == 0 || raw->thread != s->raw[i - 1].thread)
            r->threads[r->thread_count++] =
                (op_thread_info){.index = raw->thread, .os_tid = raw->os_tid, .device_index = -1};
        if (raw->torch_thread)
            r->threads[r->thread_count - 1].torch_thread = raw->torch_thread;
    }
    return OP_OK;
}
