/* A copy of ittnotify as in a library that emits tasks, with the collector behind it. */
#include "fixture.h"
#include "others.h"

typedef struct domain {
    volatile int flags;
    const char *name;
    void *wide;
    int extra1;
    void *extra2;
    struct domain *next;
} domain;

typedef struct string_handle {
    const char *text;
    void *wide;
    int extra1;
    void *extra2;
    struct string_handle *next;
} string_handle;

typedef struct id {
    unsigned long long d1, d2, d3;
} id;

typedef struct api_info {
    const char *name;
    void *function; /* address of a function pointer */
    void *initial, *none;
    int group;
} api_info;

static void (*itt_task_begin)(const domain *, id, id, string_handle *);
static void (*itt_task_end)(const domain *);
static domain *(*itt_domain_create)(const char *);
static string_handle *(*itt_string_handle_create)(const char *);
static void (*itt_pause)(void);
static void (*itt_marker)(const domain *, id, string_handle *, int);
static void (*itt_metadata_add)(const domain *, id, string_handle *, int, size_t, const void *);
static void (*itt_metadata_str_add)(const domain *, id, string_handle *, const char *, size_t);

static void do_nothing(void) {}

static api_info functions[10];

static struct {
    unsigned char magic[8];
    unsigned long version[3];
    volatile long state[3];
    pthread_mutex_t mutex;
    void *lib, *error_handler;
    const char **path;
    api_info *functions;
} global = {.functions = functions};

void __itt_api_init(void *global, int groups);
void __itt_api_fini(void *global);

static const id no_id;

static void bind(size_t at, const char *name, void *function) {
    void (*none)(void) = do_nothing;
    functions[at] = (api_info){.name = name, .function = function};
    memcpy(&functions[at].none, &none, sizeof none);
}

static void a_copy_of_ittnotify_is_bound(void) {
    bind(0, "__itt_task_begin", &itt_task_begin);
    bind(1, "__itt_task_end", &itt_task_end);
    bind(2, "__itt_domain_create", &itt_domain_create);
    bind(3, "__itt_string_handle_create", &itt_string_handle_create);
    bind(4, "__itt_pause", &itt_pause);
    bind(5, "__itt_marker", &itt_marker);
    bind(6, "__itt_metadata_add", &itt_metadata_add);
    bind(7, "__itt_metadata_str_addA", &itt_metadata_str_add);
    __itt_api_init(NULL, 0);
    __itt_api_init(&global, 0);
    CHECK(itt_task_begin && itt_task_end && itt_domain_create && itt_string_handle_create);
    CHECK(itt_pause == do_nothing); /* functions that we do not record are the library's own no-op */
}

static void equal_names_are_one_handle(void) {
    domain *torch = itt_domain_create("PyTorch");
    CHECK(torch && torch->flags);
    CHECK_TEXT(torch->name, "PyTorch");
    CHECK(itt_domain_create("PyTorch") == torch);
    CHECK(itt_domain_create("oneDNN") != torch);
    CHECK(itt_domain_create(NULL) == NULL);
    string_handle *mm = itt_string_handle_create("aten::mm");
    CHECK_TEXT(mm->text, "aten::mm");
    CHECK(itt_string_handle_create("aten::mm") == mm);
    CHECK(itt_string_handle_create("aten::add") != mm);
    CHECK(itt_string_handle_create(NULL) == NULL);
}

static void tasks_nest(void) {
    domain *torch = itt_domain_create("PyTorch"), *other = itt_domain_create("oneDNN");
    CHECK_OK(op_window_start());
    itt_task_begin(torch, no_id, no_id, itt_string_handle_create("op"));
    itt_task_begin(other, no_id, no_id, itt_string_handle_create("primitive"));
    itt_task_end(other);
    itt_task_end(torch);
    itt_task_begin(NULL, no_id, no_id, NULL);
    itt_task_end(NULL);
    op_result *r = stop_window();
    op_columns c = columns_of(r);
    CHECK_EQ(c.count, 3);
    CHECK_EQ(c.kind[0], OP_ITT);
    CHECK_EQ(c.scope[row_of(r, "op")], 0);
    CHECK_EQ(c.scope[row_of(r, "primitive")], OP_SCOPE_USER);
    CHECK_EQ(c.parent[row_of(r, "primitive")], row_of(r, "op"));
    CHECK_EQ(c.name[2], OP_NAME_NONE);
    op_result_free(r);
}

