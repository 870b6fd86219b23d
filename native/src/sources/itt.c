/* The ITT collector that INTEL_LIBITTNOTIFY64 names. Each copy of ittnotify in the process calls
 * __itt_api_init once, at its first ITT call, and we replace its functions with ours.
 * Domains distinguish ops from ranges: torch's emit_itt names its ops in "PyTorch". */
#include "core/fault.h"
#include "core/fields.h"
#include "core/names.h"
#include "sources/itt_abi.h"
#include "sources/range_stack.h"
#include "sources/unwinding.h"

#include <string.h>

enum owner { UNKNOWN = 0, TORCH = 1, OTHER = 2 }; /* stored in a domain's extra1 */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of both lists; never with another */
static itt_domain *domains;
static itt_string *strings;

/* A copy of ittnotify creates domains and handles before it loads us (torch's first ones among them).
 * Their extra fields are 0 until we see them. */
static int owner_of(itt_domain *domain) {
    if (!domain)
        return OTHER;
    int owner = __atomic_load_n(&domain->extra1, __ATOMIC_RELAXED);
    if (owner == UNKNOWN) {
        owner = domain->nameA && strcmp(domain->nameA, "PyTorch") == 0 ? TORCH : OTHER;
        __atomic_store_n(&domain->extra1, owner, __ATOMIC_RELAXED);
    }
    return owner;
}

static uint32_t name_id(itt_string *name) {
    if (!name || !name->strA)
        return OP_NAME_NONE;
    int id = __atomic_load_n(&name->extra1, __ATOMIC_RELAXED);
    if (id == 0) {
        id = (int)op_names_intern(name->strA, strlen(name->strA));
        __atomic_store_n(&name->extra1, id, __ATOMIC_RELAXED);
    }
    return (uint32_t)id;
}

/* ---- tasks ------------------------------------------------------------------------------ */

#define ROOM_FOR_METADATA 64u /* words kept free after each task's own block */

static uint32_t domain_key; /* key of the domain in a task's block */

static void put_domain(op_fields *fields, itt_domain *domain) {
    op_fields_clear(fields);
    if (!domain || !domain->nameA || !*domain->nameA)
        return;
    uintptr_t name = (uintptr_t)__atomic_load_n(&domain->extra2, __ATOMIC_RELAXED);
    if (name == 0) {
        name = op_names_intern(domain->nameA, strlen(domain->nameA));
        __atomic_store_n(&domain->extra2, (void *)name, __ATOMIC_RELAXED);
    }
    op_fields_put_word(fields, domain_key, OP_FIELD_NAME, (uint32_t)name);
}

static uint32_t source_of(itt_domain *domain) {
    return owner_of(domain) == TORCH ? OP_INJECTED_TORCH : OP_INJECTED_ITT;
}

/* Whether the open window accepts events of this domain now. */
static bool is_accepted(itt_domain *domain) { return op_accepts(source_of(domain)); }

static op_slot begin_in(itt_domain *domain, itt_string *name) {
    if (owner_of(domain) == TORCH)
        return op_begin_unwound(name_id(name), OP_ITT, 0, 0, NULL, 0);
    op_fields fields;
    put_domain(&fields, domain);
    uint32_t words = op_fields_close(&fields);
    uint32_t window = op_recording();
    if (!window || !op_thread_ready(window, words + ROOM_FOR_METADATA))
        return (op_slot){0};
    return op_begin_unwound(name_id(name), OP_ITT, OP_SCOPE_USER, 0, fields.words, words);
}

static void task_begin(itt_domain *domain, itt_id task, itt_id parent, itt_string *name) {
    (void)parent;
    op_range_stack *p = op_tracks(source_of(domain)) ? op_range_stack_add(domain) : NULL;
    if (!p)
        return;
    memcpy(p->id, &task, sizeof p->id);
    p->slot = begin_in(domain, name);
}

static void task_end(itt_domain *domain) {
    op_range_stack ended;
    if (op_tracks(source_of(domain)) && op_range_stack_take(domain, &ended))
        op_end(&ended.slot);
}

static void marker(itt_domain *domain, itt_id id, itt_string *name, int scope) {
    (void)id;
    (void)scope;
    if (!is_accepted(domain))
        return;
    op_fields fields;
    put_domain(&fields, domain);
    uint32_t words = op_fields_close(&fields);
    op_instant(name_id(name), OP_MARK, OP_SCOPE_USER, fields.words, words);
}

/* ---- metadata of the task that is open on this thread ----------------------------------------- */

enum { U64 = 1, S64, U32, S32, U16, S16, FLOAT, DOUBLE };
#define METADATA_MAX 64 /* numbers per key */

/* Widens an array's numbers to 64 bits. Returns their field type; 0: unknown type. */
static uint32_t widen(int type, const void *data, size_t count, uint64_t *out) {
    for (size_t i = 0; i < count; i++) {
        int64_t number = 0;
        double real = 0;
        switch (type) {
        case U64:
        case S64:
            number = ((const int64_t *)data)[i];
            break;
        case U32:
            number = ((const uint32_t *)data)[i];
            break;
        case S32:
            number = ((const int32_t *)data)[i];
            break;
        case U16:
            number = ((const uint16_t *)data)[i];
            break;
        case S16:
            number = ((const int16_t *)data)[i];
            break;
        case FLOAT:
            real = (double)((const float *)data)[i];
            break;
        case DOUBLE:
            real = ((const double *)data)[i];
            break;
        default:
            return 0;
        }
        if (type >= FLOAT)
            memcpy(&out[i], &real, sizeof real);
        else
            out[i] = (uint64_t)number;
    }
    bool is_signed = type == S64 || type == S32 || type == S16;
    return type >= FLOAT ? OP_FIELD_DOUBLE : is_signed ? OP_FIELD_SIGNED : OP_FIELD_UNSIGNED;
}

