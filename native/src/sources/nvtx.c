/* The NVTX injection library that NVTX_INJECTION64_PATH names. Each shared object that embeds the NVTX
 * headers has its own function pointers and calls InitializeInjectionNvtx2 at its first NVTX call.
 * The pointers stay set outside of windows, where a call returns because nothing is recorded: resetting
 * them would write into libraries that may have been unloaded since. */
#include "sources/nvtx_abi.h"
#include "sources/nvtx_attributes.h"
#include "sources/nvtx_domains.h"
#include "sources/nvtx_started.h"
#include "sources/range_stack.h"
#include "sources/unwinding.h"

#include <pthread.h>

/* A domain is NULL if the caller named none; op_nvtx_domain_of() resolves it. */

/* ---- push and pop: nested per thread and domain ------------------------------------------------ */

static int push(op_nvtx_domain *d, uint32_t name, const nvtx_attributes *a) {
    op_range_stack *p = op_range_stack_add(op_nvtx_domain_of(d));
    if (!p)
        return NVTX_NO_TRACKING;
    op_fields fields;
    uint32_t words = op_nvtx_describe(&fields, op_nvtx_domain_of(d), a);
    p->slot = op_begin_unwound(name, OP_NVTX, OP_SCOPE_USER, 0, fields.words, words);
    return (int)p->level;
}

static int pop(op_nvtx_domain *d) {
    op_range_stack ended;
    if (!op_tracks(OP_INJECTED_NVTX) || !op_range_stack_take(op_nvtx_domain_of(d), &ended))
        return NVTX_NO_TRACKING;
    op_end(&ended.slot);
    return (int)ended.level;
}

static int domain_push(op_nvtx_domain *d, const nvtx_attributes *a) {
    return a && op_tracks(OP_INJECTED_NVTX) ? push(d, op_nvtx_message(a), a) : NVTX_NO_TRACKING;
}

static int core_push(const nvtx_attributes *a) { return domain_push(NULL, a); }

static int core_push_a(const char *message) {
    return op_tracks(OP_INJECTED_NVTX) ? push(NULL, op_nvtx_text(message), NULL) : NVTX_NO_TRACKING;
}

static int core_push_w(const wchar_t *message) {
    return op_tracks(OP_INJECTED_NVTX) ? push(NULL, op_nvtx_wide(message), NULL) : NVTX_NO_TRACKING;
}

static int core_pop(void) { return pop(NULL); }

/* ---- start and end: by number, on any thread, in any order -------------------------------------- */

/* Such a range may overlap others in any way, so it is never their parent. */
static uint64_t start(op_nvtx_domain *d, uint32_t name, const nvtx_attributes *a) {
    op_fields fields;
    uint32_t words = op_nvtx_describe(&fields, op_nvtx_domain_of(d), a);
    op_slot slot =
        op_begin_unwound(name, OP_NVTX, OP_SCOPE_USER | OP_FLAG_ASYNC, 0, fields.words, words);
    return op_nvtx_started_add(slot);
}

static void end(uint64_t number) {
    if (!op_tracks(OP_INJECTED_NVTX))
        return;
    op_slot slot = op_nvtx_started_take(number);
    op_end(&slot);
}

static uint64_t domain_start(op_nvtx_domain *d, const nvtx_attributes *a) {
    return a && op_accepts(OP_INJECTED_NVTX) ? start(d, op_nvtx_message(a), a) : 0;
}

static void domain_end(op_nvtx_domain *d, uint64_t number) {
    (void)d;
    end(number);
}

static uint64_t core_start(const nvtx_attributes *a) { return domain_start(NULL, a); }

static uint64_t core_start_a(const char *message) {
    return op_accepts(OP_INJECTED_NVTX) ? start(NULL, op_nvtx_text(message), NULL) : 0;
}

static uint64_t core_start_w(const wchar_t *message) {
    return op_accepts(OP_INJECTED_NVTX) ? start(NULL, op_nvtx_wide(message), NULL) : 0;
}

/* ---- marks ------------------------------------------------------------------------------ */

static void mark(op_nvtx_domain *d, uint32_t name, const nvtx_attributes *a) {
    op_fields fields;
    uint32_t words = op_nvtx_describe(&fields, op_nvtx_domain_of(d), a);
    op_instant(name, OP_MARK, OP_SCOPE_USER, fields.words, words);
}

static void domain_mark(op_nvtx_domain *d, const nvtx_attributes *a) {
    if (a && op_accepts(OP_INJECTED_NVTX))
        mark(d, op_nvtx_message(a), a);
}

static void core_mark(const nvtx_attributes *a) { domain_mark(NULL, a); }

