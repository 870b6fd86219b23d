/* What a program may do to itself, and so to us, while it records. */
#include "core/collector.h"
#include "core/fault.h"
#include "core/record.h"
#include "fixture.h"
#include "others.h"
#include "sources/counters.h"

#include <fcntl.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>

#define FITS_NOT 200000u /* events: six times the most a small pool can hold */

static folder here;

static void check_all_there(op_result *r, uint32_t begun) {
    CHECK_EQ(stats_of(r).truncated, 0);
    CHECK_EQ(stats_of(r).dropped, 0);
    check_numbered(r, 0, begun);
    check_sound(r);
    op_result_free(r);
}

/* ---- descriptors ---------------------------------------------------------------------------- */

#define TAKEN 16

/* Opens files of the program's own, which get our old descriptors' numbers. */
static void close_all_and_open(int *taken) {
    CHECK_EQ(syscall(SYS_close_range, 3u, ~0u, 0u), 0);
    for (int i = 0; i < TAKEN; i++) {
        taken[i] = open(here.path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        CHECK(taken[i] >= 0);
        CHECK_EQ(write(taken[i], "mine", 4), 4);
    }
}

static void check_untouched(const int *taken) {
    for (int i = 0; i < TAKEN; i++) {
        char text[8];
        CHECK_EQ(pread(taken[i], text, sizeof text, 0), 4);
        CHECK_EQ(memcmp(text, "mine", 4), 0);
        close(taken[i]);
    }
}

static bool is_locked(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    bool locked = flock(fd, LOCK_SH | LOCK_NB) != 0;
    close(fd);
    return locked;
}

static void closed_descriptors_cost_no_event_and_no_file(void) {
    int taken[TAKEN];
    open_session(&here);
    CHECK_OK(op_window_start());
    record_numbered(name_id("before"), 0, FITS_NOT);
    close_all_and_open(taken);
    CHECK(is_locked(op_session_path())); /* otherwise others would think we are dead */
    record_numbered(name_id("while the log is of somebody else"), FITS_NOT, FITS_NOT);
    op_result *r = stop_window();
    CHECK(stats_of(r).spilled_bytes > FITS_NOT * sizeof(op_event));
    check_all_there(r, 2 * FITS_NOT);
    CHECK_OK(op_window_start());
    record_numbered(name_id("before"), 0, FITS_NOT);
    check_all_there(stop_window(), FITS_NOT);
    op_session_close();
    check_untouched(taken);
}

static void fork_and_close(void) {
    int taken[TAKEN];
    close_all_and_open(taken);
    in_child(op_session_close, _exit);
    op_session_close();
    check_untouched(taken);
}

static void a_child_closes_no_file_of_its_parent(void) {
    open_session(&here);
    CHECK_OK(op_window_start());
    record_numbered(name_id("before"), 0, FITS_NOT);
    in_child(fork_and_close, _exit);
    check_all_there(stop_window(), FITS_NOT);
    op_session_close();
}

static void count_task_clock(void) {
    uint32_t counter = 0;
    while (strcmp(op_counter_name(counter), "task-clock") != 0)
        counter++;
    CHECK_OK(op_window_count(&counter, 1));
}

static void count_a_range(const char *name) {
    op_slot slot = begin(name);
    op_count_begin(&slot);
    op_count_end(&slot);
    op_end(&slot);
}

/* The program's own counters and files get the numbers of ours. */
static void closed_counters_cost_the_program_nothing(void) {
    struct perf_event_attr own = {.type = PERF_TYPE_SOFTWARE,
                                  .size = sizeof own,
                                  .config = PERF_COUNT_SW_TASK_CLOCK,
                                  .exclude_kernel = 1};
    int taken[TAKEN], counter = op_perf_event_open(&own, PERF_FLAG_FD_CLOEXEC);
    if (counter < 0) {
        printf("ok: the kernel counts nothing here\n");
        return;
    }
    close(counter);
    open_session(&here);
    count_task_clock();
    CHECK_OK(op_window_start());
    count_a_range("before");
    close_all_and_open(taken);
    counter = op_perf_event_open(&own, PERF_FLAG_FD_CLOEXEC);
    for (int i = 0; i < TAKEN; i += 2)
        CHECK(lseek(taken[i], 0, SEEK_SET) == 0 && dup2(counter, taken[i + 1]) >= 0);
    count_a_range("after");
    op_result *r = stop_window();
    CHECK(op_result_counters(r, (uint64_t)row_of(r, "before")) != 0);
    CHECK_EQ(op_result_counters(r, (uint64_t)row_of(r, "after")), 0);
    CHECK_EQ(stats_of(r).uncounted, 1);
    op_result_free(r);
    op_session_close();
    CHECK_OK(op_window_count(NULL, 0));
    for (int i = 0; i < TAKEN; i += 2) {
        CHECK_EQ(lseek(taken[i], 0, SEEK_CUR), 0);
        CHECK(close(taken[i]) == 0 && close(taken[i + 1]) == 0);
    }
    close(counter);
}

/* ---- threads -------------------------------------------------------------------------------- */

static uint32_t numbered;

static void *record_until_cancelled(void *unused) {
    (void)unused;
    char name[32];
    for (uint32_t i = 0;; i++) {
        snprintf(name, sizeof name, "cancelled %u", __atomic_add_fetch(&numbered, 1, __ATOMIC_RELAXED));
        op_slot slot = begin_numbered(name_id(name), i);
        op_end(&slot);
        pthread_testcancel();
    }
    return NULL;
}

/* A thread may be cancelled in write(2), which a new name or a spilled chunk calls. */
static void cancelled_threads_take_no_lock_with_them(void) {
    open_session(&here);
    for (int i = 0; i < COUNT(100); i++) {
        uint32_t before = __atomic_load_n(&numbered, __ATOMIC_RELAXED);
        CHECK_OK(op_window_start());
        pthread_t thread = start_thread(record_until_cancelled, NULL);
        while (__atomic_load_n(&numbered, __ATOMIC_RELAXED) < before + 20)
            sched_yield();
        CHECK_EQ(pthread_cancel(thread), 0);
        join_thread(thread);
        check_all_there(stop_window(), numbered - before);
    }
    op_session_close();
}

#if !defined(__SANITIZE_ADDRESS__) &&                                                                  \
    !defined(__SANITIZE_THREAD__) /* sanitizers do not support such ends */

static void kill_threads_that_write_to(int fd) {
    const uint32_t call = offsetof(struct seccomp_data, nr),
                   to = offsetof(struct seccomp_data, args[0]);
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, call),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, to),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)fd, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_THREAD),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = {.len = sizeof rules / sizeof *rules, .filter = rules};
    CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
}

