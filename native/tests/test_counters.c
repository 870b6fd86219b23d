/* The kernel's own counters, through real system calls. If this user may not count (a container's
 * filter, perf_event_paranoid), checks that events are still recorded. */
#include "sources/counters.h"

#include "core/fault.h"
#include "fixture.h"
#include "json.h"
#include "others.h"

static folder here;

static uint32_t counter(const char *name) {
    for (uint32_t i = 0; op_counter_name(i); i++)
        if (strcmp(op_counter_name(i), name) == 0)
            return i;
    CHECK(false && "a counter of this name");
    return 0;
}

static bool can_count(void) {
    return op_counter_refusal(counter("task-clock")) == 0 &&
           op_counter_refusal(counter("pagefaults")) == 0;
}

static int count_both(void) {
    const uint32_t both[] = {counter("task-clock"), counter("pagefaults")};
    return op_window_count(both, 2);
}

static op_slot begin_counted(const char *name) {
    op_slot slot = begin(name);
    op_count_begin(&slot);
    return slot;
}

static void end_counted(const op_slot *slot) {
    op_count_end(slot);
    op_end(slot);
}

/* Each page of this much fresh memory faults once. */
static void touch_pages(size_t pages) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    volatile char *p =
        mmap(NULL, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED);
    madvise((void *)p, pages * page, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < pages; i++)
        p[i * page] = 1;
    munmap((void *)p, pages * page);
}

/* -1: the event has no counter of this name. */
static int64_t counted(const op_result *r, const char *event, const char *name) {
    uint32_t block = op_result_counters(r, (uint64_t)row_of(r, event));
    uint64_t words;
    const uint32_t *args = op_result_args(r, &words), *at = NULL;
    op_field field;
    while (block && op_fields_next(args + block - 1, args + words, &at, &field))
        if (field.key == name_id(name))
            return field_number(&field, 0);
    return -1;
}

/* Only those of counters, because a session may open a spill file meanwhile. */
static int count_descriptors(void) {
    DIR *open_files = opendir("/proc/self/fd");
    CHECK(open_files != NULL);
    int n = 0;
    for (struct dirent *d = readdir(open_files); d; d = readdir(open_files)) {
        char target[64] = "";
        n += readlinkat(dirfd(open_files), d->d_name, target, sizeof target - 1) > 0 &&
             strcmp(target, "anon_inode:[perf_event]") == 0;
    }
    closedir(open_files);
    return n;
}

static void an_event_has_what_happened_in_it(void) {
    open_session(&here);
    int before = count_descriptors();
    CHECK_OK(count_both());
    CHECK_OK(op_window_start());
    op_slot outer = begin_counted("outer"), few = begin_counted("few");
    touch_pages(10);
    end_counted(&few);
    op_slot many = begin_counted("many");
    touch_pages(1000);
    end_counted(&many);
    CHECK_EQ(count_descriptors(), before + 2);
    op_slot plain = begin("not counted");
    op_end(&plain);
    end_counted(&outer);
    op_result *r = stop_window();
    CHECK_EQ(columns_of(r).count, 4);
    CHECK(counted(r, "few", "pagefaults") >= 10 && counted(r, "few", "pagefaults") < 500);
    CHECK(counted(r, "many", "pagefaults") >= 1000);
    CHECK(counted(r, "outer", "pagefaults") >=
          counted(r, "few", "pagefaults") + counted(r, "many", "pagefaults"));
    CHECK(counted(r, "many", "task-clock") > 0);
    CHECK(counted(r, "outer", "task-clock") >= counted(r, "many", "task-clock"));
    CHECK_EQ(counted(r, "not counted", "pagefaults"), -1);
    CHECK_EQ(stats_of(r).uncounted, 0);
    CHECK_EQ(count_descriptors(), before); /* closed by the window's end */
    check_sound(r);
    op_result_free(r);
    close_session(&here);
    here = make_folder();
}

static void the_trace_has_them_by_name(void) {
    open_session(&here);
    CHECK_OK(count_both());
    CHECK_OK(op_window_start());
    op_slot slot = begin_counted("range");
    end_counted(&slot);
    op_result *r = stop_window();
    FILE *file = tmpfile();
    CHECK(file != NULL);
    CHECK_OK(op_result_write_trace(r, fileno(file), "", "t"));
    char text[8192] = "", expected[64];
    CHECK(pread(fileno(file), text, sizeof text - 1, 0) > 0);
    snprintf(expected, sizeof expected, "\"task-clock\":%lld,",
             (long long)counted(r, "range", "task-clock"));
    CHECK(strstr(text, expected) != NULL);
    CHECK(is_json(text));
    fclose(file);
    op_result_free(r);
    close_session(&here);
    here = make_folder();
}

