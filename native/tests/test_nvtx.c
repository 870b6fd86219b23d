/* A copy of the NVTX headers' globals, as in a library that emits ranges, before the collector. */
#include "core/fault.h"
#include "fixture.h"
#include "others.h"
#include "sources/nvtx_abi.h"

enum { CORE_SIZE = 16, CORE2_SIZE = 16 }; /* of NvtxCallbackIdCore and NvtxCallbackIdCore2 */

static nvtx_function core[CORE_SIZE], core2[CORE2_SIZE];
static nvtx_function *core_slots[CORE_SIZE + 1], *core2_slots[CORE2_SIZE + 1];
static uint32_t injected_version;

static int functions_of(int module, nvtx_function ***table, unsigned *count) {
    if (module != NVTX_MODULE_CORE && module != NVTX_MODULE_CORE2)
        return 0;
    *table = module == NVTX_MODULE_CORE ? core_slots : core2_slots;
    *count = module == NVTX_MODULE_CORE ? CORE_SIZE : CORE2_SIZE;
    return 1;
}

static void set_version(uint32_t version) { injected_version = version; }

static nvtx_callbacks_table callbacks = {sizeof callbacks, functions_of};
static nvtx_version_table version = {sizeof version, 3, 0, set_version};

static const void *export_table(uint32_t id) {
    return id == NVTX_TABLE_CALLBACKS ? (const void *)&callbacks
           : id == NVTX_TABLE_VERSION ? (const void *)&version
                                      : NULL;
}

static const void *no_table(uint32_t id) {
    (void)id;
    return NULL;
}

int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t));

/* The calls of nvToolsExt.h, through those tables. */
#define MARK(text) ((void (*)(const char *))core[2])(text)
#define START(text) ((uint64_t (*)(const char *))core[5])(text)
#define END(number) ((void (*)(uint64_t))core[7])(number)
#define PUSH_EX(a) ((int (*)(const nvtx_attributes *))core[8])(a)
#define PUSH(text) ((int (*)(const char *))core[9])(text)
#define PUSH_WIDE(text) ((int (*)(const wchar_t *))core[10])(text)
#define POP() ((int (*)(void))core[11])()
#define NAME_CATEGORY(n, text) ((void (*)(uint32_t, const char *))core[12])(n, text)
#define DOMAIN_MARK(d, a) ((void (*)(void *, const nvtx_attributes *))core2[1])(d, a)
#define DOMAIN_START(d, a) ((uint64_t (*)(void *, const nvtx_attributes *))core2[2])(d, a)
#define DOMAIN_END(d, number) ((void (*)(void *, uint64_t))core2[3])(d, number)
#define DOMAIN_PUSH(d, a) ((int (*)(void *, const nvtx_attributes *))core2[4])(d, a)
#define DOMAIN_POP(d) ((int (*)(void *))core2[5])(d)
#define DOMAIN_NAME_CATEGORY(d, n, text)                                                               \
    ((void (*)(void *, uint32_t, const char *))core2[8])(d, n, text)
#define REGISTER(d, text) ((uintptr_t (*)(void *, const char *))core2[10])(d, text)
#define DOMAIN(text) ((void *(*)(const char *))core2[12])(text)
#define DOMAIN_WIDE(text) ((void *(*)(const wchar_t *))core2[13])(text)

static nvtx_attributes message(const char *text) {
    return (nvtx_attributes){.version = 3,
                             .size = sizeof(nvtx_attributes),
                             .message_type = NVTX_ASCII,
                             .message.ascii = text};
}

static void the_headers_tables_are_filled(void) {
    CHECK_EQ(InitializeInjectionNvtx2(NULL), 0);
    CHECK_EQ(InitializeInjectionNvtx2(no_table), 0);
    for (unsigned i = 1; i < CORE_SIZE; i++)
        core_slots[i] = &core[i];
    for (unsigned i = 1; i < CORE2_SIZE; i++)
        core2_slots[i] = &core2[i];
    for (int again = 0; again < 2; again++) /* once per library that embeds the headers */
        CHECK_EQ(InitializeInjectionNvtx2(export_table), 1);
    CHECK_EQ(injected_version, 3);
    for (unsigned i = 1; i <= 13; i++)
        CHECK(core[i] != NULL);
    CHECK(core2[6] == NULL); /* resources: not recorded, so the header's wrapper does nothing */
}