/* A task has its domain and its metadata; later metadata of a key follow earlier ones. */
static void tasks_carry_their_domain_and_metadata(void) {
    domain *other = itt_domain_create("oneDNN");
    string_handle *key = itt_string_handle_create("batch"), *text = itt_string_handle_create("impl");
    const id first = {1, 2, 3}, second = {4, 5, 6};
    const int32_t negative = -7;
    const float halves[2] = {0.5f, 1.5f};
    CHECK_OK(op_window_start());
    itt_metadata_add(other, first, key, 4, 1, &negative); /* of no task */
    itt_task_begin(other, first, no_id, itt_string_handle_create("outer"));
    itt_task_begin(other, second, no_id, itt_string_handle_create("inner"));
    itt_metadata_add(other, first, key, 4, 1, &negative);
    itt_metadata_add(other, no_id, key, 7, 2, halves);
    itt_metadata_str_add(other, second, text, "jit:avx2", 8);
    itt_metadata_add(other, second, key, 99, 1, &negative);   /* no such type */
    itt_metadata_add(other, second, key, 4, 1000, &negative); /* too many to read */
    itt_marker(other, no_id, itt_string_handle_create("here"), 3);
    itt_task_end(other);
    itt_task_end(other);
    op_result *r = stop_window();
    field_list outer = fields_of(r, row_of(r, "outer")), inner = fields_of(r, row_of(r, "inner"));
    CHECK_EQ(outer.count, 2);
    CHECK_EQ(outer.fields[0].values[0], name_id("oneDNN"));
    CHECK_EQ(outer.fields[1].key, name_id("batch"));
    CHECK_EQ(field_number(&outer.fields[1], 0), -7);
    CHECK_EQ(inner.count, 3);
    CHECK_EQ(inner.fields[1].count, 2);
    CHECK(field_real(&inner.fields[1], 1) == 1.5);
    CHECK_EQ(memcmp(inner.fields[2].values, "jit:avx2", 8), 0);
    int64_t here = row_of(r, "here");
    CHECK_EQ(columns_of(r).kind[here], OP_MARK);
    CHECK_EQ(columns_of(r).duration_ns[here], 0);
    CHECK_EQ(columns_of(r).parent[here], row_of(r, "inner"));
    check_sound(r);
    op_result_free(r);
}

/* What does not fit the chunk is left out; the rest is complete. */
static void metadata_without_end_is_cut(void) {
    domain *other = itt_domain_create("oneDNN");
    CHECK_OK(op_window_start());
    itt_task_begin(other, no_id, no_id, itt_string_handle_create("task"));
    for (uint64_t i = 0; i < 1000; i++) {
        itt_metadata_add(other, no_id, itt_string_handle_create("n"), 1, 1, &i);
        itt_task_begin(other, (id){7, 7, i}, no_id, itt_string_handle_create("small"));
        itt_task_end(other);
    }
    itt_task_end(other);
    op_result *r = stop_window();
    field_list f = fields_of(r, row_of(r, "task"));
    CHECK(f.count > 10);
    for (uint32_t i = 1; i < f.count; i++)
        CHECK_EQ(field_number(&f.fields[i], 0), i - 1);
    check_sound(r);
    op_result_free(r);
}

static void domains_are_recorded_if_asked_for(void) {
    domain *torch = itt_domain_create("PyTorch"), *other = itt_domain_create("oneDNN");
    op_window_accept(OP_INJECTED_TORCH);
    CHECK_OK(op_window_start());
    itt_task_begin(torch, no_id, no_id, itt_string_handle_create("op"));
    itt_task_begin(other, no_id, no_id, itt_string_handle_create("primitive"));
    itt_task_end(other);
    itt_task_end(torch);
    op_result *r = stop_window();
    CHECK_EQ(columns_of(r).count, 1);
    row_of(r, "op");
    op_result_free(r);
    op_window_accept(OP_INJECTED_TORCH | OP_INJECTED_ITT | OP_INJECTED_NVTX);
}

