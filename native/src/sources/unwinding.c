#include "sources/unwinding.h"

#include "core/collector.h"
#include "core/error.h"
#include "core/fault.h"
#include "core/loaded.h"
#include "core/names.h"
#include "core/record.h"

#include <string.h>
#include <unwind.h>

#define PLACES (1u << 14)
#define FILES 64u
#define ASKERS 8u

static op_collector *const self = &op_the_collector;

typedef struct range {
    uint64_t start, end;
} range;

typedef struct place {
    uint64_t address;
    uint32_t caller, number; /* 0: empty */
} place;

struct op_known_frames {
    uint32_t window;
    uint32_t count; /* numbers assigned */
    /* The last stack, outermost first: the next one mostly differs at its inner end. */
    uint32_t last_count, last_root;
    uint64_t last[OP_STACK_FRAMES];
    uint32_t last_numbers[OP_STACK_FRAMES];
    uint32_t file_count;
    range files[FILES]; /* recorded files, in a ring */
    place places[PLACES];
};

uint32_t op_unwinding;

/* ---- taking a stack ----------------------------------------------------------------------------- */

/* Modules that call op_unwind_take(): ours, which are never unloaded. Their frames on top of a stack
 * are not part of the program. */
static range askers[ASKERS];
static uint32_t asker_count;

static bool is_in(const range *r, uint64_t address) { return address >= r->start && address < r->end; }