enum { THREADS = 3, EVENTS = 300 };

static void *record_counted(void *unused) {
    for (int i = 0; i < EVENTS; i++) {
        op_slot outer = begin_counted("of a thread"), inner = begin_counted("inside");
        end_counted(&inner);
        end_counted(&outer);
    }
    return unused;
}

static void each_thread_counts_for_itself(void) {
    open_roomy_session(&here);
    int before = count_descriptors();
    CHECK_OK(count_both());
    for (int window = 0; window < 3; window++) {
        pthread_t threads[THREADS];
        CHECK_OK(op_window_start());
        start_threads(threads, THREADS, record_counted, NULL, 0);
        op_slot slot = begin_counted("mine");
        touch_pages(50);
        end_counted(&slot);
        join_threads(threads, THREADS);
        op_result *r = stop_window();
        CHECK_EQ(columns_of(r).count, 1 + THREADS * EVENTS * 2);
        for (uint64_t row = 0; row < columns_of(r).count; row++)
            CHECK(op_result_counters(r, row) != 0);
        CHECK(counted(r, "mine", "pagefaults") >= 50);
        check_sound(r);
        op_result_free(r);
    }
    CHECK_EQ(count_descriptors(), before);
    close_session(&here);
    here = make_folder();
}

/* Threads that still record when the window ends and closes their descriptors. */
static uint32_t stop_recording;

static void *record_forever(void *unused) {
    while (!__atomic_load_n(&stop_recording, __ATOMIC_RELAXED)) {
        op_slot slot = begin_counted("forever");
        end_counted(&slot);
    }
    return unused;
}

static void windows_end_under_counting_threads(void) {
    open_roomy_session(&here);
    int before = count_descriptors();
    CHECK_OK(count_both());
    pthread_t threads[THREADS];
    __atomic_store_n(&stop_recording, 0, __ATOMIC_RELAXED);
    start_threads(threads, THREADS, record_forever, NULL, 0);
    for (int window = 0; window < COUNT(100); window++) {
        CHECK_OK(op_window_start());
        op_slot slot = begin_counted("mine");
        end_counted(&slot);
        op_result *r = stop_window();
        CHECK(counted(r, "mine", "task-clock") >= 0);
        check_sound(r);
        op_result_free(r);
    }
    CHECK_EQ(count_descriptors(), before);
    __atomic_store_n(&stop_recording, 1, __ATOMIC_RELAXED);
    join_threads(threads, THREADS);
    close_session(&here);
    here = make_folder();
}

static op_slot handed_over;

static void *end_it_here(void *unused) {
    end_counted(&handed_over);
    return unused;
}

static void what_ends_elsewhere_has_none(void) {
    open_session(&here);
    CHECK_OK(count_both());
    CHECK_OK(op_window_start());
    op_slot outer = begin_counted("outer");
    handed_over = begin_counted("handed over");
    on_another_thread(end_it_here, NULL);
    op_slot late = begin_counted("late"), first = begin_counted("out of order");
    end_counted(&late);
    end_counted(&first);
    end_counted(&outer);
    op_result *r = stop_window();
    CHECK_EQ(counted(r, "handed over", "task-clock"), -1);
    CHECK_EQ(counted(r, "late", "task-clock"), -1);
    CHECK(counted(r, "outer", "task-clock") >= 0);
    op_result_free(r);
    close_session(&here);
    here = make_folder();
}

static void deep_nesting_is_counted(void) {
    enum { DEPTH = 2000 };
    static op_slot slots[DEPTH];
    open_roomy_session(&here);
    CHECK_OK(count_both());
    CHECK_OK(op_window_start());
    for (int i = 0; i < DEPTH; i++)
        slots[i] = begin_counted("deep");
    for (int i = DEPTH; i-- > 0;)
        end_counted(&slots[i]);
    op_result *r = stop_window();
    CHECK_EQ(columns_of(r).count, DEPTH);
    for (uint64_t row = 0; row < DEPTH; row++)
        CHECK(op_result_counters(r, row) != 0);
    op_result_free(r);
    close_session(&here);
    here = make_folder();
}

static op_slot of_the_parent;
static int descriptors_before;

static void end_in_child(void) {
    CHECK(count_descriptors() <= descriptors_before);
    op_count_end(&of_the_parent);
}

