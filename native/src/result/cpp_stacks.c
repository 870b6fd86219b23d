#include "result/cpp_stacks.h"

#include "core/error.h"
#include "core/fault.h"
#include "core/grow.h"
#include "core/key_map.h"
#include "sources/symbols.h"

#include <string.h>

typedef struct module {
    op_module at;
    uint32_t path;
} module;

struct op_cpp_stacks {
    uint32_t *of_row;     /* 1 + innermost frame; 0: none */
    op_cpp_frame *frames; /* callers before callees */
    uint32_t count, room; /* of the frames */
    op_key_map by_caller; /* 1 + frame, by caller and address */
    module *modules;      /* mapped modules */
    uint32_t module_count, module_room;
    uint32_t thread; /* the thread that `here` is for */
    int32_t *here;   /* by the thread's frame number: the frame */
    uint32_t numbers, here_room;
    bool is_symbolized;
};

#define UNKNOWN (-3) /* a number that was not recorded */

static op_cpp_stacks *stacks_of(op_result *r) {
    if (r->cpp_stacks)
        return r->cpp_stacks;
    op_cpp_stacks *s = op_calloc(1, sizeof *s);
    uint32_t *of_row = op_calloc(r->columns.count + 1, sizeof *of_row);
    if (!s || !of_row) {
        free(s);
        free(of_row);
        return NULL;
    }
    s->of_row = of_row;
    s->thread = UINT32_MAX;
    return r->cpp_stacks = s;
}

void op_cpp_stacks_free(op_cpp_stacks *s) {
    if (!s)
        return;
    free(s->of_row);
    free(s->frames);
    op_key_map_free(&s->by_caller);
    free(s->modules);
    free(s->here);
    free(s);
}

/* ---- frames, each once -------------------------------------------------------------------- */

/* UNKNOWN: no memory. */
static int32_t add_frame(op_cpp_stacks *s, int32_t caller, uint64_t address) {
    uint32_t *known = op_key_map_at(&s->by_caller, (uint32_t)caller, address);
    if (!known || !OP_HAS_ROOM(s->frames, s->count, s->room, 256))
        return UNKNOWN;
    if (!*known) {
        s->frames[s->count] = (op_cpp_frame){.address = address, .caller = caller};
        *known = ++s->count;
    }
    return (int32_t)*known - 1;
}

/* ---- records ------------------------------------------------------------------------------ */

static void begin_thread(op_cpp_stacks *s, uint32_t thread) {
    s->thread = thread;
    s->numbers = OP_STACK_FIRST;
}

static bool make_room(op_cpp_stacks *s, uint32_t numbers) {
    if (numbers <= s->here_room)
        return true;
    uint32_t room = numbers * 2 > 256 ? numbers * 2 : 256;
    int32_t *here = op_realloc(s->here, room * sizeof *here);
    if (!here)
        return false;
    here[OP_STACK_BOTTOM] = OP_CPP_BOTTOM;
    here[OP_STACK_BEYOND] = OP_CPP_BEYOND;
    s->here = here;
    s->here_room = room;
    return true;
}

/* The frame of a thread's number. */
static int32_t frame_of(const op_cpp_stacks *s, uint32_t number) {
    return number < s->numbers ? s->here[number] : UNKNOWN;
}

/* If a chunk of a dead process's thread is lost, the numbers it assigned are unknown. The next record
 * shows where they continue. */
static int read_frames(op_cpp_stacks *s, const op_result *r, uint32_t last, const uint32_t *block) {
    uint32_t fresh = ((*block >> 8) - 1) / 2, first = last - fresh + 1;
    if (fresh == 0 || last < fresh || first < s->numbers || last > r->arg_words)
        return OP_OK;
    if (!make_room(s, last + 1))
        return OP_ENOMEM;
    while (s->numbers < first)
        s->here[s->numbers++] = UNKNOWN;
    int32_t caller = frame_of(s, block[1]);
    for (uint32_t i = 0; i < fresh; i++) {
        uint64_t address;
        memcpy(&address, block + 2 + 2 * i, sizeof address);
        if (caller != UNKNOWN) {
            caller = add_frame(s, caller, address);
            if (caller == UNKNOWN)
                return OP_ENOMEM;
        }
        s->here[s->numbers++] = caller;
    }
    return OP_OK;
}

