/* The NVTX injection library: what NVTX_INJECTION64_PATH names. Each shared object that embeds the
 * NVTX headers has function pointers of its own and calls InitializeInjectionNvtx2 at its first
 * NVTX call.
 *
 * The pointers stay set outside of windows, where a call finds that nothing is recorded and returns:
 * taking them back would write into libraries that may have been unloaded since. */
#include "fault.h"
#include "fields.h"
#include "names.h"
#include "nvtx_abi.h"
#include "pushed.h"

#include <string.h>

typedef struct category {
    uint32_t number, name;
    struct category *next;
} category;

typedef struct domain {
    uint32_t name;
    category *categories; /* grows in front, nothing is ever taken out */
    struct domain *next;
} domain;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* never with another but that of names */
static domain default_domain;
static domain *domains;

static struct {
    uint32_t domain, category, color, payload;
} keys;

/* ---- names ------------------------------------------------------------------------------ */

static uint32_t intern(const char *text) {
    return text ? op_names_intern(text, strlen(text)) : OP_NAME_NONE;
}

static size_t put_utf8(char *out, uint32_t c) {
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)((0xf00 >> n & 0xff) | c);
    return n;
}

static uint32_t intern_wide(const wchar_t *text) {
    char utf8[OP_NAME_MAX_BYTES + 4];
    size_t n = 0;
    for (; text && *text && n < OP_NAME_MAX_BYTES; text++) {
        uint32_t c = (uint32_t)*text;
        n += put_utf8(utf8 + n, c <= 0x10ffff ? c : 0xfffd);
    }
    return op_names_intern(utf8, n);
}

static uint32_t message_of(const nvtx_attributes *a) {
    if (a->size < sizeof *a)
        return OP_NAME_NONE;
    switch (a->message_type) {
    case NVTX_ASCII:
        return intern(a->message.ascii);
    case NVTX_UNICODE:
        return intern_wide(a->message.unicode);
    case NVTX_REGISTERED:
        return a->message.registered ? (uint32_t)(a->message.registered - 1) : OP_NAME_NONE;
    default:
        return OP_NAME_NONE;
    }
}

/* ---- what a range carries ----------------------------------------------------------------- */

static void put_category(op_fields *f, const domain *d, uint32_t number) {
    for (const category *c = __atomic_load_n(&d->categories, __ATOMIC_ACQUIRE); c; c = c->next)
        if (c->number == number) {
            op_fields_put_word(f, keys.category, OP_FIELD_NAME, c->name);
            return;
        }
    const uint64_t value = number;
    op_fields_put_numbers(f, keys.category, OP_FIELD_UNSIGNED, &value, 1);
}

static void put_payload(op_fields *f, const nvtx_attributes *a) {
    uint32_t type = OP_FIELD_UNSIGNED;
    uint64_t bits = a->payload.u64;
    double real = a->payload.real;
    switch (a->payload_type) {
    case NVTX_U64:
        break;
    case NVTX_I64:
        type = OP_FIELD_SIGNED;
        break;
    case NVTX_U32:
        bits = a->payload.u32;
        break;
    case NVTX_I32:
        type = OP_FIELD_SIGNED;
        bits = (uint64_t)(int64_t)a->payload.i32;
        break;
    case NVTX_FLOAT:
        real = (double)a->payload.single;
        __attribute__((fallthrough));
    case NVTX_DOUBLE:
        type = OP_FIELD_DOUBLE;
        memcpy(&bits, &real, sizeof bits);
        break;
    default:
        return;
    }
    op_fields_put_numbers(f, keys.payload, type, &bits, 1);
}

/* A caller with an older, shorter structure says so in `size`. */
static uint32_t describe(op_fields *f, const domain *d, const nvtx_attributes *a) {
    op_fields_clear(f);
    if (d->name)
        op_fields_put_word(f, keys.domain, OP_FIELD_NAME, d->name);
    if (a && a->size >= offsetof(nvtx_attributes, message_type)) {
        if (a->category)
            put_category(f, d, a->category);
        if (a->color_type == NVTX_COLOR_ARGB)
            op_fields_put_word(f, keys.color, OP_FIELD_COLOR, a->color);
        put_payload(f, a);
    }
    return op_fields_close(f);
}

