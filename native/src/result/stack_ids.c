#include "result/stack_ids.h"

#include "core/fault.h"
#include "core/grow.h"
#include "core/key_map.h"
#include "core/names.h"

#include <string.h>

#define NONE UINT32_MAX

/* ---- stacks, each stored once ------------------------------------------------------------------ */

typedef struct entry {
    uint32_t rest; /* the stack without this entry; 0: this is the last */
    uint32_t name, line;
} entry;

typedef struct entries {
    entry *all; /* from 1 on */
    uint32_t count, capacity;
    op_key_map ids;
    bool failed; /* no memory */
} entries;

static uint32_t id_of(entries *s, entry e) {
    uint32_t *known = op_key_map_at(&s->ids, (uint64_t)e.rest << 32 | e.name, e.line);
    if (!known || !OP_HAS_ROOM(s->all, s->count + 1, s->capacity, 256)) {
        s->failed = true;
        return 0;
    }
    if (!*known) {
        s->all[++s->count] = e;
        *known = s->count;
    }
    return *known;
}

static void free_entries(entries *s) {
    free(s->all);
    op_key_map_free(&s->ids);
}

/* ---- hidden calls ------------------------------------------------------------------------------- */

/* As _HIDDEN_FRAMES in pytest_opprof/events/names.py: parts of the file's and the function's names. */
static const char *const hidden[][2] = {{"autograd/__init__", "_make_grads"},
                                        {"autograd/__init__", "backward"},
                                        {"torch/tensor", "backward"},
                                        {"_internal/common_utils", "prof_callable"},
                                        {"_internal/common_utils", "prof_func_call"},
                                        {"_internal/common_utils", "prof_meth_call"}};

static bool contains(const char *text, uint32_t length, const char *part) {
    return memmem(text, length, part, strlen(part)) != NULL;
}

static bool is_hidden(uint32_t name) {
    uint32_t length;
    const char *text = op_names_text(name, &length);
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
        if (contains(text, length, hidden[i][0]) && contains(text, length, hidden[i][1]))
            return true;
    return false;
}

/* ---- the calls around each event ----------------------------------------------------------- */

typedef struct finder {
    const op_result *r;
    entries stacks;   /* outermost call first: `rest` is the calls around */
    uint32_t *ids;    /* by row: the calls around it */
    uint32_t *calls;  /* by row: the call around it; NONE: none */
    uint32_t *lines;  /* by row: the line of that call; 0: unknown */
    uint8_t *visible; /* by name: 0 unknown, 1 shown, 2 hidden */
    uint32_t name_count;
    struct {
        uint32_t thread, first, end; /* the thread, and its slice of the open calls */
        int64_t from_ns, until_ns;   /* while exactly these are open */
        uint32_t around, innermost;  /* id of all but the innermost; NONE: none is open */
    } open;
} finder;

static uint32_t push(finder *f, uint32_t stack, uint32_t name, uint32_t line) {
    uint8_t looked_up = 0, *visible = name < f->name_count ? &f->visible[name] : &looked_up;
    if (*visible == 0)
        *visible = is_hidden(name) ? 2 : 1;
    return *visible == 2 ? stack
                         : id_of(&f->stacks, (entry){.rest = stack, .name = name, .line = line});
}

static void find_open_calls(finder *f, uint32_t thread, int64_t at_ns) {
    const op_open_call *all = f->r->open_calls;
    if (f->open.thread != thread) {
        uint32_t count = f->r->open_call_count, first = 0;
        while (first < count && all[first].thread != thread)
            first++;
        f->open.thread = thread;
        f->open.first = f->open.end = first;
        while (f->open.end < count && all[f->open.end].thread == thread)
            f->open.end++;
    }
    f->open.from_ns = at_ns;
    f->open.until_ns = INT64_MAX;
    f->open.around = 0;
    f->open.innermost = NONE;
    for (uint32_t i = f->open.first; i < f->open.end; i++) {
        const op_open_call *call = &all[i];
        if (call->end_ns >= 0 && call->end_ns <= at_ns)
            continue;
        if (call->end_ns >= 0 && call->end_ns < f->open.until_ns)
            f->open.until_ns = call->end_ns;
        if (f->open.innermost != NONE)
            f->open.around =
                push(f, f->open.around, all[f->open.innermost].name, all[f->open.innermost].line);
        f->open.innermost = i;
    }
}

/* The stack of calls that were open before the window and still are. */
static uint32_t open_calls(finder *f, uint64_t row, uint32_t line) {
    const op_columns *c = &f->r->columns;
    uint32_t thread = c->thread[row];
    int64_t at_ns = c->start_ns[row];
    if (f->open.thread != thread || at_ns < f->open.from_ns || at_ns >= f->open.until_ns)
        find_open_calls(f, thread, at_ns);
    if (f->open.innermost == NONE)
        return 0;
    const op_open_call *innermost = &f->r->open_calls[f->open.innermost];
    return push(f, f->open.around, innermost->name, line ? line : innermost->line);
}