/* Whether the block has this type and is complete. */
static bool is_block(const op_result *r, const uint32_t *block, uint32_t type) {
    return block && (*block & 0xff) == type && *block >> 8 != 0 &&
           (*block >> 8) < (uint64_t)(r->args + r->arg_words - block);
}

int op_cpp_stacks_read(op_result *r, const op_event *e, uint32_t thread, uint64_t row,
                       const uint32_t *block) {
    op_cpp_stacks *s = stacks_of(r);
    if (!s)
        return OP_ENOMEM;
    if (s->thread != thread)
        begin_thread(s, thread);
    if (!make_room(s, OP_STACK_FIRST))
        return OP_ENOMEM;
    if (is_block(r, block, OP_ARGS_STACK) && read_frames(s, r, e->aux, block) != OP_OK)
        return OP_ENOMEM;
    int32_t frame = frame_of(s, e->aux);
    if (frame >= 0)
        s->of_row[row] = (uint32_t)frame + 1;
    return OP_OK;
}

int op_cpp_stacks_file(op_result *r, uint32_t path, const uint32_t *block) {
    op_cpp_stacks *s = stacks_of(r);
    if (!s)
        return OP_ENOMEM;
    if (!is_block(r, block, OP_ARGS_MODULE) || *block >> 8 != OP_ARGS_MODULE_WORDS)
        return OP_OK;
    module found = {.path = path};
    memcpy(&found.at, block + 1, sizeof found.at);
    if (found.at.id_bytes > OP_BUILD_ID_BYTES)
        return OP_OK;
    for (uint32_t i = 0; i < s->module_count; i++)
        if (s->modules[i].path == path && memcmp(&s->modules[i].at, &found.at, sizeof found.at) == 0)
            return OP_OK;
    if (!OP_HAS_ROOM(s->modules, s->module_count, s->module_room, 32))
        return OP_ENOMEM;
    s->modules[s->module_count++] = found;
    return OP_OK;
}

/* ---- names of frames ------------------------------------------------------------------------ */

static int by_address(const void *a, const void *b) {
    const op_symbol *x = a, *y = b;
    return (x->address > y->address) - (x->address < y->address);
}

/* Collects the addresses in one module's file, sorted; returns how many. */
static uint32_t pick(const op_cpp_stacks *s, const module *m, op_symbol *out) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        op_cpp_frame *f = &s->frames[i];
        if (f->module || f->address < m->at.start || f->address >= m->at.end)
            continue;
        f->module = m->path;
        f->offset = f->address - m->at.bias;
        out[count++] = (op_symbol){.address = f->offset, .frame = i};
    }
    qsort(out, count, sizeof *out, by_address);
    return count;
}

static int symbolize(op_cpp_stacks *s) {
    op_symbol *symbols = op_malloc((size_t)s->count * sizeof *symbols + 1);
    if (!symbols)
        return op_error_set(OP_ENOMEM, "no memory for the names of %u frames", s->count);
    for (uint32_t i = 0; i < s->module_count; i++) {
        const module *m = &s->modules[i];
        uint32_t count = pick(s, m, symbols);
        if (count)
            op_symbols_find(m->path, &m->at, symbols, count);
        for (uint32_t j = 0; j < count; j++)
            s->frames[symbols[j].frame].symbol = symbols[j].name;
    }
    free(symbols);
    return OP_OK;
}

int op_result_cpp_frames(const op_result *r, const op_cpp_frame **frames, uint64_t *count) {
    op_cpp_stacks *s = r->cpp_stacks;
    *frames = NULL;
    *count = 0;
    if (!s)
        return OP_OK;
    if (!s->is_symbolized) {
        int rc = symbolize(s);
        if (rc != OP_OK)
            return rc;
        s->is_symbolized = true;
    }
    *frames = s->frames;
    *count = s->count;
    return OP_OK;
}

uint32_t op_result_cpp_stack(const op_result *r, uint64_t row) {
    return r->cpp_stacks && row < r->columns.count ? r->cpp_stacks->of_row[row] : 0;
}