static void core_mark_a(const char *message) {
    if (op_accepts(OP_INJECTED_NVTX))
        mark(NULL, op_nvtx_text(message), NULL);
}

static void core_mark_w(const wchar_t *message) {
    if (op_accepts(OP_INJECTED_NVTX))
        mark(NULL, op_nvtx_wide(message), NULL);
}

/* ---- domains, categories, strings: outside of windows too --------------------------------------- */

static op_nvtx_domain *domain_create_a(const char *name) {
    return op_nvtx_domain_named(op_nvtx_text(name));
}

static op_nvtx_domain *domain_create_w(const wchar_t *name) {
    return op_nvtx_domain_named(op_nvtx_wide(name));
}

static void domain_name_category_a(op_nvtx_domain *d, uint32_t number, const char *name) {
    op_nvtx_name_category(op_nvtx_domain_of(d), number, op_nvtx_text(name));
}

static void domain_name_category_w(op_nvtx_domain *d, uint32_t number, const wchar_t *name) {
    op_nvtx_name_category(op_nvtx_domain_of(d), number, op_nvtx_wide(name));
}

static void core_name_category_a(uint32_t number, const char *name) {
    domain_name_category_a(NULL, number, name);
}

static void core_name_category_w(uint32_t number, const wchar_t *name) {
    domain_name_category_w(NULL, number, name);
}

static uintptr_t register_a(op_nvtx_domain *d, const char *text) {
    (void)d;
    return (uintptr_t)op_nvtx_text(text) + 1;
}

static uintptr_t register_w(op_nvtx_domain *d, const wchar_t *text) {
    (void)d;
    return (uintptr_t)op_nvtx_wide(text) + 1;
}

/* ---- the library's entry point -------------------------------------------------------------- */

/* By NvtxCallbackIdCore and NvtxCallbackIdCore2. Others keep the header's no-op. */
static const nvtx_function core[] = {[1] = (nvtx_function)core_mark,
                                     [2] = (nvtx_function)core_mark_a,
                                     [3] = (nvtx_function)core_mark_w,
                                     [4] = (nvtx_function)core_start,
                                     [5] = (nvtx_function)core_start_a,
                                     [6] = (nvtx_function)core_start_w,
                                     [7] = (nvtx_function)end,
                                     [8] = (nvtx_function)core_push,
                                     [9] = (nvtx_function)core_push_a,
                                     [10] = (nvtx_function)core_push_w,
                                     [11] = (nvtx_function)core_pop,
                                     [12] = (nvtx_function)core_name_category_a,
                                     [13] = (nvtx_function)core_name_category_w};
static const nvtx_function core2[] = {[1] = (nvtx_function)domain_mark,
                                      [2] = (nvtx_function)domain_start,
                                      [3] = (nvtx_function)domain_end,
                                      [4] = (nvtx_function)domain_push,
                                      [5] = (nvtx_function)pop,
                                      [8] = (nvtx_function)domain_name_category_a,
                                      [9] = (nvtx_function)domain_name_category_w,
                                      [10] = (nvtx_function)register_a,
                                      [11] = (nvtx_function)register_w,
                                      [12] = (nvtx_function)domain_create_a,
                                      [13] = (nvtx_function)domain_create_w};

static void fill(const nvtx_callbacks_table *callbacks, int module, const nvtx_function *ours,
                 unsigned count) {
    nvtx_function **table = NULL;
    unsigned room = 0;
    if (!callbacks->functions_of(module, &table, &room) || !table)
        return;
    for (unsigned i = 0; i < count && i < room; i++)
        if (ours[i] && table[i])
            *table[i] = ours[i];
}

static bool is_set_up;

static void set_up(void) {
    op_nvtx_attributes_setup();
    is_set_up =
        op_range_stack_setup() == 0 && op_nvtx_domains_setup() == 0 && op_nvtx_started_setup() == 0;
}

int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t));

/* 1: injected; 0: NVTX continues without us. */
int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t)) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, set_up);
    const nvtx_callbacks_table *callbacks = export_table ? export_table(NVTX_TABLE_CALLBACKS) : NULL;
    if (!is_set_up || !callbacks || callbacks->bytes < sizeof *callbacks || !callbacks->functions_of)
        return 0;
    const nvtx_version_table *version = export_table(NVTX_TABLE_VERSION);
    if (version && version->bytes >= sizeof *version && version->set_injection_version)
        version->set_injection_version(NVTX_VERSION);
    fill(callbacks, NVTX_MODULE_CORE, core, sizeof core / sizeof *core);
    fill(callbacks, NVTX_MODULE_CORE2, core2, sizeof core2 / sizeof *core2);
    return 1;
}
