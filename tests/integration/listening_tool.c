/* A tool that listens to ITT and to NVTX and writes down what it hears, one line a call, into the
 * file that LISTENING_TOOL_LOG names. Its layouts are its own: those of ittnotify_config.h and
 * nvtxTypes.h, not the library's under test. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *log_file;

static void hear(const char *what, const char *text) {
    pthread_mutex_lock(&lock);
    if (!log_file)
        log_file = fopen(getenv("LISTENING_TOOL_LOG"), "w");
    fprintf(log_file, "%d\t%s\t%s\n", gettid(), what, text);
    fflush(log_file);
    pthread_mutex_unlock(&lock);
}

/* ---- ITT -------------------------------------------------------------------------------- */

struct domain {
    volatile int flags;
    const char *name;
    void *wide;
    int extra1;
    void *extra2;
    struct domain *next;
};

struct handle {
    char *text;
    void *wide;
    int extra1;
    void *extra2;
    struct handle *next;
};

struct id {
    unsigned long long d1, d2, d3;
};

struct api {
    const char *name;
    void **function;
    void *initial, *none;
    int group;
};

struct global {
    unsigned char magic[8];
    unsigned long version[3];
    volatile long state[3];
    pthread_mutex_t mutex;
    void *lib, *error_handler;
    const char **path;
    struct api *functions;
};

static void task_begin(const struct domain *d, struct id task, struct id parent, struct handle *name) {
    (void)d, (void)task, (void)parent;
    hear("begin", name->text);
}

static void task_end(const struct domain *d) { hear("end", d->name); }

static void marker(const struct domain *d, struct id id, struct handle *name, int scope) {
    (void)d, (void)id, (void)scope;
    hear("mark", name->text);
}

static struct domain *domain_create(const char *name) {
    struct domain *d = calloc(1, sizeof *d);
    d->flags = 1;
    d->name = strdup(name);
    hear("domain", name);
    return d;
}

static struct handle *handle_create(const char *text) {
    struct handle *h = calloc(1, sizeof *h);
    h->text = strdup(text);
    return h;
}

static void listen(struct api *functions) {
    static const struct {
        const char *name;
        void *function;
    } ours[] = {{"__itt_task_begin", task_begin},
                {"__itt_task_end", task_end},
                {"__itt_marker", marker},
                {"__itt_domain_create", domain_create},
                {"__itt_string_handle_create", handle_create}};
    for (struct api *api = functions; api->name; api++) {
        *api->function = api->none;
        for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
            if (strcmp(api->name, ours[i].name) == 0)
                *api->function = ours[i].function;
    }
}

#ifdef OLDER_PROTOCOL
void __itt_task_begin(struct domain *d, struct id task, struct id parent, struct handle *name) {
    task_begin(d, task, parent, name);
}
void __itt_task_end(struct domain *d) { task_end(d); }
struct domain *__itt_domain_create(const char *name) { return domain_create(name); }
struct handle *__itt_string_handle_create(const char *text) { return handle_create(text); }
#else
void __itt_api_init(struct global *global, int groups) {
    (void)groups;
    listen(global->functions);
}
#endif

/* ---- NVTX ------------------------------------------------------------------------------- */

static int depth;

static int push(const char *message) {
    hear("begin", message);
    return depth++;
}

static int pop(void) {
    hear("end", "");
    return --depth;
}

int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t)) {
    const struct {
        size_t size;
        int (*functions_of)(int, void ***(*), unsigned *);
    } *callbacks = export_table(1);
    void ***table;
    unsigned count;
    if (!callbacks->functions_of(1, &table, &count) || count < 12)
        return 0;
    *table[9] = push;
    *table[11] = pop;
    return 1;
}