/* Made by a library before it loaded us: our fields are empty. */
static void handles_from_before_are_understood(void) {
    domain torch = {.flags = 1, .name = "PyTorch"}, nameless = {.flags = 1};
    string_handle early = {.text = "early"}, textless = {.text = NULL};
    CHECK_OK(op_window_start());
    itt_task_begin(&torch, no_id, no_id, &early);
    itt_task_begin(&nameless, no_id, no_id, &textless);
    itt_task_end(&nameless);
    itt_task_end(&torch);
    op_result *r = stop_window();
    CHECK_EQ(columns_of(r).scope[row_of(r, "early")], 0);
    CHECK_EQ(columns_of(r).scope[1], OP_SCOPE_USER);
    op_result_free(r);
}

static void ends_without_a_begin_are_ignored(void) {
    itt_task_end(NULL);
    itt_task_begin(NULL, no_id, no_id, itt_string_handle_create("before the window"));
    CHECK_OK(op_window_start());
    itt_task_end(NULL);
    itt_task_end(NULL);
    itt_task_begin(NULL, no_id, no_id, itt_string_handle_create("inside"));
    itt_task_end(NULL);
    op_result *r = stop_window();
    CHECK_EQ(columns_of(r).count, 1);
    CHECK_EQ(columns_of(r).flags[row_of(r, "inside")], 0);
    op_result_free(r);
}

static void a_task_in_a_pause_has_an_end_of_its_own(void) {
    const char *const domains[] = {"PyTorch", "oneDNN"};
    for (int i = 0; i < 2; i++) {
        domain *d = itt_domain_create(domains[i]);
        CHECK_OK(op_window_start());
        itt_task_begin(d, no_id, no_id, itt_string_handle_create("outer"));
        op_window_pause();
        itt_task_begin(d, no_id, no_id, itt_string_handle_create("unseen"));
        itt_task_end(d);
        op_window_resume();
        itt_task_begin(d, no_id, no_id, itt_string_handle_create("inner"));
        itt_task_end(d);
        itt_task_end(d);
        op_result *r = stop_window();
        CHECK_EQ(columns_of(r).count, 2);
        CHECK_EQ(columns_of(r).parent[row_of(r, "inner")], row_of(r, "outer"));
        op_result_free(r);
    }
}

static void *emit(void *unused) {
    (void)unused;
    domain *d = itt_domain_create("threads");
    for (int i = 0; i < 200; i++) {
        char text[32];
        snprintf(text, sizeof text, "task %d", i);
        itt_task_begin(d, no_id, no_id, itt_string_handle_create(text));
    }
    for (int i = 0; i < 200; i++)
        itt_task_end(d);
    return NULL;
}

static void threads_have_tasks_of_their_own(void) {
    CHECK_OK(op_window_start());
    on_threads(4, emit, NULL, 0);
    op_result *r = stop_window();
    check_sound(r);
    op_columns c = columns_of(r);
    CHECK_EQ(c.count, 800);
    for (uint64_t row = 0; row < c.count; row++) {
        CHECK_EQ(c.flags[row], 0);
        CHECK_EQ(c.parent[row], row % 200 ? (int64_t)row - 1 : -1);
    }
    op_result_free(r);
}

static void make_handle(unsigned turn) {
    char text[32];
    snprintf(text, sizeof text, "handle %u", turn);
    itt_domain_create(text);
    itt_string_handle_create(text);
}

static void make_handle_in_child(void) {
    alarm(20); /* a lock without an owner would never be released */
    itt_domain_create("of a child");
    itt_string_handle_create("of a child");
}

static void children_may_make_handles(void) { fork_beside(make_handle, make_handle_in_child); }

int main(void) {
    folder here = make_folder();
    open_session(&here);
    RUN(a_copy_of_ittnotify_is_bound);
    RUN(equal_names_are_one_handle);
    RUN(tasks_nest);
    RUN(tasks_carry_their_domain_and_metadata);
    RUN(metadata_without_end_is_cut);
    RUN(domains_are_recorded_if_asked_for);
    RUN(handles_from_before_are_understood);
    RUN(ends_without_a_begin_are_ignored);
    RUN(a_task_in_a_pause_has_an_end_of_its_own);
    RUN(threads_have_tasks_of_their_own);
    RUN(children_may_make_handles);
    __itt_api_fini(&global);
    close_session(&here);
    return 0;
}
