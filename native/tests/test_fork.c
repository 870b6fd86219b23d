#include "core/collector.h"
#include "core/record.h"
#include "fixture.h"
#include "others.h"

#include <fcntl.h>
#include <sys/file.h>

static folder here;

/* Under ASan, a child of a multi-threaded process may find the allocator locked forever, and checks for
 * leaks at exit. So such a child does next to nothing, and leaves by _exit(). */
static bool others_run;

static void fork_into(void (*body)(void)) { in_child(body, others_run ? _exit : exit); }

static op_slot before_the_fork;

static void be_inert(void) {
    CHECK(!op_session_is_open());
    CHECK(!op_window_is_open());
    CHECK_TEXT(op_session_path(), "");
    op_end(&before_the_fork);
    op_slot slot = begin("in the child");
    CHECK(slot.event == NULL);
    op_end(&slot);
    op_result *r;
    CHECK_FAILS(op_window_stop(&r), OP_ESTATE, "no window");
    CHECK_FAILS(op_window_start(), OP_ESTATE, "no session");
    op_session_close();
}

static void record_twice(void) {
    for (int window = 0; window < 2; window++) {
        CHECK_OK(op_window_start());
        op_end(&before_the_fork);
        record_numbered(name_id("in the child"), 0, 100000);
        op_result *r = stop_window();
        CHECK_EQ(stats_of(r).truncated, 0);
        CHECK(stats_of(r).spilled_bytes > 0);
        check_numbered(r, 0, 100000);
        check_sound(r);
        op_result_free(r);
    }
}

static void record_on_its_own(void) {
    folder own = make_folder();
    open_session(&own);
    CHECK(strstr(op_session_path(), own.path) != NULL);
    record_twice();
    fork_into(be_inert); /* a grandchild */
    CHECK(op_session_is_open());
    close_session(&own);
}

static void record_where_the_parent_does(void) {
    open_session(&here);
    record_twice();
    op_session_close();
}

/* Forks in the middle of a window, between two halves of 50,000 events. */
static void check_parent_unharmed(void (*child)(void)) {
    open_session(&here);
    CHECK_OK(op_window_start());
    record_numbered(name_id("in the parent"), 0, 50000);
    before_the_fork = begin_numbered(name_id("in the parent"), 50000);
    fork_into(child);
    op_end(&before_the_fork);
    record_numbered(name_id("in the parent"), 50001, 49999);
    int other = open(op_session_path(), O_RDONLY | O_CLOEXEC);
    CHECK(other >= 0);
    CHECK_EQ(flock(other, LOCK_SH | LOCK_NB), -1); /* still ours, so nobody thinks we are dead */
    close(other);
    op_result *r = stop_window();
    check_numbered(r, 0, 100000);
    check_sound(r);
    CHECK_EQ(columns_of(r).flags[50000], 0);
    CHECK_EQ(stats_of(r).threads, 1);
    CHECK_EQ(stats_of(r).unmatched_ends, 0);
    op_result_free(r);
    op_session_close();
}

static void child_is_inert(void) { check_parent_unharmed(be_inert); }
static void child_may_open_a_session(void) { check_parent_unharmed(record_on_its_own); }
static void child_may_use_the_same_folder(void) { check_parent_unharmed(record_where_the_parent_does); }

static void nothing_at_all(void) {}

static void fork_without_a_session(void) {
    fork_into(nothing_at_all);
    fork_into(record_on_its_own);
}

static void fork_without_a_window(void) {
    open_session(&here);
    fork_into(be_inert);
    fork_into(record_on_its_own);
    op_session_close();
}

static void no_native_thread_is_left_by_a_fork(void) {
    open_session(&here);
    int before = count_tasks();
    CHECK_OK(op_window_start());
    record_numbered(name_id("much"), 0, 100000);
    CHECK_EQ(count_tasks(), before + 1); /* the drain thread */
    fork_into(nothing_at_all);
    CHECK_EQ(count_tasks(), before);
    op_result_free(stop_window());
    op_session_close();
}

/* ---- other threads record while this one forks ------------------------------------------------ */

static int stop_recording, tasks_at_fork;

static void *record_forever(void *name) {
    for (uint32_t i = 0; !__atomic_load_n(&stop_recording, __ATOMIC_RELAXED); i++) {
        record_numbered(*(uint32_t *)name, i, 1);
        if (i % 1000 == 0) { /* new names take another lock */
            char text[32];
            snprintf(text, sizeof text, "forked-%u", i);
            name_id(text);
        }
    }
    return NULL;
}

static void count_tasks_at_fork(void) { tasks_at_fork = count_tasks(); }

/* Not enough to start a thread: TSan only knows those from before the fork. */
static void intern_and_record(void) {
#if defined(__SANITIZE_ADDRESS__)
    return;
#endif
    name_id("only in the child");
    open_session(&here);
    CHECK_OK(op_window_start());
    record_numbered(name_id("in the child"), 0, 1000);
    op_result *r = stop_window();
    check_numbered(r, 0, 1000);
    op_result_free(r);
    op_session_close();
}

static void forks_under_recording_threads(void) {
    pthread_t threads[3];
    uint32_t name = name_id("forever");
    others_run = true;
    stop_recording = 0;
    open_session_with((op_config){.pool_dir = here.path,
                                  .spill_dir = here.path,
                                  .pool_bytes = OP_CHUNK_MAX,
                                  .max_bytes = 16u << 20});
    start_threads(threads, 3, record_forever, &name, 0);
    int before = count_tasks();
    CHECK_OK(op_window_start());
    for (int i = 0; i < COUNT(40); i++) {
        fork_into(i % 10 ? nothing_at_all : intern_and_record);
        /* Python counts them too, and warns about any other thread. */
        CHECK_EQ(tasks_at_fork, before);
        if (i % 3 == 0) {
            op_result_free(stop_window());
            CHECK_OK(op_window_start());
        }
    }
    __atomic_store_n(&stop_recording, 1, __ATOMIC_RELAXED);
    join_threads(threads, 3);
    op_result *r = stop_window();
    check_sound(r);
    op_result_free(r);
    op_session_close();
    others_run = false;
}

static void record_here(void) {
    open_session(&here);
    CHECK_OK(op_window_start());
    record_numbered(name_id("child"), 0, 100);
    /* ends silently: exit() of a child that never stopped its window */
}

static void child_that_never_closes_leaves_only_its_own_files(void) {
    open_session(&here);
    const char *path = op_session_path();
    fork_into(record_here);
    CHECK_EQ(access(path, F_OK), 0);
    op_session_close();
    DIR *files = opendir(here.path);
    for (struct dirent *d = readdir(files); d; d = readdir(files))
        if (d->d_name[0] != '.')
            CHECK_EQ(unlinkat(dirfd(files), d->d_name, 0), 0);
    closedir(files);
}

int main(void) {
    here = make_folder();
    /* Registered before the collector's own handler, so that it runs after it. */
    CHECK_EQ(pthread_atfork(count_tasks_at_fork, NULL, NULL), 0);
    RUN(fork_without_a_session);
    RUN(fork_without_a_window);
    RUN(child_is_inert);
    RUN(child_may_open_a_session);
    RUN(child_may_use_the_same_folder);
    RUN(no_native_thread_is_left_by_a_fork);
    RUN(forks_under_recording_threads);
    RUN(child_that_never_closes_leaves_only_its_own_files);
    remove_folder(&here);
    return 0;
}
