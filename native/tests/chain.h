/* Known stacks: loads chain.c, a library that calls back. Frames of the recording module are left out
 * on top of a stack, so the test's own functions are not seen there. */
#ifndef CHAIN_H
#define CHAIN_H

#include "fixture.h"
#include "sources/unwinding.h"

#include <dlfcn.h>

typedef void callback(void *);
typedef void chain(callback *call, void *data);
typedef void deep_chain(callback *call, void *data, unsigned depth);

static folder here;
static void *library;
static chain *outer, *inner;
static deep_chain *deep;

static inline void load(const char *path) {
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CHECK(library != NULL);
    *(void **)&outer = dlsym(library, "chain_outer");
    *(void **)&inner = dlsym(library, "chain_inner");
    *(void **)&deep = dlsym(library, "chain_deep");
    CHECK(outer && inner && deep);
}

static inline void start(uint32_t frames) {
    CHECK_OK(op_window_unwind(frames));
    CHECK_OK(op_window_start());
}

static inline void finish(op_result *r) {
    check_sound(r);
    op_result_free(r);
    CHECK_OK(op_window_unwind(0));
    close_session(&here);
    here = make_folder();
}

static inline void record_named(void *name) {
    op_slot slot = op_begin_unwound(name_id(name), OP_RANGE, OP_SCOPE_USER, 0, NULL, 0);
    op_end(&slot);
}

/* ---- reading a stack ---------------------------------------------------------------------- */

enum { MOST = OP_STACK_FRAMES + 1 };

typedef struct stack {
    uint32_t count;
    int32_t end; /* OP_CPP_BOTTOM or OP_CPP_BEYOND */
    const char *symbols[MOST], *modules[MOST];
    op_cpp_frame frames[MOST];
} stack;

static inline const char *text_of(uint32_t id) {
    uint32_t length;
    return id ? op_name_text(id, &length) : "";
}

static inline stack stack_of_row(const op_result *r, uint64_t row) {
    stack s = {.end = OP_CPP_BOTTOM};
    const op_cpp_frame *frames;
    uint64_t count;
    CHECK_OK(op_result_cpp_frames(r, &frames, &count));
    int32_t at = (int32_t)op_result_cpp_stack(r, row) - 1;
    for (; at >= 0; at = frames[at].caller) {
        CHECK((uint64_t)at < count && frames[at].caller < at && s.count < MOST);
        s.frames[s.count] = frames[at];
        s.modules[s.count] = text_of(frames[at].module);
        s.symbols[s.count++] = text_of(frames[at].symbol);
        s.end = frames[at].caller;
    }
    return s;
}

static inline stack stack_of(const op_result *r, const char *name) {
    return stack_of_row(r, (uint64_t)row_of(r, name));
}

static const char *const expected[] = {"chain_hidden", "chain_inner", "shapes::area(double, int)",
                                       "chain_outer"};

/* Without a C++ library the linker's names stay mangled. */
static inline bool is_area(const char *symbol) {
    return strcmp(symbol, expected[2]) == 0 || strcmp(symbol, "_ZN6shapes4areaEdi") == 0;
}

static inline void check_chain(const stack *s) {
    CHECK(s->count > 4);
    for (int i = 0; i < 4; i++) {
        if (i == 2)
            CHECK(is_area(s->symbols[i]));
        else
            CHECK_TEXT(s->symbols[i], expected[i]);
        CHECK(strstr(s->modules[i], "libchain1.so") != NULL);
        CHECK(s->frames[i].offset > 0 && s->frames[i].offset < s->frames[i].address);
    }
}

static inline bool has_symbol(const stack *s, const char *symbol) {
    for (uint32_t i = 0; i < s->count; i++)
        if (strcmp(s->symbols[i], symbol) == 0)
            return true;
    return false;
}

#endif
