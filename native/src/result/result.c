#include "result/result.h"

#include "core/error.h"
#include "core/fault.h"
#include "core/prefault.h"

#include <string.h>
#include <unistd.h>

op_result *op_result_new(void) {
    op_result *r = op_calloc(1, sizeof *r);
    if (r) {
        r->pid = (uint32_t)getpid();
        r->stats.sampling = 1;
    }
    return r;
}

/* Readers store ids in 32 bits, as torch does, so numbering restarts when they run out. */
op_result *op_result_number(op_result *r) {
    static uint64_t given;
    if (given + r->columns.count > UINT32_MAX)
        given = 0;
    r->first_id = given;
    given += r->columns.count;
    return r;
}

#define EACH_COLUMN(DO)                                                                                \
    DO(start_ns)                                                                                       \
    DO(duration_ns)                                                                                    \
    DO(self_ns)                                                                                        \
    DO(sequence_nr)                                                                                    \
    DO(name)                                                                                           \
    DO(thread)                                                                                         \
    DO(forward_thread)                                                                                 \
    DO(args)                                                                                           \
    DO(parent)                                                                                         \
    DO(step)                                                                                           \
    DO(launcher)                                                                                       \
    DO(line)                                                                                           \
    DO(kind)                                                                                           \
    DO(flags)                                                                                          \
    DO(scope)

int op_columns_reserve(op_result *r, op_writable *w, uint64_t n, uint64_t more) {
    uint64_t room = n + more;
    size_t bytes = room * (4 * sizeof(int64_t) + 7 * sizeof(uint32_t) + sizeof(uint16_t) + 3) + 64;
    char *at = r->storage = op_malloc(bytes);
    if (!at)
        return op_error_set(OP_ENOMEM, "no memory for the columns of %llu events",
                            (unsigned long long)n);
    op_prefault_expect(at, bytes);
#define TAKE(field)                                                                                    \
    w->field = (void *)at;                                                                             \
    r->columns.field = w->field;                                                                       \
    at += room * sizeof *w->field;
    EACH_COLUMN(TAKE)
#undef TAKE
    memset(w->line, 0, n * sizeof *w->line);
    w->room = room;
    r->columns.count = n;
    return OP_OK;
}

int op_columns_allocate(op_result *r, op_writable *w, uint64_t n) {
    return op_columns_reserve(r, w, n, 0);
}

/* For columns that most results lack. */
static int extend_rare(uint32_t **column, uint64_t count, uint64_t more) {
    if (!*column)
        return OP_OK;
    uint32_t *grown = op_realloc(*column, (count + more) * sizeof *grown);
    if (!grown)
        return op_error_set(OP_ENOMEM, "no memory for the columns of %llu events more",
                            (unsigned long long)more);
    memset(grown + count, 0, more * sizeof *grown);
    *column = grown;
    return OP_OK;
}

static bool extend_work(op_result *r, uint64_t room, uint64_t more) {
    if (!r->work)
        return true;
    op_work *grown = op_realloc(r->work, (room + more) * sizeof *grown);
    if (!grown)
        return false;
    memset(grown + room, 0, more * sizeof *grown);
    r->work = grown;
    return true;
}

int op_columns_extend(op_result *r, op_writable *w, uint64_t more) {
    void *before = r->storage;
    uint64_t count = r->columns.count;
    op_writable old = *w;
    int rc;
    if ((rc = extend_rare(&r->outputs, count, more)) || (rc = extend_rare(&r->counters, count, more)))
        return rc;
    if (count + more <= w->room) {
        memset(w->line + count, 0, more * sizeof *w->line);
        return OP_OK;
    }
    uint64_t room = w->room;
    if ((rc = op_columns_allocate(r, w, count + more)) != OP_OK) {
        r->storage = before;
        return rc;
    }
    if (!extend_work(r, room, w->room - room)) {
        free(before);
        return op_error_set(OP_ENOMEM, "no memory for the work of %llu events more",
                            (unsigned long long)more);
    }
#define COPY(field) memcpy(w->field, old.field, count * sizeof *w->field);
    EACH_COLUMN(COPY)
#undef COPY
    free(before);
    r->columns.count = count;
    return OP_OK;
}

void op_columns_move(const op_writable *w, uint64_t from, uint64_t to) {
#define MOVE(field) w->field[to] = w->field[from];
    EACH_COLUMN(MOVE)
#undef MOVE
}

void op_columns_free(op_result *r) {
    free(r->storage);
    r->storage = NULL;
    free(r->work);
    r->work = NULL;
    r->columns = (op_columns){0};
}

int op_result_is_folded(const op_result *r) { return r->folded; }
void op_result_columns(const op_result *r, op_columns *out) { *out = r->columns; }
void op_result_stats(const op_result *r, op_stats *out) { *out = r->stats; }
uint64_t op_result_first_id(const op_result *r) { return r->first_id; }
int64_t op_result_trace_start(const op_result *r) { return r->trace_start; }
int64_t op_result_trace_duration(const op_result *r) { return r->trace_duration; }

const op_thread_info *op_result_threads(const op_result *r, uint32_t *count) {
    *count = r->thread_count;
    return r->threads;
}

void op_result_name_thread(op_result *r, uint32_t index, const char *name) {
    if (index < r->thread_count)
        strncpy(r->threads[index].name, name, sizeof r->threads[index].name - 1);
}

const op_step *op_result_steps(const op_result *r, uint32_t *count) {
    *count = r->step_count;
    return r->steps;
}

uint32_t op_result_outputs(const op_result *r, uint64_t row) {
    return r->outputs && row < r->columns.count ? r->outputs[row] : 0;
}

uint32_t op_result_counters(const op_result *r, uint64_t row) {
    return r->counters && row < r->columns.count ? r->counters[row] : 0;
}

const uint32_t *op_result_args(const op_result *r, uint64_t *words) {
    *words = r->arg_words;
    return r->args;
}
