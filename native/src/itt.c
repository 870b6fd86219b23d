/* The ITT collector: what INTEL_LIBITTNOTIFY64 names. Each copy of ittnotify in the process calls
 * __itt_api_init once, at its first ITT call, and we point its functions at ours. Layouts follow
 * ittnotify_config.h of ITT API 3.x (struct ___itt_global up to api_list_ptr, ___itt_domain,
 * ___itt_string_handle), which no 3.x release has changed up to these fields.
 *
 * Ops and ranges are told apart by domain: torch's emit_itt names its ops in "PyTorch". */
#include "fault.h"
#include "names.h"
#include "record.h"

#include <stdbool.h>
#include <string.h>

typedef struct itt_api_info {
    const char *name;
    void **func_ptr;
    void *init_func, *null_func;
    int group;
} itt_api_info;

typedef struct itt_domain {
    volatile int flags; /* 0: the inline macros do not call us */
    const char *nameA;
    void *nameW;
    int extra1; /* ours: enum owner */
    void *extra2;
    struct itt_domain *next;
} itt_domain;

enum owner { UNKNOWN = 0, TORCH = 1, OTHER = 2 };

typedef struct itt_string {
    const char *strA;
    void *strW;
    int extra1; /* ours: the interned id */
    void *extra2;
    struct itt_string *next;
} itt_string;

typedef struct itt_id {
    unsigned long long d1, d2, d3;
} itt_id;

typedef struct itt_global {
    unsigned char magic[8];
    unsigned long version_major, version_minor, version_build;
    volatile long api_initialized, mutex_initialized, atomic_counter;
    pthread_mutex_t mutex;
    void *lib, *error_handler;
    const char **dll_path_ptr;
    itt_api_info *api_list_ptr; /* ends at a NULL name */
} itt_global;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the two lists; never with another */
static itt_domain *domains;
static itt_string *strings;

/* ---- tasks: what a thread began and has not ended ----------------------------------------- */

typedef struct tasks {
    op_slot *slots;
    size_t count, room;
    size_t skipped; /* begun on top of those, for want of memory without a slot */
} tasks;

static pthread_key_t tasks_key;
static pthread_once_t tasks_once = PTHREAD_ONCE_INIT;
static int have_key;

static void free_tasks(void *value) {
    free(((tasks *)value)->slots);
    free(value);
}

static void lock_lists(void) { pthread_mutex_lock(&lock); }

static void unlock_lists(void) { pthread_mutex_unlock(&lock); }

static void make_key(void) {
    have_key = pthread_key_create(&tasks_key, free_tasks) == 0 &&
               pthread_atfork(lock_lists, unlock_lists, unlock_lists) == 0;
}

static tasks *tasks_here(void) {
    tasks *t = pthread_getspecific(tasks_key);
    if (t)
        return t;
    t = op_calloc(1, sizeof *t);
    if (t && pthread_setspecific(tasks_key, t)) {
        free(t);
        t = NULL;
    }
    return t;
}

/* A copy of ittnotify makes domains and handles of its own before it has loaded us (torch's first
 * ones are such): their extra fields are 0 until we see them. */
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

static bool make_room(tasks *t) {
    size_t room = t->room ? t->room * 2 : 64;
    op_slot *bigger = op_realloc(t->slots, room * sizeof *bigger);
    if (!bigger)
        return false;
    t->slots = bigger;
    t->room = room;
    return true;
}

static void task_begin(itt_domain *domain, itt_id task, itt_id parent, itt_string *name) {
    (void)task;
    (void)parent;
    tasks *t = tasks_here();
    if (!t)
        return;
    if (t->skipped || (t->count == t->room && !make_room(t))) {
        t->skipped++;
        return;
    }
    uint8_t scope = owner_of(domain) == TORCH ? 0 : OP_SCOPE_USER;
    t->slots[t->count++] = op_begin(name_id(name), OP_ITT, scope, 0, NULL, 0);
}

static void task_end(const itt_domain *domain) {
    (void)domain;
    tasks *t = tasks_here();
    if (t && t->skipped)
        t->skipped--;
    else if (t && t->count)
        op_end(&t->slots[--t->count]);
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

/* torch makes a handle a push, from few names: found by id, not by walking a list of strings. */
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
    {"__itt_domain_create", (void (*)(void))domain_create},
    {"__itt_domain_createA", (void (*)(void))domain_create},
    {"__itt_string_handle_create", (void (*)(void))string_create},
    {"__itt_string_handle_createA", (void (*)(void))string_create},
};

void __itt_api_init(itt_global *global, int groups);
void __itt_api_fini(itt_global *global);

/* What we do not record goes to the library's own no-op: its initial function would call us again. */
void __itt_api_init(itt_global *global, int groups) {
    (void)groups;
    pthread_once(&tasks_once, make_key);
    if (!global || !global->api_list_ptr || !have_key)
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
