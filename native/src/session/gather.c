/* Collects what a window recorded, from wherever its chunks are. */
#include "core/collector.h"
#include "core/error.h"
#include "core/fault.h"
#include "core/names.h"
#include "core/prefault.h"
#include "core/record.h"
#include "core/spill.h"
#include "cuda/cuda_calls.h"
#include "cuda/cupti.h"
#include "result/result.h"
#include "sources/retained.h"
#include "sources/sites.h"

#include <string.h>

/* Looking at a chunk's header also maps the pages around it, in total a quarter of the file. */
#define FORGET_AFTER 64 /* chunks */

static op_collector *const self = &op_the_collector;

static op_raw raw_of(const op_chunk *c, uint32_t count, uint32_t arg_words, const void *args) {
    return (op_raw){.thread = c->thread,
                    .sequence = c->sequence,
                    .os_tid = c->os_tid,
                    .torch_thread = c->torch_thread,
                    .count = count,
                    .arg_words = arg_words,
                    .events = (const op_event *)(c + 1),
                    .args = args,
                    .args_at = c->bytes / (uint32_t)sizeof(uint32_t) - arg_words};
}

static op_raw raw_in_memory(const op_chunk *c) {
    uint32_t count = __atomic_load_n(&c->count, __ATOMIC_ACQUIRE);
    uint32_t arg_words = __atomic_load_n(&c->arg_words, __ATOMIC_ACQUIRE);
    return raw_of(c, count, arg_words, (const uint32_t *)c + c->bytes / sizeof(uint32_t) - arg_words);
}

typedef struct gathered {
    op_raw *raw;
    uint32_t count;
    void *spilled; /* mapping of the spill file */
} gathered;

static uint32_t count_chunks(uint32_t window) {
    uint32_t n = self->spill.count;
    for (const op_chunk *c = self->full; c; c = c->next)
        n += c->window == window;
    for (const op_thread *t = self->threads; t; t = t->link)
        n += t->window == window && t->chunk;
    return n;
}

static int gather(uint32_t window, gathered *out) {
    const op_spill *spill = &self->spill;
    out->raw = op_malloc(((size_t)count_chunks(window) + 1) * sizeof *out->raw);
    if (!out->raw)
        return op_error_set(OP_ENOMEM, "no memory for the list of chunks");
    if (spill->bytes) {
        out->spilled = MAP_FAILED;
        if (op_spill_file())
            out->spilled = op_mmap(NULL, spill->bytes, PROT_READ, MAP_PRIVATE, spill->file.fd, 0);
        if (out->spilled == MAP_FAILED) {
            out->spilled = NULL;
            return op_error_errno("%s", spill->path);
        }
    }
    for (uint32_t i = 0; i < spill->count; i++) {
        const op_chunk *c = (const op_chunk *)((const char *)out->spilled + spill->index[i].at);
        out->raw[out->count++] = raw_of(c, c->count, c->arg_words, op_spilled_args(c));
        if (i % FORGET_AFTER == 0)
            op_prefault_forget(out->spilled, spill->bytes);
    }
    for (const op_chunk *c = self->full; c; c = c->next)
        if (c->window == window)
            out->raw[out->count++] = raw_in_memory(c);
    for (const op_thread *t = self->threads; t; t = t->link)
        if (t->window == window && t->chunk)
            out->raw[out->count++] = raw_in_memory(t->chunk);
    qsort(out->raw, out->count, sizeof *out->raw, op_raw_order);
    return OP_OK;
}

static void release(gathered *g) {
    if (g->spilled)
        munmap(g->spilled, self->spill.bytes);
    free(g->raw);
}

/* A thread that ended left its name behind; the caller names the living ones. */
static void name_threads(op_result *r) {
    const op_thread *t = self->threads; /* newest first: the result's threads from the last on */
    for (uint32_t i = r->thread_count; i-- > 0;) {
        op_thread_info *thread = &r->threads[i];
        while (t && t->index > thread->index)
            t = t->link;
        if (!t || t->index != thread->index)
            continue;
        memcpy(thread->name, t->name, sizeof t->name);
        if (t->torch_thread)
            thread->torch_thread = t->torch_thread;
    }
}

static void count_losses(uint32_t window, op_stats *stats) {
    for (const op_thread *t = self->threads; t; t = t->link)
        if (t->window == window)
            stats->unmatched_ends += t->unmatched;
    stats->dropped = op_thread_drops(window);
    stats->truncated = self->pool.header->truncated;
    stats->uncounted = self->uncounted;
    stats->sampling = self->pool.header->sampling;
    stats->counted = self->pool.header->counted;
    memcpy(stats->counters, self->pool.header->counters, sizeof stats->counters);
    stats->spilled_bytes = self->spill.bytes;
    stats->names = op_names_count();
    stats->crash_recovery = self->pool.file.fd >= 0;
}

static int list_threads(op_cuda_window *out) {
    uint32_t count = 0;
    for (const op_thread *t = self->threads; t; t = t->link)
        count++;
    out->threads = op_malloc(count * sizeof *out->threads + 1);
    if (!out->threads)
        return op_error_set(OP_ENOMEM, "no memory for the list of threads");
    for (const op_thread *t = self->threads; t; t = t->link)
        out->threads[out->thread_count++] = (op_cuda_thread){.index = t->index,
                                                             .os_tid = t->os_tid,
                                                             .born = t->born,
                                                             .gone = t->gone ? t->gone : UINT64_MAX};
    return OP_OK;
}

static int build_with_cuda(op_source *source, op_result *result) {
    op_cuda_window cuda = {.from = source->timeline->pairs[0].ticks};
    cuda.records = op_cupti_records_lock(&cuda.pauses, &cuda.pause_count);
    if (!cuda.records)
        return op_tree_build(source, result);
    source->cuda = &cuda;
    int rc = list_threads(&cuda);
    if (rc == OP_OK)
        rc = op_tree_build(source, result);
    op_cupti_records_unlock();
    op_cuda_window_release(&cuda);
    result->stats.cuda = op_cupti_recorded();
    result->devices = op_cupti_devices(&result->device_count);
    return rc;
}

int op_collect(uint32_t window, uint64_t most_events, op_result *result) {
    gathered chunks = {0};
    int rc = op_timeline_add(&self->timeline);
    if (rc == OP_OK)
        rc = gather(window, &chunks);
    if (rc == OP_OK) {
        op_source source = {.raw = chunks.raw,
                            .raw_count = chunks.count,
                            .timeline = &self->timeline,
                            .steps = &self->steps,
                            .mapping = chunks.spilled,
                            .mapping_bytes = self->spill.bytes,
                            .most_events = most_events};
        result->sites = op_sites_take(window, &result->site_count);
        source.blocks = op_retained_blocks(&source.block_count);
        rc = source.blocks ? build_with_cuda(&source, result) : OP_ENOMEM;
    }
    if (rc == OP_OK) {
        name_threads(result);
        count_losses(window, &result->stats);
    }
    release(&chunks);
    return rc;
}