/* Copies the task's block, to be written again with more in it. What the chunk has no room for is left
 * out; metadata normally follows its task's begin in time. */
static const op_range_stack *reopen(itt_domain *domain, itt_id id, op_fields *fields) {
    unsigned long long number[3] = {id.d1, id.d2, id.d3};
    const op_range_stack *p = is_accepted(domain) ? op_range_stack_find(number) : NULL;
    if (!p || !p->slot.event)
        return NULL;
    op_fields_clear(fields);
    const uint32_t *block = op_args_of(&p->slot);
    if (block)
        op_fields_reopen(fields, block);
    return p;
}

static void metadata_add(itt_domain *domain, itt_id id, itt_string *key, int type, size_t count,
                         const void *data) {
    op_fields fields;
    uint64_t numbers[METADATA_MAX];
    if (!data || count > METADATA_MAX)
        return;
    uint32_t kind = widen(type, data, count, numbers);
    const op_range_stack *p = kind ? reopen(domain, id, &fields) : NULL;
    if (p && op_fields_put_numbers(&fields, name_id(key), kind, numbers, (uint32_t)count))
        op_args_replace(&p->slot, fields.words, op_fields_close(&fields));
}

static void metadata_text(itt_domain *domain, itt_id id, itt_string *key, const char *data,
                          size_t length) {
    op_fields fields;
    const op_range_stack *p = data ? reopen(domain, id, &fields) : NULL;
    if (p && op_fields_put_text(&fields, name_id(key), OP_FIELD_TEXT, data, length))
        op_args_replace(&p->slot, fields.words, op_fields_close(&fields));
}

/* ---- names ------------------------------------------------------------------------------ */

static itt_domain *domain_create(const char *name) {
    if (!name)
        return NULL;
    uint32_t length;
    const char *text = op_names_text(op_names_intern(name, strlen(name)), &length);
    pthread_mutex_lock(&lock);
    itt_domain *d = domains;
    while (d && d->nameA != text)
        d = d->next;
    if (!d && (d = op_calloc(1, sizeof *d)) != NULL) {
        d->nameA = text;
        d->flags = 1;
        d->next = domains;
        domains = d;
    }
    pthread_mutex_unlock(&lock);
    return d;
}

/* torch creates a handle per push, from few names: they are found by id, not by walking a list. */
static itt_string *string_create(const char *text) {
    if (!text)
        return NULL;
    static itt_string *by_id[1u << 16];
    uint32_t id = op_names_intern(text, strlen(text));
    itt_string *s = id < 1u << 16 ? __atomic_load_n(&by_id[id], __ATOMIC_ACQUIRE) : NULL;
    if (s)
        return s;
    pthread_mutex_lock(&lock);
    for (s = strings; s && (uint32_t)s->extra1 != id; s = s->next)
        ;
    if (!s && (s = op_calloc(1, sizeof *s)) != NULL) {
        uint32_t length;
        s->strA = op_names_text(id, &length);
        s->extra1 = (int)id;
        s->next = strings;
        strings = s;
    }
    if (s && id < 1u << 16)
        __atomic_store_n(&by_id[id], s, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
    return s;
}

/* ---- the collector's entry points --------------------------------------------------------- */

typedef struct binding {
    const char *name;
    void (*function)(void);
} binding;

static const binding bindings[] = {
    {"__itt_task_begin", (void (*)(void))task_begin},
    {"__itt_task_end", (void (*)(void))task_end},
    {"__itt_marker", (void (*)(void))marker},
    {"__itt_metadata_add", (void (*)(void))metadata_add},
    {"__itt_metadata_str_add", (void (*)(void))metadata_text},
    {"__itt_metadata_str_addA", (void (*)(void))metadata_text},
    {"__itt_domain_create", (void (*)(void))domain_create},
    {"__itt_domain_createA", (void (*)(void))domain_create},
    {"__itt_string_handle_create", (void (*)(void))string_create},
    {"__itt_string_handle_createA", (void (*)(void))string_create},
};

static bool is_set_up;

static void lock_lists(void) { pthread_mutex_lock(&lock); }

static void unlock_lists(void) { pthread_mutex_unlock(&lock); }

static void set_up(void) {
    domain_key = op_names_intern("domain", strlen("domain"));
    is_set_up =
        op_range_stack_setup() == 0 && pthread_atfork(lock_lists, unlock_lists, unlock_lists) == 0;
}

void __itt_api_init(itt_global *global, int groups);
void __itt_api_fini(itt_global *global);

/* Other functions get the library's own no-op, because its initial function would call us again. */
void __itt_api_init(itt_global *global, int groups) {
    (void)groups;
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, set_up);
    if (!global || !global->api_list_ptr || !is_set_up)
        return;
    for (itt_api_info *api = global->api_list_ptr; api->name; api++) {
        void *chosen = api->null_func;
        for (size_t i = 0; i < sizeof bindings / sizeof *bindings; i++)
            if (strcmp(api->name, bindings[i].name) == 0)
                memcpy(&chosen, &bindings[i].function, sizeof chosen);
        *api->func_ptr = chosen;
    }
}

void __itt_api_fini(itt_global *global) { (void)global; }
