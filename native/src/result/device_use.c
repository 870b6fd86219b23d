#include "result/device_use.h"

#include "core/error.h"
#include "core/fault.h"
#include "core/grow.h"
#include "core/names.h"
#include "result/device_calls.h"
#include "result/device_time.h"

#include <string.h>

enum { HAS_WORK = 1, WAITED = 2 }; /* flags of a call */

static bool is_call(uint8_t kind) { return kind == OP_RUNTIME || kind == OP_DRIVER; }

bool op_uses_devices(const op_columns *c) {
    for (uint64_t row = 0; row < c->count; row++)
        if (c->kind[row] >= OP_RUNTIME && c->kind[row] <= OP_DEVICE_RANGE)
            return true;
    return false;
}

int32_t op_device_step(const op_columns *c, uint64_t row) {
    return c->step[c->launcher[row] >= 0 ? (uint64_t)c->launcher[row] : row];
}

int32_t op_device_charged(const op_columns *c, uint64_t row) {
    return c->launcher[row] < 0 ? -1 : op_device_owner(c, c->launcher[row]);
}

/* ---- sums ------------------------------------------------------------------------------- */

static bool make_place(op_device_sums *s) {
    if (s->count < s->capacity)
        return true;
    uint64_t one = (uint64_t)OP_USE_MEASURES * s->columns,
             capacity = s->capacity ? s->capacity * 2 : 32;
    int64_t *values = op_realloc(s->values, capacity * one * sizeof *values);
    if (!values)
        return false;
    memset(values + s->capacity * one, 0, (capacity - s->capacity) * one * sizeof *values);
    s->values = values;
    s->capacity = (uint32_t)capacity;
    return true;
}

static void add_amounts(op_device_sums *s, uint32_t place, int32_t step, const op_amount *amounts,
                        int count) {
    for (int i = 0; i < count; i++)
        *op_device_sums_at(s, place, amounts[i].measure, step) += amounts[i].amount;
}

void op_device_sums_add_whole(op_device_sums *s, int32_t step, const op_amount *amounts, int count) {
    add_amounts(s, 0, step, amounts, count);
}

bool op_device_sums_add(op_device_sums *s, int32_t row, int32_t step, const op_amount *amounts,
                        int count) {
    const op_columns *c = &s->r->columns;
    s->thing++;
    for (; row >= 0; row = c->parent[row]) {
        uint32_t group = s->r->device_group[row];
        if (group == OP_NO_GROUP || s->noted[group] == s->thing)
            continue;
        s->noted[group] = s->thing;
        if (!s->of_group[group]) {
            if (!make_place(s))
                return false;
            s->of_group[group] = s->count++;
        }
        add_amounts(s, s->of_group[group], step, amounts, count);
    }
    return true;
}

/* ---- calls ------------------------------------------------------------------------------ */

static op_call_role role_of(op_device_sums *s, uint64_t row) {
    const op_columns *c = &s->r->columns;
    if (!is_call(c->kind[row]))
        return OP_CALL_OTHER;
    uint8_t *role = &s->roles[c->name[row]];
    if (!*role) {
        uint32_t length;
        const char *name = op_names_text(c->name[row], &length);
        *role = (uint8_t)(1 + op_call_role_of(name, length));
    }
    return (op_call_role)(*role - 1);
}

/* A runtime call is carried out by driver calls; together they count as one call. */
int32_t op_device_outermost(op_device_sums *s, int32_t call) {
    const op_columns *c = &s->r->columns;
    int32_t around = c->parent[call];
    bool carries_out = c->kind[call] == OP_DRIVER && around >= 0 && c->kind[around] == OP_RUNTIME &&
                       role_of(s, (uint64_t)around) != OP_CALL_OTHER;
    return carries_out ? around : call;
}

static bool is_inner(op_device_sums *s, uint64_t row) {
    return op_device_outermost(s, (int32_t)row) != (int32_t)row;
}

/* Only for calls recorded here; a failed call did nothing. */
static bool failed(const op_device_sums *s, uint64_t row) {
    op_device_call call;
    return op_result_device_call(s->r, row, &call) && call.result != 0;
}

bool op_is_launch(op_device_sums *s, uint64_t row) {
    return role_of(s, row) == OP_CALL_LAUNCH && s->calls[row] & HAS_WORK && !is_inner(s, row);
}

