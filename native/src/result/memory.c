/* Memory allocated and freed: credited to the innermost event of the same thread, summed up per event,
 * and followed through time for each step. */
#include "core/error.h"
#include "core/fault.h"
#include "core/record.h"
#include "result/result.h"
#include "result/work.h"

#include <string.h>

OP_STATIC_ASSERT(sizeof(op_memory) == sizeof(op_memory_change), "the block, as the reader has it");

int op_result_memory(const op_result *r, uint64_t row, op_memory *out) {
    const op_columns *c = &r->columns;
    if (row >= c->count || c->kind[row] != OP_MEMORY || c->args[row] == 0)
        return 0;
    const uint32_t *block = r->args + c->args[row] - 1, *limit = r->args + r->arg_words;
    if (*block != OP_ARGS_HEADER(OP_ARGS_MEMORY, OP_ARGS_MEMORY_WORDS) ||
        limit - block < 1 + (ptrdiff_t)OP_ARGS_MEMORY_WORDS)
        return 0;
    memcpy(out, block + 1, sizeof *out);
    return 1;
}

/* As in torch.profiler, c10::DeviceType's CPU, MKLDNN and IDEEP are the host. */
static bool is_on_device(const op_memory *m) {
    return !(m->device_type == 0 || m->device_type == 2 || m->device_type == 5);
}

/* Bytes that an event allocated; 0 if it is not memory or the allocation failed. */
static int64_t change_at(const op_result *r, uint64_t row, bool *on_device) {
    op_memory m;
    if (!op_result_memory(r, row, &m) || m.address == 0)
        return 0;
    *on_device = is_on_device(&m);
    return m.bytes;
}

uint8_t op_memory_note(op_result *r, uint64_t row) {
    op_memory m;
    r->memory_count++;
    if (!op_result_memory(r, row, &m))
        return 0;
    return m.address && r->columns.parent[row] >= 0 ? OP_FLAG_CREDITED : 0;
}

/* ---- in the order of time --------------------------------------------------------------- */

typedef struct moment {
    int64_t start_ns;
    uint64_t row;
} moment;