static void nothing_is_tracked_without_a_window(void) {
    CHECK_EQ(PUSH("unseen"), NVTX_NO_TRACKING);
    CHECK_EQ(POP(), NVTX_NO_TRACKING);
    CHECK_EQ(START("unseen"), 0);
    END(0);
    MARK("unseen");
}

static void ranges_nest_and_say_how_deep(void) {
    CHECK_OK(op_window_start());
    CHECK_EQ(PUSH("outer"), 0);
    CHECK_EQ(PUSH_WIDE(L"日本 \U0001f600 é"), 1);
    MARK("here");
    CHECK_EQ(POP(), 1);
    CHECK_EQ(POP(), 0);
    CHECK_EQ(POP(), NVTX_NO_TRACKING); /* one more than was pushed */
    op_result *r = stop_window();
    op_columns c = columns_of(r);
    CHECK_EQ(c.count, 3);
    int64_t inner = row_of(r, "日本 😀 é");
    CHECK_EQ(c.kind[inner], OP_NVTX);
    CHECK_EQ(c.scope[inner], OP_SCOPE_USER);
    CHECK_EQ(c.parent[inner], row_of(r, "outer"));
    CHECK_EQ(c.kind[row_of(r, "here")], OP_MARK);
    CHECK_EQ(c.parent[row_of(r, "here")], inner);
    CHECK_EQ(c.duration_ns[row_of(r, "here")], 0);
    CHECK_EQ(fields_of(r, inner).count, 0);
    op_result_free(r);
}

/* Each domain has its own stack, so ranges of two domains may overlap. */
static void domains_are_stacks_of_their_own(void) {
    void *left = DOMAIN("left"), *right = DOMAIN_WIDE(L"right");
    CHECK(left && right && left != right);
    CHECK(DOMAIN("left") == left);
    nvtx_attributes a = message("a"), b = message("b");
    CHECK_OK(op_window_start());
    CHECK_EQ(DOMAIN_PUSH(left, &a), 0);
    CHECK_EQ(DOMAIN_PUSH(right, &b), 0);
    CHECK_EQ(DOMAIN_POP(left), 0);
    CHECK_EQ(DOMAIN_POP(left), NVTX_NO_TRACKING);
    CHECK_EQ(POP(), NVTX_NO_TRACKING);
    CHECK_EQ(DOMAIN_POP(right), 0);
    op_result *r = stop_window();
    op_columns c = columns_of(r);
    CHECK_EQ(c.flags[row_of(r, "a")], OP_FLAG_ASYNC);
    CHECK_EQ(c.flags[row_of(r, "b")], 0);
    CHECK_EQ(fields_of(r, row_of(r, "b")).fields[0].values[0], name_id("right"));
    op_result_free(r);
}

static void ranges_carry_category_colour_and_payload(void) {
    void *library = DOMAIN("library");
    DOMAIN_NAME_CATEGORY(library, 7, "io");
    NAME_CATEGORY(7, "of the default domain");
    nvtx_attributes a = message("full");
    a.message_type = NVTX_REGISTERED;
    a.message.registered = REGISTER(library, "registered");
    a.category = 7;
    a.color_type = NVTX_COLOR_ARGB;
    a.color = 0xff00aa33;
    const struct {
        int32_t type;
        uint64_t bits;
        uint32_t stored;
        int64_t value;
    } payloads[] = {{NVTX_U64, UINT64_MAX, OP_FIELD_UNSIGNED, -1},
                    {NVTX_I64, (uint64_t)-5, OP_FIELD_SIGNED, -5},
                    {NVTX_U32, 0xdeadbeef00000009, OP_FIELD_UNSIGNED, 9},
                    {NVTX_I32, 0x00000000fffffffe, OP_FIELD_SIGNED, -2}};
    CHECK_OK(op_window_start());
    for (size_t i = 0; i < 4; i++) {
        a.payload_type = payloads[i].type;
        a.payload.u64 = payloads[i].bits;
        DOMAIN_MARK(library, &a);
    }
    a.payload_type = NVTX_FLOAT;
    a.payload.single = 2.5f;
    a.category = 8; /* which has no name */
    DOMAIN_PUSH(library, &a);
    DOMAIN_POP(library);
    op_result *r = stop_window();
    CHECK_EQ(columns_of(r).count, 5);
    CHECK_EQ(columns_of(r).name[0], name_id("registered"));
    for (int64_t row = 0; row < 4; row++) {
        field_list f = fields_of(r, row);
        CHECK_EQ(f.count, 4);
        CHECK_EQ(f.fields[0].values[0], name_id("library"));
        CHECK_EQ(f.fields[1].values[0], name_id("io"));
        CHECK_EQ(f.fields[2].values[0], 0xff00aa33);
        CHECK_EQ(f.fields[3].type, payloads[row].stored);
        CHECK_EQ(field_number(&f.fields[3], 0), payloads[row].value);
    }
    field_list f = fields_of(r, 4);
    CHECK_EQ(field_number(&f.fields[1], 0), 8);
    CHECK(field_real(&f.fields[3], 0) == 2.5);
    op_result_free(r);
}