/* A parent precedes what is inside it. The line of an op applies to all that runs in it. */
static void find_calls(finder *f) {
    const op_columns *c = &f->r->columns;
    for (uint64_t row = 0; row < c->count && !f->stacks.failed; row++) {
        int32_t p = c->parent[row];
        uint32_t line = c->line[row], call = NONE;
        if (p >= 0 && (c->kind[p] == OP_PYTHON_CALL || c->kind[p] == OP_C_CALL)) {
            call = (uint32_t)p;
        } else if (p >= 0) {
            call = f->calls[p];
            line = line ? line : f->lines[p];
        }
        f->calls[row] = call;
        f->lines[row] = line;
        f->ids[row] =
            call == NONE ? open_calls(f, row, line) : push(f, f->ids[call], c->name[call], line);
    }
}

/* ---- backward ops -------------------------------------------------------------------------- */

/* The row + 1 of each forward op, by thread and autograd's number; of ops that share both, as `linear`
 * and the `t` in it do, the first. */
static bool note_forwards(op_key_map *out, const op_result *r) {
    const op_columns *c = &r->columns;
    for (uint64_t row = 0; row < c->count; row++) {
        if (c->sequence_nr[row] < 0 || c->forward_thread[row] != 0)
            continue;
        uint64_t thread = r->threads[c->thread[row]].torch_thread;
        uint32_t *known = op_key_map_at(out, thread, (uint64_t)c->sequence_nr[row]);
        if (!known)
            return false;
        if (*known == 0)
            *known = (uint32_t)row + 1;
    }
    return true;
}

static uint32_t forward_of(const op_key_map *forwards, const op_columns *c, uint64_t row) {
    const uint32_t *known = c->sequence_nr[row] < 0 ? NULL
                                                    : op_key_map_find(forwards, c->forward_thread[row],
                                                                      (uint64_t)c->sequence_nr[row]);
    return known ? *known - 1 : NONE;
}

/* What runs in a backward op gets the calls of its forward op; if that is unknown, it keeps its own. */
static bool hand_to_backward(const op_result *r, uint32_t *ids) {
    const op_columns *c = &r->columns;
    op_key_map forwards = {0};
    bool worked = note_forwards(&forwards, r);
    uint32_t *forward = op_malloc(c->count * sizeof *forward + 1);
    uint32_t *own = op_malloc(c->count * sizeof *own + 1);
    worked = worked && forward && own;
    if (worked) {
        memcpy(own, ids, c->count * sizeof *own);
        for (uint64_t row = 0; row < c->count; row++) {
            if (c->kind[row] == OP_TORCH && c->scope[row] == OP_SCOPE_BACKWARD)
                forward[row] = forward_of(&forwards, c, row);
            else
                forward[row] = c->parent[row] < 0 ? NONE : forward[c->parent[row]];
            if (forward[row] != NONE)
                ids[row] = own[forward[row]];
        }
    }
    free(forward);
    free(own);
    op_key_map_free(&forwards);
    return worked;
}

/* ---- the innermost calls ----------------------------------------------------------------------- */

/* Replaces ids of whole stacks by ids of their `depth` innermost calls. */
static bool cut(const entries *whole, uint32_t *ids, uint64_t count, uint32_t depth) {
    entries kept = {0}; /* innermost call first */
    uint32_t *cut_to = op_calloc((uint64_t)whole->count + 1, sizeof *cut_to);
    for (uint64_t row = 0; cut_to && row < count && !kept.failed; row++) {
        uint32_t *known = &cut_to[ids[row]];
        if (*known == 0)
            for (uint32_t at = ids[row], i = 0; at && i < depth; at = whole->all[at].rest, i++)
                *known = id_of(
                    &kept,
                    (entry){.rest = *known, .name = whole->all[at].name, .line = whole->all[at].line});
        ids[row] = *known;
    }
    bool worked = cut_to && !kept.failed;
    free(cut_to);
    free_entries(&kept);
    return worked;
}

uint32_t *op_stack_ids(const op_result *r, uint32_t depth) {
    uint64_t n = r->columns.count;
    finder f = {.r = r, .name_count = op_names_count() + 1, .open.thread = NONE};
    f.ids = op_malloc(n * sizeof *f.ids + 1);
    f.calls = op_malloc(n * sizeof *f.calls + 1);
    f.lines = op_malloc(n * sizeof *f.lines + 1);
    f.visible = op_calloc(f.name_count, 1);
    bool worked = f.ids && f.calls && f.lines && f.visible;
    if (worked)
        find_calls(&f);
    worked =
        worked && !f.stacks.failed && hand_to_backward(r, f.ids) && cut(&f.stacks, f.ids, n, depth);
    free(f.calls);
    free(f.lines);
    free(f.visible);
    free_entries(&f.stacks);
    if (worked)
        return f.ids;
    free(f.ids);
    return NULL;
}