/* The drain inherits the filter from the thread that starts it, which writes nothing itself. */
static void *record_past_the_drains_death(void *unused) {
    (void)unused;
    volatile op_collector *collector = &op_the_collector;
    kill_threads_that_write_to(collector->spill.file.fd);
    collector->spill.drain_tid = 0;
    uint32_t i = 0;
    while (!collector->full) /* the drain gets the first full chunk, because another thread holds half
                                of the pool */
        record_numbered(name_id("much"), i++, 1);
    while (!collector->spill.drain_tid ||
           syscall(SYS_tgkill, getpid(), collector->spill.drain_tid, 0) == 0)
        sched_yield();
    record_numbered(name_id("much"), i, FITS_NOT - i);
    return NULL;
}

static void a_killed_drain_is_said_and_holds_nobody_up(void) {
    open_session(&here);
    CHECK_OK(op_window_start());
    record_numbered(name_id("much"), 0, FITS_NOT);
    check_all_there(stop_window(), FITS_NOT);
    CHECK_OK(op_window_start());
    on_another_thread(record_past_the_drains_death, NULL);
    op_result *r = stop_window();
    op_stats s = stats_of(r);
    CHECK(s.truncated && s.events && s.dropped);
    CHECK_EQ(s.events + s.dropped, FITS_NOT);
    check_numbered(r, 0, s.events);
    check_sound(r);
    op_result_free(r);
    CHECK_OK(op_window_start());
    record_numbered(name_id("much"), 0, FITS_NOT);
    check_all_there(stop_window(), FITS_NOT);
    op_session_close();
}

#endif

/* ---- signals -------------------------------------------------------------------------------- */

static volatile sig_atomic_t alarms;

static void count_alarm(int number) {
    (void)number;
    alarms++;
}

static void set_timer(long period_us) {
    struct itimerval timer = {.it_interval.tv_usec = period_us, .it_value.tv_usec = period_us};
    CHECK_EQ(setitimer(ITIMER_REAL, &timer, NULL), 0);
}

/* Without SA_RESTART, so that each interruptible system call is interrupted. */
static void with_alarms(void (*body)(void)) {
    struct sigaction action = {.sa_handler = count_alarm}, before;
    CHECK_EQ(sigaction(SIGALRM, &action, &before), 0);
    alarms = 0;
    set_timer(100);
    body();
    set_timer(0);
    CHECK_EQ(sigaction(SIGALRM, &before, NULL), 0);
    CHECK(alarms > 0);
}

static void open_sessions(void) {
    for (int i = 0; i < 10; i++) {
        open_session_with((op_config){.pool_dir = here.path, .spill_dir = here.path});
        CHECK(op_session_path()[0]);
        op_session_close();
    }
}

static void a_fast_timer_keeps_no_session_from_its_file(void) { with_alarms(open_sessions); }

static void spill_much(void) {
    open_session(&here);
    CHECK_OK(op_window_start());
    record_numbered(name_id("much"), 0, 5 * FITS_NOT);
    check_all_there(stop_window(), 5 * FITS_NOT);
    op_session_close();
}

static void a_fast_timer_costs_no_event(void) { with_alarms(spill_much); }

/* ---- thread-local memory ----------------------------------------------------------------------- */

#define LITTLE 128u /* bytes, of the 1,664 that glibc reserves for all late libraries */

static int look_at_library(struct dl_phdr_info *library, size_t size, void *seen) {
    (void)size;
    if (strstr(library->dlpi_name, "libopprof.so"))
        for (ElfW(Half) i = 0; i < library->dlpi_phnum; i++)
            if (library->dlpi_phdr[i].p_type == PT_TLS) {
                CHECK(library->dlpi_phdr[i].p_memsz <= LITTLE);
                *(bool *)seen = true;
            }
    return 0;
}

/* Otherwise it could not be loaded with a torch that took the rest, nor that torch with it. */
static void thread_local_memory_leaves_room_for_other_libraries(void) {
    bool seen = false;
    dl_iterate_phdr(look_at_library, &seen);
    CHECK(seen);
}

int main(void) {
    here = make_folder();
    RUN(closed_descriptors_cost_no_event_and_no_file);
    RUN(a_child_closes_no_file_of_its_parent);
    RUN(closed_counters_cost_the_program_nothing);
    RUN(cancelled_threads_take_no_lock_with_them);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    RUN(a_killed_drain_is_said_and_holds_nobody_up);
#endif
    RUN(a_fast_timer_keeps_no_session_from_its_file);
    RUN(a_fast_timer_costs_no_event);
    RUN(thread_local_memory_leaves_room_for_other_libraries);
    remove_folder(&here);
    return 0;
}