static range module_that_asks(uint64_t address) {
    uint32_t count = __atomic_load_n(&asker_count, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count; i++)
        if (is_in(&askers[i], address))
            return askers[i];
    op_module module;
    if (!op_loaded_around(address, &module, NULL))
        return (range){0, 0};
    range found = {module.start, module.end};
    pthread_mutex_lock(&self->lock);
    if (asker_count < ASKERS) {
        askers[asker_count] = found;
        __atomic_store_n(&asker_count, asker_count + 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&self->lock);
    return found;
}

typedef struct walk {
    op_frames *out;
    uint32_t most, met;
    uint64_t last_cfa;
    range asker;
} walk;

static _Unwind_Reason_Code add_frame(struct _Unwind_Context *context, void *data) {
    walk *w = data;
    int is_exact = 0; /* a frame interrupted by a signal returns to the instruction itself */
    uint64_t address = _Unwind_GetIPInfo(context, &is_exact);
    uint64_t cfa = _Unwind_GetCFA(context);
    if (address == 0)
        return _URC_END_OF_STACK;
    if (!is_exact)
        address--;
    uint32_t met = w->met++;
    if (met == 0) /* op_unwind_take() itself */
        return _URC_NO_REASON;
    if (met == 1)
        w->asker = module_that_asks(address);
    op_frames *out = w->out;
    if (out->count == 0 && is_in(&w->asker, address))
        return _URC_NO_REASON;
    /* A frame that unwinds to itself would do so forever. */
    if (out->count && cfa == w->last_cfa && address == out->at[out->count - 1])
        return _URC_END_OF_STACK;
    w->last_cfa = cfa;
    if (out->count == w->most) {
        out->is_cut = true;
        return _URC_END_OF_STACK;
    }
    out->at[out->count++] = address;
    return _URC_NO_REASON;
}

void op_unwind_take(op_frames *out) {
    walk w = {.out = out, .most = op_unwinds()};
    out->count = 0;
    out->is_cut = false;
    if (w.most && op_recording())
        _Unwind_Backtrace(add_frame, &w);
}

/* Makes the unwinder set up now what it needs for its first stack. */
static _Unwind_Reason_Code go_on(struct _Unwind_Context *context, void *data) {
    uint64_t *sum = data;
    *sum += _Unwind_GetIP(context);
    return _URC_NO_REASON;
}

int op_window_unwind(uint32_t frames) {
    uint64_t sum = 0;
    pthread_mutex_lock(&self->lock);
    int rc = OP_OK;
    if (op_open_window())
        rc = op_error_set(OP_EBUSY, "a window is open: recording of C++ stacks cannot change");
    else if (frames > OP_STACK_FRAMES)
        rc = op_error_set(OP_ELIMIT, "%u frames: at most %u of a stack are kept", frames,
                          OP_STACK_FRAMES);
    else
        __atomic_store_n(&op_unwinding, frames, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&self->lock);
    if (rc == OP_OK && frames)
        _Unwind_Backtrace(go_on, &sum);
    return rc;
}

/* ---- recording a stack --------------------------------------------------------------------------- */

static place *place_of(op_known_frames *k, uint32_t caller, uint64_t address) {
    uint64_t h = (address ^ (uint64_t)caller << 40 ^ caller) * 0x9e3779b97f4a7c15u;
    return &k->places[(h ^ h >> 29) >> 32 & (PLACES - 1)];
}

static op_known_frames *frames_of(op_thread *t) {
    op_known_frames *k = t->frames;
    if (!k) {
        k = t->frames = op_calloc(1, sizeof *k);
        if (!k)
            return NULL;
    } else if (k->window != t->window) {
        memset(k->places, 0, sizeof k->places);
    }
    if (k->window != t->window) {
        k->window = t->window;
        k->count = k->last_count = k->file_count = 0;
    }
    return k;
}

/* How many frames are known, from the outermost on, and the number of the last of them. */
static uint32_t follow(op_known_frames *k, const op_frames *f, uint32_t root, uint32_t *number) {
    uint32_t known = 0;
    uint32_t shared = root == k->last_root ? k->last_count : 0;
    *number = root;
    while (known < f->count && known < shared && f->at[f->count - 1 - known] == k->last[known])
        *number = k->last_numbers[known++];
    for (; known < f->count; known++) {
        const place *p = place_of(k, *number, f->at[f->count - 1 - known]);
        if (!p->number || p->caller != *number || p->address != f->at[f->count - 1 - known])
            break;
        *number = p->number;
        k->last[known] = p->address;
        k->last_numbers[known] = p->number;
    }
    return known;
}

static bool has_file(const op_known_frames *k, uint64_t address) {
    uint32_t count = k->file_count < FILES ? k->file_count : FILES;
    for (uint32_t i = 0; i < count; i++)
        if (is_in(&k->files[i], address))
            return true;
    return false;
}

/* Records the file around an address. Out of line, because few frames need the path's stack space. */
static __attribute__((noinline)) void note_file(op_known_frames *k, uint64_t address) {
    op_module module;
    char path[OP_LOADED_PATH];
    uint32_t words[1 + OP_ARGS_MODULE_WORDS] = {OP_ARGS_HEADER(OP_ARGS_MODULE, OP_ARGS_MODULE_WORDS)};
    if (!op_loaded_around(address, &module, path))
        return;
    memcpy(words + 1, &module, sizeof module);
    op_instant(op_names_intern(path, strlen(path)), OP_MODULE, 0, words, 1 + OP_ARGS_MODULE_WORDS);
    k->files[k->file_count++ % FILES] = (range){module.start, module.end};
}

void op_unwind_note(const op_slot *slot, const op_frames *f) {
    if (!f->count || !op_is_innermost(slot))
        return;
    op_thread *t = op_self;
    op_known_frames *k = frames_of(t);
    if (!k)
        return;
    uint32_t root = f->is_cut ? OP_STACK_BEYOND : OP_STACK_BOTTOM, caller;
    uint32_t known = follow(k, f, root, &caller), fresh = f->count - known;
    uint32_t words[2 + 2 * OP_STACK_FRAMES];
    words[0] = OP_ARGS_HEADER(OP_ARGS_STACK, 1 + 2 * fresh);
    words[1] = caller;
    for (uint32_t i = 0; i < fresh; i++) {
        uint64_t address = f->at[fresh - 1 - i];
        memcpy(words + 2 + 2 * i, &address, sizeof address);
        if (!has_file(k, address))
            note_file(k, address);
    }
    uint32_t word_count = fresh ? 2 + 2 * fresh : 0;
    k->last_count = known;
    k->last_root = root;
    if (!op_thread_ready(slot->window, word_count)) /* these frames get no numbers */
        return;
    for (uint32_t i = 0; i < fresh; i++) {
        uint64_t address = f->at[fresh - 1 - i];
        uint32_t number = OP_STACK_FIRST + k->count++;
        *place_of(k, caller, address) = (place){address, caller, number};
        k->last[known + i] = address;
        k->last_numbers[known + i] = caller = number;
    }
    k->last_count = f->count;
    op_instant_numbered(OP_NAME_NONE, OP_STACK, 0, caller, words, word_count);
}

void op_known_frames_free(op_known_frames *known) { free(known); }