/* ---- captures --------------------------------------------------------------------------- */

static int by_time(const void *a, const void *b) {
    const op_capture *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

static bool list_captures(op_device_sums *s) {
    const op_columns *c = &s->r->columns;
    uint32_t capacity = 0;
    for (uint64_t row = 0; row < c->count; row++) {
        op_call_role role = role_of(s, row);
        if ((role != OP_CALL_BEGIN_CAPTURE && role != OP_CALL_END_CAPTURE) || is_inner(s, row) ||
            failed(s, row))
            continue;
        if (!OP_HAS_ROOM(s->captures, s->capture_count, capacity, 16))
            return false;
        s->captures[s->capture_count++] =
            (op_capture){.at = c->start_ns[row], .open = role == OP_CALL_BEGIN_CAPTURE ? 1 : -1};
    }
    if (s->capture_count)
        qsort(s->captures, s->capture_count, sizeof *s->captures, by_time);
    int32_t open = 0;
    for (uint32_t i = 0; i < s->capture_count; i++) {
        s->captures[i].open = open += s->captures[i].open;
        s->captures_before = -open > s->captures_before ? -open : s->captures_before;
    }
    return true;
}

/* While a stream is being captured, launches become nodes of a graph and run nothing. */
static bool is_captured(const op_device_sums *s, int64_t at) {
    uint32_t low = 0, high = s->capture_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (s->captures[middle].at <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return s->captures_before + (low ? s->captures[low - 1].open : 0) > 0;
}

static bool add_call(op_device_sums *s, uint64_t row) {
    const op_columns *c = &s->r->columns;
    op_call_role role = role_of(s, row);
    bool has_work = s->calls[row] & HAS_WORK;
    if ((role != OP_CALL_LAUNCH && role != OP_CALL_SYNC) || is_inner(s, row) || failed(s, row))
        return true;
    if (role == OP_CALL_LAUNCH && !has_work && is_captured(s, c->start_ns[row]))
        return true;
    s->unmatched_launches += role == OP_CALL_LAUNCH && !has_work;
    const op_amount one = {.measure = role == OP_CALL_SYNC ? OP_USE_SYNCS : OP_USE_LAUNCHES,
                           .amount = 1};
    op_device_sums_add_whole(s, c->step[row], &one, 1);
    return op_device_sums_add(s, op_device_owner(c, (int32_t)row), c->step[row], &one, 1);
}

/* ---- work ------------------------------------------------------------------------------- */

static int amounts_of(op_device_sums *s, uint64_t row, op_amount out[4]) {
    const op_columns *c = &s->r->columns;
    s->untimed += c->duration_ns[row] < 0;
    if (c->kind[row] != OP_MEMCPY) {
        out[0] = (op_amount){c->kind[row] == OP_KERNEL ? OP_USE_KERNELS : OP_USE_MEMSETS, 1};
        return 1;
    }
    uint32_t length;
    const char *name = op_names_text(c->name[row], &length);
    op_copy_direction direction = op_copy_direction_of(name, length);
    int64_t bytes = op_copy_bytes(s->r, row);
    s->undirected += direction == OP_COPY_UNKNOWN;
    s->unsized += bytes < 0;
    bytes = bytes < 0 ? 0 : bytes;
    out[0] = (op_amount){OP_USE_COPIES, 1};
    out[1] = (op_amount){OP_USE_BYTES, bytes};
    if (direction == OP_COPY_UNKNOWN)
        return 2;
    out[2] = (op_amount){OP_USE_COPIES_HTOD + (int)direction, 1};
    out[3] = (op_amount){OP_USE_BYTES_HTOD + (int)direction, bytes};
    return 4;
}

/* Nobody waits for copies between device memories (CUDA's "API synchronization behavior"). */
static bool is_waited_for(op_device_sums *s, uint64_t row, int32_t call) {
    uint32_t length;
    const char *name = op_names_text(s->r->columns.name[row], &length);
    op_copy_direction direction = op_copy_direction_of(name, length);
    return role_of(s, (uint64_t)call) == OP_CALL_COPY && direction != OP_COPY_DTOD &&
           direction != OP_COPY_PTOP;
}

static bool add_work(op_device_sums *s, uint64_t row) {
    const op_columns *c = &s->r->columns;
    op_amount amounts[5];
    int moved = amounts_of(s, row, amounts), count = moved, call = c->launcher[row];
    if (call >= 0 && is_call(c->kind[call])) {
        call = op_device_outermost(s, call);
        s->calls[call] |= HAS_WORK;
        if (c->kind[row] == OP_MEMCPY && !(s->calls[call] & WAITED) && is_waited_for(s, row, call)) {
            s->calls[call] |= WAITED;
            amounts[count++] = (op_amount){OP_USE_SYNCS, 1};
        }
    } else if (s->columns == 1 || c->start_ns[row] >= s->r->steps[0].start_ns) {
        s->unmatched_kernels++; /* from the first step on, any step may have launched it */
    }
    int32_t step = op_device_step(c, row);
    op_device_sums_add_whole(s, step, amounts, count);
    return op_device_sums_add(s, op_device_charged(c, row), step, amounts, count) &&
           op_device_sums_add(s, (int32_t)row, step, amounts, moved);
}

/* A wait whose call was not recorded. */
static void add_wait(op_device_sums *s, uint64_t row) {
    const op_columns *c = &s->r->columns;
    uint32_t length;
    const char *name = op_names_text(c->name[row], &length);
    static const char on_device[] = "Stream Wait Event";
    const op_amount one = {OP_USE_SYNCS, 1};
    bool waits_on_device = length == sizeof on_device - 1 && memcmp(name, on_device, length) == 0;
    if (c->launcher[row] < 0 && !waits_on_device)
        op_device_sums_add_whole(s, c->step[row], &one, 1);
}

static bool add_all(op_device_sums *s) {
    const op_columns *c = &s->r->columns;
    bool ok = make_place(s) && list_captures(s);
    s->count = 1; /* place 0 is the whole */
    for (uint64_t row = 0; row < c->count && ok; row++)
        if (op_is_device_work(c->kind[row]))
            ok = add_work(s, row);
        else if (c->kind[row] == OP_SYNC)
            add_wait(s, row);
    for (uint64_t row = 0; row < c->count && ok; row++)
        ok = add_call(s, row);
    return ok && op_device_busy_add(s) == OP_OK && op_device_queue_add(s) == OP_OK;
}

/* ---- of a result ------------------------------------------------------------------------ */

static void release(op_device_sums *s) {
    free(s->of_group);
    free(s->noted);
    free(s->launchers);
    free(s->values);
    free(s->roles);
    free(s->calls);
    free(s->captures);
    free(s);
}

void op_device_use_forget(op_result *r) {
    if (r->device_sums)
        release(r->device_sums);
    free(r->device_group);
    r->device_sums = NULL;
    r->device_group = NULL;
}

static op_device_sums *sums_of(const op_result *r) {
    op_device_sums *s = op_calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->r = r;
    s->columns = r->step_count + 1;
    s->of_group = op_calloc(r->device_group_count + 1, sizeof *s->of_group);
    s->noted = op_calloc(r->device_group_count + 1, sizeof *s->noted);
    s->launchers = op_device_launchers(r);
    s->roles = op_calloc(op_names_count() + 1, 1);
    s->calls = op_calloc(r->columns.count + 1, 1);
    if (s->of_group && s->noted && s->launchers && s->roles && s->calls && add_all(s))
        return s;
    release(s);
    return NULL;
}

int op_result_device_use(op_result *r, op_device_use *out) {
    *out = (op_device_use){0};
    if (!op_uses_devices(&r->columns))
        return OP_OK;
    if (!r->device_group)
        return op_error_set(OP_ESTATE, "device use is summed up by rows: ask for the rows first");
    if (!r->device_sums)
        r->device_sums = sums_of(r);
    const op_device_sums *s = r->device_sums;
    if (!s)
        return op_error_set(OP_ENOMEM, "no memory to sum up what devices did");
    *out = (op_device_use){.of_group = s->of_group,
                           .launcher = s->launchers,
                           .values = s->values,
                           .count = s->count,
                           .unmatched_launches = s->unmatched_launches,
                           .unmatched_kernels = s->unmatched_kernels,
                           .untimed = s->untimed,
                           .unsized = s->unsized,
                           .undirected = s->undirected};
    return OP_OK;
}