static void a_child_counts_for_itself(void) {
    open_session(&here);
    descriptors_before = count_descriptors();
    CHECK_OK(count_both());
    CHECK_OK(op_window_start());
    of_the_parent = begin_counted("parent");
    in_child(end_in_child, _exit);
    end_counted(&of_the_parent);
    op_result *r = stop_window();
    CHECK(counted(r, "parent", "task-clock") > 0);
    op_result_free(r);
    close_session(&here);
    here = make_folder();
}

/* ---- refusals ----------------------------------------------------------------------------- */

static void what_cannot_be_counted_is_told(void) {
    const uint32_t unknown[] = {999}, many[] = {0, 1, 2, 3, 4};
    open_session(&here);
    CHECK_EQ(op_counter_refusal(999), EINVAL);
    CHECK_FAILS(op_window_count(unknown, 1), OP_EIO, "999");
    CHECK_FAILS(op_window_count(many, 5), OP_EIO, "at most 4");
    CHECK_OK(op_window_start());
    CHECK_FAILS(op_window_count(NULL, 0), OP_EBUSY, "open");
    op_slot slot = begin("range");
    op_end(&slot);
    op_result *r = stop_window();
    CHECK_EQ(op_result_counters(r, 0), 0);
    CHECK_EQ(op_result_counters(r, 1), 0);
    op_result_free(r);
    CHECK_OK(op_window_count(NULL, 0));
    close_session(&here);
    here = make_folder();
}

#ifdef OP_FAULTS
/* The n-th open fails: in the choice (1, 2), on this thread (3, 4) or on another. No event is lost. */
static void a_refused_open_loses_no_event(void) {
    for (unsigned nth = 1; nth <= 6; nth++) {
        open_roomy_session(&here);
        int before = count_descriptors();
        op_fault_arm(OP_FAULT_COUNTER, nth);
        int rc = count_both();
        CHECK_EQ(rc == OP_OK, nth > 2);
        if (rc != OP_OK)
            CHECK(strstr(op_last_error(), "counters at once") != NULL);
        CHECK_OK(op_window_start());
        record_counted(NULL);
        on_another_thread(record_counted, NULL);
        CHECK_EQ(op_fault_fired(), 1);
        op_fault_arm(OP_FAULT_COUNTER, 0);
        op_result *r = stop_window();
        op_columns c = columns_of(r);
        CHECK_EQ(c.count, 2 * 2 * EVENTS);
        CHECK_EQ(stats_of(r).dropped, 0);
        CHECK_EQ(stats_of(r).uncounted, nth > 2);
        for (uint64_t row = 0; row < c.count; row++)
            CHECK_EQ(op_result_counters(r, row) != 0, nth > 2 && c.thread[row] != (nth > 4));
        check_sound(r);
        op_result_free(r);
        CHECK_EQ(count_descriptors(), before);
        CHECK_OK(op_window_count(NULL, 0));
        close_session(&here);
        here = make_folder();
    }
}

static void without_memory_no_event_is_lost(void) {
    for (unsigned nth = 1;; nth++) {
        op_result *r = NULL;
        open_roomy_session(&here);
        CHECK_OK(count_both());
        CHECK_OK(op_window_start());
        op_slot known = begin("of a thread"), too = begin("inside");
        op_end(&too);
        op_end(&known);
        op_fault_arm(OP_FAULT_MEMORY, nth);
        record_counted(NULL);
        bool fired = op_fault_fired() > 0;
        op_fault_arm(OP_FAULT_MEMORY, 0);
        CHECK_OK(op_window_stop(&r));
        CHECK_EQ(columns_of(r).count, 2 + 2 * EVENTS);
        op_result_free(r);
        CHECK_OK(op_window_count(NULL, 0));
        close_session(&here);
        here = make_folder();
        if (!fired) {
            CHECK(nth > 1);
            return;
        }
    }
}
#endif

int main(void) {
    here = make_folder();
    RUN(what_cannot_be_counted_is_told);
    if (!can_count()) {
        printf("ok: the kernel counts nothing here\n");
        remove_folder(&here);
        return 0;
    }
#ifdef OP_FAULTS
    RUN(without_memory_no_event_is_lost); /* first, while this thread has no room for counters yet */
    RUN(a_refused_open_loses_no_event);
#endif
    RUN(an_event_has_what_happened_in_it);
    RUN(the_trace_has_them_by_name);
    RUN(each_thread_counts_for_itself);
    RUN(windows_end_under_counting_threads);
    RUN(what_ends_elsewhere_has_none);
    RUN(deep_nesting_is_counted);
    RUN(a_child_counts_for_itself);
    remove_folder(&here);
    return 0;
}