/* ---- push and pop: nested on a thread, for each domain ------------------------------------- */

static domain *known(domain *d) { return d ? d : &default_domain; }

static int push(domain *d, uint32_t name, const nvtx_attributes *a) {
    op_pushed *p = op_pushed_add(d);
    if (!p)
        return NVTX_NO_TRACKING;
    op_fields fields;
    uint32_t words = describe(&fields, d, a);
    p->slot = op_begin(name, OP_NVTX, OP_SCOPE_USER, 0, fields.words, words);
    return (int)p->level;
}

static int pop(domain *d) {
    op_pushed ended;
    if (!op_accepts_ends(OP_INJECTED_NVTX) || !op_pushed_take(d, &ended))
        return NVTX_NO_TRACKING;
    op_end(&ended.slot);
    return (int)ended.level;
}

static int domain_push(domain *d, const nvtx_attributes *a) {
    return a && op_accepts(OP_INJECTED_NVTX) ? push(known(d), message_of(a), a) : NVTX_NO_TRACKING;
}

static int domain_pop(domain *d) { return pop(known(d)); }

static int core_push(const nvtx_attributes *a) { return domain_push(NULL, a); }

static int core_push_a(const char *message) {
    return op_accepts(OP_INJECTED_NVTX) ? push(&default_domain, intern(message), NULL)
                                        : NVTX_NO_TRACKING;
}

static int core_push_w(const wchar_t *message) {
    return op_accepts(OP_INJECTED_NVTX) ? push(&default_domain, intern_wide(message), NULL)
                                        : NVTX_NO_TRACKING;
}

static int core_pop(void) { return pop(&default_domain); }

/* ---- start and end: by a number, on any thread, in any order ------------------------------- */

typedef struct started {
    op_slot slot;
    uint32_t turn; /* how often this place was taken: the upper half of its number */
    uint32_t next; /* free place + 1 */
} started;

static struct {
    started *places;
    uint32_t count, room, free;
    uint32_t window;
} ranges; /* under the lock */

/* Those of a window gone by are forgotten: their numbers must not end a range of this one. */
static void forget_old_ranges(void) {
    if (ranges.window == op_open_window())
        return;
    ranges.window = op_open_window();
    ranges.free = 0;
    for (uint32_t i = ranges.count; i-- > 0;) {
        ranges.places[i].turn++;
        ranges.places[i].next = ranges.free;
        ranges.free = i + 1;
    }
}

static started *take_place(void) {
    forget_old_ranges();
    if (ranges.free) {
        started *place = &ranges.places[ranges.free - 1];
        ranges.free = place->next;
        return place;
    }
    if (ranges.count == ranges.room) {
        uint32_t room = ranges.room ? ranges.room * 2 : 64;
        started *bigger = op_realloc(ranges.places, room * sizeof *bigger);
        if (!bigger)
            return NULL;
        ranges.places = bigger;
        ranges.room = room;
    }
    started *place = &ranges.places[ranges.count++];
    *place = (started){0};
    return place;
}

/* Such a range overlaps others as it likes, so it is around none of them. */
static uint64_t start(domain *d, uint32_t name, const nvtx_attributes *a) {
    op_fields fields;
    uint32_t words = describe(&fields, d, a);
    op_slot slot = op_begin(name, OP_NVTX, OP_SCOPE_USER | OP_FLAG_ASYNC, 0, fields.words, words);
    pthread_mutex_lock(&lock);
    started *place = take_place();
    uint64_t number = 0;
    if (place) {
        place->slot = slot;
        number = (uint64_t)place->turn << 32 | (uint64_t)(place - ranges.places + 1);
    }
    pthread_mutex_unlock(&lock);
    return number;
}

static void end(uint64_t number) {
    if (!op_accepts_ends(OP_INJECTED_NVTX))
        return;
    uint32_t at = (uint32_t)number;
    op_slot slot = {0};
    pthread_mutex_lock(&lock);
    forget_old_ranges();
    if (at && at <= ranges.count && ranges.places[at - 1].turn == number >> 32) {
        started *place = &ranges.places[at - 1];
        slot = place->slot;
        place->turn++;
        place->next = ranges.free;
        ranges.free = at;
    }
    pthread_mutex_unlock(&lock);
    op_end(&slot);
}