static int earlier_first(const void *a, const void *b) {
    const moment *x = a, *y = b;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

/* All memory events by time: a block may be freed by another thread than the one that allocated it. */
static moment *in_time(const op_result *r) {
    moment *moments = op_malloc(r->memory_count * sizeof *moments + 1);
    if (!moments)
        return NULL;
    uint64_t n = 0;
    bool sorted = true;
    for (uint64_t row = 0; row < r->columns.count; row++) {
        if (r->columns.kind[row] != OP_MEMORY)
            continue;
        moments[n++] = (moment){.start_ns = r->columns.start_ns[row], .row = row};
        sorted = sorted && (n < 2 || moments[n - 2].start_ns <= moments[n - 1].start_ns);
    }
    if (!sorted)
        qsort(moments, n, sizeof *moments, earlier_first);
    return moments;
}

/* ---- blocks in use ---------------------------------------------------------------------- */

typedef struct block {
    uint64_t address; /* 0: an empty place */
    int64_t bytes;    /* 0: freed */
    int32_t step;     /* in which it was allocated */
    uint64_t row;     /* the allocating event, or the one around it */
} block;

typedef struct blocks {
    block *places;
    uint64_t mask;
} blocks;

static int make_blocks(const op_result *r, blocks *out) {
    uint64_t places = 16;
    while (places < r->memory_count * 2)
        places *= 2;
    out->mask = places - 1;
    out->places = op_calloc(places, sizeof *out->places);
    return out->places ? OP_OK : OP_ENOMEM;
}

static block *block_at(const blocks *b, uint64_t address) {
    uint64_t i = address * 0x9e3779b97f4a7c15u >> 20 & b->mask;
    while (b->places[i].address && b->places[i].address != address)
        i = (i + 1) & b->mask;
    return &b->places[i];
}

/* Whether a block is freed in the step that allocated it. By the clock, because a thread from before
 * the step has no step; or in a backward op, which may run after its step. */
static bool is_in_its_step(const op_result *r, const block *known, uint64_t row) {
    if (known->step < 0 || known->step == r->columns.step[row])
        return known->step >= 0;
    int64_t end_ns = r->steps[known->step].end_ns;
    return end_ns < 0 || r->columns.start_ns[row] < end_ns;
}

static int no_memory_to_follow(const op_result *r) {
    return op_error_set(OP_ENOMEM, "no memory to follow %llu events of memory",
                        (unsigned long long)r->memory_count);
}

static void set_number(op_result *r, uint64_t row, size_t offset, int64_t value) {
    memcpy(r->args + r->columns.args[row] + offset / sizeof(uint32_t), &value, sizeof value);
}

enum { MOST_DEVICES = 64 }; /* whose totals are tracked */

/* What the window has allocated so far: CUDA does not say how much of a device a process uses. */
static void set_total(op_result *r, uint64_t row, const op_memory *m, int64_t in_use[MOST_DEVICES]) {
    if (!is_on_device(m) || m->total_allocated >= 0 || m->device_index < 0 ||
        m->device_index >= MOST_DEVICES)
        return;
    in_use[m->device_index] += m->bytes;
    set_number(r, row, offsetof(op_memory, total_allocated), in_use[m->device_index]);
}

/* Torch's device allocators know the size of each block, whenever it was allocated. */
static bool says_its_bytes(const op_memory *m) {
    return is_on_device(m) && m->total_allocated >= 0 && m->bytes != OP_BYTES_UNKNOWN;
}

/* A block freed by free() gets the size it had when it was allocated. A block from before the window
 * has none: the host's allocator may or may not know its size from an earlier window, and the recording
 * would depend on earlier ones. */
int op_memory_settle(op_result *r, uint8_t *flags) {
    if (r->memory_count == 0)
        return OP_OK;
    moment *moments = in_time(r);
    blocks in_use = {0};
    int64_t totals[MOST_DEVICES] = {0};
    if (!moments || make_blocks(r, &in_use) != OP_OK) {
        free(moments);
        return no_memory_to_follow(r);
    }
    for (uint64_t i = 0; i < r->memory_count; i++) {
        op_memory m;
        uint64_t row = moments[i].row;
        if (!op_result_memory(r, row, &m) || m.address == 0)
            continue;
        block *known = block_at(&in_use, m.address);
        if (m.bytes < 0 && !says_its_bytes(&m)) {
            if (m.bytes == OP_BYTES_UNKNOWN || known->bytes == 0)
                set_number(r, row, offsetof(op_memory, bytes), m.bytes = -known->bytes);
            if (known->bytes == 0)
                flags[row] |= OP_FLAG_CREDITED;
        }
        set_total(r, row, &m, totals);
        known->address = m.address;
        known->bytes = m.bytes > 0 ? m.bytes : 0;
    }
    free(moments);
    free(in_use.places);
    return OP_OK;
}

/* ---- retained by steps ---------------------------------------------------------------------- */

/* What a step allocates and does not free is credited to the event around it. */
int op_memory_retain(op_result *r, uint64_t room) {
    if (r->memory_count == 0)
        return OP_OK;
    const op_columns *c = &r->columns;
    op_work *work = op_work_of(r, room);
    moment *moments = in_time(r);
    blocks in_use = {0};
    if (!moments || !work || make_blocks(r, &in_use) != OP_OK) {
        free(moments);
        return no_memory_to_follow(r);
    }
    for (uint64_t i = 0; i < r->memory_count; i++) {
        op_memory m;
        uint64_t row = moments[i].row;
        if (!op_result_memory(r, row, &m) || m.address == 0)
            continue;
        block *known = block_at(&in_use, m.address);
        if (m.bytes <= 0 && known->bytes && is_in_its_step(r, known, row))
            work[known->row].retained -= known->bytes;
        uint64_t around = c->parent[row] >= 0 ? (uint64_t)c->parent[row] : row;
        *known = (block){m.address, m.bytes > 0 ? m.bytes : 0, c->step[row], around};
        if (known->step >= 0)
            work[around].retained += known->bytes;
    }
    free(moments);
    free(in_use.places);
    return OP_OK;
}

int64_t op_memory_retained(const op_result *r, uint64_t row) {
    bool has = r->work && r->work[row].retained && !op_is_recursive(r, row);
    return has ? r->work[row].retained : 0;
}

/* ---- per event -------------------------------------------------------------------------- */

/* Only the nearest event around a memory event counts its bytes as its own. */
static void sum_up(const op_result *r, int64_t *cpu, int64_t *self_cpu, int64_t *device,
                   int64_t *self_device) {
    const op_columns *c = &r->columns;
    for (uint64_t row = c->count; row-- > 0;) { /* in preorder a parent comes before its children */
        bool on_device = false;
        int64_t bytes = c->kind[row] == OP_MEMORY ? change_at(r, row, &on_device) : 0;
        int32_t parent = c->parent[row];
        (on_device ? device : cpu)[row] += bytes;
        if (parent >= 0) {
            cpu[parent] += cpu[row];
            device[parent] += device[row];
        }
        uint64_t owner = c->flags[row] & OP_FLAG_CREDITED && parent >= 0 ? (uint64_t)parent : row;
        (on_device ? self_device : self_cpu)[owner] += bytes;
    }
}

int op_result_memory_columns(op_result *r, op_memory_columns *out) {
    uint64_t n = r->columns.count;
    if (!r->memory) {
        int64_t *columns = op_calloc(4 * n + 1, sizeof *columns);
        if (!columns)
            return op_error_set(OP_ENOMEM, "no memory for the memory of %llu events",
                                (unsigned long long)n);
        if (r->memory_count)
            sum_up(r, columns, columns + n, columns + 2 * n, columns + 3 * n);
        r->memory = columns;
    }
    *out = (op_memory_columns){.cpu = r->memory,
                               .self_cpu = r->memory + n,
                               .device = r->memory + 2 * n,
                               .self_device = r->memory + 3 * n};
    return OP_OK;
}

/* ---- per step --------------------------------------------------------------------------- */

typedef struct level {
    op_memory_use *use;
    int64_t in_use;
} level;

static void take(level *l, int64_t bytes) {
    l->in_use += bytes;
    l->use->allocated += bytes;
    l->use->allocations++;
    if (l->in_use > l->use->peak)
        l->use->peak = l->in_use;
}

static void give_back(level *l, int64_t bytes) {
    l->in_use -= bytes;
    l->use->freed += bytes;
}

/* A step only counts what it allocated itself, so that equal steps are equal: the first step of a
 * window has no earlier blocks to free. */
static void follow(const op_result *r, uint64_t row, level *levels, block *known, int64_t bytes) {
    level *whole = &levels[r->step_count];
    if (bytes > 0) {
        int32_t step = r->columns.step[row];
        take(whole, bytes);
        if (step >= 0)
            take(&levels[step], bytes);
        *known = (block){.address = known->address, .bytes = bytes, .step = step};
    } else if (known->bytes) {
        give_back(whole, known->bytes);
        if (is_in_its_step(r, known, row))
            give_back(&levels[known->step], known->bytes);
        known->bytes = 0;
    }
}

int op_result_memory_use(op_result *r, int on_device, const op_memory_use **rows) {
    free(r->memory_use);
    r->memory_use = op_calloc(r->step_count + 1, sizeof *r->memory_use);
    level *levels = op_calloc(r->step_count + 1, sizeof *levels);
    moment *moments = in_time(r);
    blocks in_use = {0};
    if (!r->memory_use || !levels || !moments || make_blocks(r, &in_use) != OP_OK) {
        free(levels);
        free(moments);
        return no_memory_to_follow(r);
    }
    for (uint32_t i = 0; i <= r->step_count; i++)
        levels[i].use = &r->memory_use[i];
    for (uint64_t i = 0; i < r->memory_count; i++) {
        op_memory m;
        uint64_t row = moments[i].row;
        if (!op_result_memory(r, row, &m) || m.address == 0 || is_on_device(&m) != (on_device != 0))
            continue;
        block *known = block_at(&in_use, m.address);
        known->address = m.address;
        follow(r, row, levels, known, m.bytes);
    }
    free(levels);
    free(moments);
    free(in_use.places);
    *rows = r->memory_use;
    return OP_OK;
}