/* A caller compiled against an older structure: nothing beyond its end is read. */
static void shorter_attributes_are_understood(void) {
    nvtx_attributes a = message("beyond the end");
    a.size = offsetof(nvtx_attributes, message_type);
    a.color_type = NVTX_COLOR_ARGB;
    nvtx_attributes tiny = message("beyond the end");
    tiny.size = 8;
    CHECK_OK(op_window_start());
    PUSH_EX(&a);
    PUSH_EX(&tiny);
    PUSH_EX(NULL);
    POP();
    POP();
    op_result *r = stop_window();
    CHECK_EQ(columns_of(r).count, 2);
    CHECK_EQ(columns_of(r).name[0], OP_NAME_NONE);
    CHECK_EQ(fields_of(r, 0).count, 1);
    CHECK_EQ(fields_of(r, 1).count, 0);
    op_result_free(r);
}

static void *end_there(void *number) {
    END(*(uint64_t *)number);
    return NULL;
}

static void started_ranges_end_in_any_order_on_any_thread(void) {
    CHECK_OK(op_window_start());
    uint64_t first = START("first"), second = START("second");
    CHECK(first != 0 && second != 0 && first != second);
    PUSH("nested");
    POP();
    END(first);
    END(first); /* already ended */
    uint64_t third = START("third");
    CHECK(third != first);
    on_another_thread(end_there, &second);
    op_result *r = stop_window();
    op_columns c = columns_of(r);
    CHECK_EQ(c.count, 4);
    CHECK_EQ(c.parent[row_of(r, "nested")], -1); /* they overlap others: never parents */
    CHECK_EQ(c.flags[row_of(r, "first")], OP_FLAG_ASYNC);
    CHECK(c.duration_ns[row_of(r, "second")] >= 0);
    CHECK_EQ(c.duration_ns[row_of(r, "third")], -1);
    op_result_free(r);
    CHECK_OK(op_window_start());
    uint64_t other = START("other");
    END(third); /* of the previous window: its number is invalid here */
    r = stop_window();
    CHECK_EQ(columns_of(r).duration_ns[row_of(r, "other")], -1);
    CHECK(other != third);
    op_result_free(r);
}

static void what_a_window_left_open_is_forgotten(void) {
    CHECK_OK(op_window_start());
    PUSH("left open");
    op_result_free(stop_window());
    CHECK_EQ(POP(), NVTX_NO_TRACKING);
    CHECK_OK(op_window_start());
    CHECK_EQ(POP(), NVTX_NO_TRACKING);
    CHECK_EQ(PUSH("outermost"), 0);
    CHECK_EQ(POP(), 0);
    op_result *r = stop_window();
    CHECK_EQ(columns_of(r).count, 1);
    CHECK_EQ(stats_of(r).unmatched_ends, 0);
    op_result_free(r);
}

static void a_range_in_a_pause_has_an_end_of_its_own(void) {
    nvtx_attributes a = message("unseen, too");
    CHECK_OK(op_window_start());
    CHECK_EQ(PUSH("outer"), 0);
    op_window_pause();
    CHECK_EQ(PUSH("unseen"), 1);
    CHECK_EQ(POP(), 1);
    CHECK_EQ(PUSH_WIDE(L"ends after it"), 1);
    CHECK_EQ(PUSH_EX(&a), 2);
    op_window_resume();
    CHECK_EQ(POP(), 2);
    CHECK_EQ(POP(), 1);
    CHECK_EQ(PUSH("inner"), 1);
    CHECK_EQ(POP(), 1);
    CHECK_EQ(POP(), 0);
    op_result *r = stop_window();
    CHECK_EQ(columns_of(r).count, 2);
    CHECK_EQ(columns_of(r).flags[row_of(r, "outer")], 0);
    CHECK_EQ(columns_of(r).parent[row_of(r, "inner")], row_of(r, "outer"));
    op_result_free(r);
}