static uint64_t domain_start(domain *d, const nvtx_attributes *a) {
    return a && op_accepts(OP_INJECTED_NVTX) ? start(known(d), message_of(a), a) : 0;
}

static void domain_end(domain *d, uint64_t number) {
    (void)d;
    end(number);
}

static uint64_t core_start(const nvtx_attributes *a) { return domain_start(NULL, a); }

static uint64_t core_start_a(const char *message) {
    return op_accepts(OP_INJECTED_NVTX) ? start(&default_domain, intern(message), NULL) : 0;
}

static uint64_t core_start_w(const wchar_t *message) {
    return op_accepts(OP_INJECTED_NVTX) ? start(&default_domain, intern_wide(message), NULL) : 0;
}

/* ---- marks ------------------------------------------------------------------------------ */

static void mark(const domain *d, uint32_t name, const nvtx_attributes *a) {
    op_fields fields;
    uint32_t words = describe(&fields, d, a);
    op_instant(name, OP_MARK, OP_SCOPE_USER, fields.words, words);
}

static void domain_mark(domain *d, const nvtx_attributes *a) {
    if (a && op_accepts(OP_INJECTED_NVTX))
        mark(known(d), message_of(a), a);
}

static void core_mark(const nvtx_attributes *a) { domain_mark(NULL, a); }

static void core_mark_a(const char *message) {
    if (op_accepts(OP_INJECTED_NVTX))
        mark(&default_domain, intern(message), NULL);
}

static void core_mark_w(const wchar_t *message) {
    if (op_accepts(OP_INJECTED_NVTX))
        mark(&default_domain, intern_wide(message), NULL);
}

/* ---- domains, categories, strings: also outside of windows ---------------------------------- */

static domain *domain_named(uint32_t name) {
    pthread_mutex_lock(&lock);
    domain *d = domains;
    while (d && d->name != name)
        d = d->next;
    if (!d && (d = op_calloc(1, sizeof *d)) != NULL) {
        d->name = name;
        d->next = domains;
        domains = d;
    }
    pthread_mutex_unlock(&lock);
    return d;
}

static domain *domain_create_a(const char *name) { return domain_named(intern(name)); }

static domain *domain_create_w(const wchar_t *name) { return domain_named(intern_wide(name)); }

static void name_category(domain *d, uint32_t number, uint32_t name) {
    category *c = op_malloc(sizeof *c);
    if (!c)
        return; /* it keeps its number */
    pthread_mutex_lock(&lock);
    *c = (category){.number = number, .name = name, .next = d->categories};
    __atomic_store_n(&d->categories, c, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
}

static void domain_name_category_a(domain *d, uint32_t number, const char *name) {
    name_category(known(d), number, intern(name));
}

static void domain_name_category_w(domain *d, uint32_t number, const wchar_t *name) {
    name_category(known(d), number, intern_wide(name));
}

static void core_name_category_a(uint32_t number, const char *name) {
    domain_name_category_a(NULL, number, name);
}

static void core_name_category_w(uint32_t number, const wchar_t *name) {
    domain_name_category_w(NULL, number, name);
}

static uintptr_t register_a(domain *d, const char *text) {
    (void)d;
    return (uintptr_t)intern(text) + 1;
}

static uintptr_t register_w(domain *d, const wchar_t *text) {
    (void)d;
    return (uintptr_t)intern_wide(text) + 1;
}

/* ---- the library's entry point -------------------------------------------------------------- */

/* By NvtxCallbackIdCore and NvtxCallbackIdCore2. What we do not record stays the header's no-op. */
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
                                      [5] = (nvtx_function)domain_pop,
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

static void lock_all(void) { pthread_mutex_lock(&lock); }

static void unlock_all(void) { pthread_mutex_unlock(&lock); }

static void set_up(void) {
    keys.domain = intern("domain");
    keys.category = intern("category");
    keys.color = intern("color");
    keys.payload = intern("payload");
    is_set_up = op_pushed_setup() == 0 && pthread_atfork(lock_all, unlock_all, unlock_all) == 0;
}

int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t));

/* 1: injected; 0: NVTX goes on without us. */
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