static void nvtx_is_recorded_if_asked_for(void) {
    op_window_accept(OP_INJECTED_ITT);
    CHECK_OK(op_window_start());
    CHECK_EQ(PUSH("unwanted"), NVTX_NO_TRACKING);
    MARK("unwanted");
    CHECK_EQ(START("unwanted"), 0);
    op_result *r = stop_window();
    CHECK_EQ(columns_of(r).count, 0);
    op_result_free(r);
    op_window_accept(OP_INJECTED_TORCH | OP_INJECTED_ITT | OP_INJECTED_NVTX);
}

static void *emit(void *name) {
    nvtx_attributes a = message(name);
    void *mine = DOMAIN(name);
    uint64_t numbers[100];
    for (int i = 0; i < 100; i++)
        numbers[i] = DOMAIN_START(mine, &a);
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(PUSH(name), 0);
        CHECK_EQ(POP(), 0);
        DOMAIN_END(mine, numbers[i]);
    }
    return NULL;
}

static void threads_do_not_meet(void) {
    static char names[4][8] = {"one", "two", "three", "four"};
    CHECK_OK(op_window_start());
    on_threads(4, emit, names, sizeof names[0]);
    op_result *r = stop_window();
    check_sound(r);
    op_columns c = columns_of(r);
    CHECK_EQ(c.count, 800);
    for (uint64_t row = 0; row < c.count; row++)
        CHECK(c.duration_ns[row] >= 0);
    op_result_free(r);
}

#ifdef OP_FAULTS
static void *push_without_memory(void *unused) {
    (void)unused;
    op_fault_arm(OP_FAULT_MEMORY, 1); /* for this thread's list of pushed ranges */
    CHECK_EQ(PUSH("not noted"), NVTX_NO_TRACKING);
    CHECK_EQ(POP(), NVTX_NO_TRACKING);
    op_fault_arm(OP_FAULT_MEMORY, 0);
    CHECK_EQ(PUSH("outer"), 0);
    for (int i = 1; i < 64; i++)
        CHECK_EQ(PUSH("nested"), i);
    op_fault_arm(OP_FAULT_MEMORY, 1); /* for a longer one */
    CHECK_EQ(PUSH("not noted"), NVTX_NO_TRACKING);
    CHECK_EQ(PUSH("nor what is in it"), NVTX_NO_TRACKING);
    op_fault_arm(OP_FAULT_MEMORY, 0);
    CHECK_EQ(POP(), NVTX_NO_TRACKING);
    CHECK_EQ(POP(), NVTX_NO_TRACKING);
    for (int i = 63; i >= 0; i--)
        CHECK_EQ(POP(), i);
    return NULL;
}

static void pops_pair_where_memory_was_short(void) {
    CHECK_OK(op_window_start());
    on_another_thread(push_without_memory, NULL);
    op_fault_arm(OP_FAULT_MEMORY, 1); /* for the domain */
    CHECK(DOMAIN("without memory") == NULL);
    op_fault_arm(OP_FAULT_MEMORY, 0);
    op_result *r = stop_window();
    check_sound(r);
    CHECK_EQ(columns_of(r).count, 64);
    CHECK_EQ(columns_of(r).flags[row_of(r, "outer")], 0);
    op_result_free(r);
}
#endif

static void make_domain(unsigned turn) {
    char text[32];
    snprintf(text, sizeof text, "domain %u", turn % 100);
    DOMAIN(text);
}

static void emit_in_child(void) {
    alarm(20); /* a lock without an owner would never be released */
    DOMAIN("of a child");
    PUSH("of a child");
    POP();
}

static void children_may_emit(void) { fork_beside(make_domain, emit_in_child); }

int main(void) {
    folder here = make_folder();
    open_session(&here);
    RUN(the_headers_tables_are_filled);
    RUN(nothing_is_tracked_without_a_window);
    RUN(ranges_nest_and_say_how_deep);
    RUN(domains_are_stacks_of_their_own);
    RUN(ranges_carry_category_colour_and_payload);
    RUN(shorter_attributes_are_understood);
    RUN(started_ranges_end_in_any_order_on_any_thread);
    RUN(what_a_window_left_open_is_forgotten);
    RUN(a_range_in_a_pause_has_an_end_of_its_own);
    RUN(nvtx_is_recorded_if_asked_for);
    RUN(threads_do_not_meet);
#ifdef OP_FAULTS
    RUN(pops_pair_where_memory_was_short);
#endif
    RUN(children_may_emit);
    close_session(&here);
    return 0;
}
