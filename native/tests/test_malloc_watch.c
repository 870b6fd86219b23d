#include "fixture.h"
#include "others.h"
#include "result/result.h"

#include <malloc.h>
#include <unistd.h>

void *library_take(size_t bytes); /* taker.c */
void library_give(void *block);

/* The compiler knows malloc() and removes calls that seem useless. */
static void *volatile block;

/* In a program at a fixed address, a function's address may be a constant: that of a stub in the
 * program. The loader gives this address to everybody. */
typedef void (*function)(void);
static const function family[] = {
    (function)malloc,        (function)calloc,         (function)realloc,  (function)reallocarray,
    (function)aligned_alloc, (function)posix_memalign, (function)memalign, (function)free};

static op_result *stop(void) {
    op_result *r;
    op_malloc_unwatch();
    CHECK_OK(op_window_stop(&r));
    return r;
}

static void *take(size_t bytes) {
    void *volatile taken = malloc(bytes);
    return taken;
}

static void start(void) {
    CHECK_OK(op_window_start());
    CHECK_OK(op_malloc_watch(take, free));
}

/* The n-th change at this address; 0: no more. */
static int64_t nth_change(op_result *r, uintptr_t address, int n) {
    for (uint64_t row = 0; row < r->columns.count; row++) {
        op_memory m;
        if (op_result_memory(r, row, &m) && m.address == address && n-- == 0)
            return m.bytes;
    }
    return 0;
}

static void each_of_the_family_is_seen(void) {
    void *blocks[6];
    start();
    block = blocks[0] = malloc(1001);
    block = blocks[1] = calloc(7, 143);
    block = blocks[2] = realloc(NULL, 1003);
    block = blocks[3] = aligned_alloc(64, 1024);
    block = blocks[4] = memalign(32, 1005);
    CHECK_EQ(posix_memalign(&blocks[5], 128, 1006), 0);
    uintptr_t addresses[6];
    for (int i = 0; i < 6; i++) {
        addresses[i] = (uintptr_t)blocks[i];
        free(blocks[i]);
    }
    op_result *r = stop();
    const int64_t bytes[6] = {1001, 1001, 1003, 1024, 1005, 1006};
    for (int i = 0; i < 6; i++) {
        CHECK_EQ(nth_change(r, addresses[i], 0), bytes[i]);
        CHECK_EQ(nth_change(r, addresses[i], 1), -bytes[i]);
    }
    const op_memory_use *use;
    CHECK_OK(op_result_memory_use(r, 0, &use));
    CHECK_EQ(use[r->step_count].allocated, use[r->step_count].freed);
    op_result_free(r);
}

static void a_block_that_grows_gives_back_the_old(void) {
    start();
    block = malloc(10);
    block = realloc(block, 100000);
    free(block);
    op_result *r = stop();
    const op_memory_use *use;
    CHECK_OK(op_result_memory_use(r, 0, &use));
    CHECK_EQ(use[r->step_count].allocated, 100010);
    CHECK_EQ(use[r->step_count].freed, 100010);
    CHECK_EQ(use[r->step_count].peak, 100000);
    op_result_free(r);
}

static void a_library_is_seen(void) {
    start();
    void *taken = library_take(4321);
    uintptr_t address = (uintptr_t)taken;
    library_give(taken);
    op_result *r = stop();
    CHECK_EQ(nth_change(r, address, 0), 4321);
    CHECK_EQ(nth_change(r, address, 1), -4321);
    CHECK_EQ(nth_change(r, address, 2), 0);
    op_result_free(r);
}

static void a_call_by_address_is_seen_at_most_once(void) {
    const volatile function *take = &family[0];
    start();
    block = ((void *(*)(size_t)) * take)(5432);
    uintptr_t address = (uintptr_t)block;
    free(block);
    op_result *r = stop();
    int64_t bytes = nth_change(r, address, 0);
    CHECK(bytes == 5432 || bytes == 0);
    CHECK_EQ(nth_change(r, address, 1), -bytes);
    CHECK_EQ(nth_change(r, address, 2), 0);
    op_result_free(r);
}

static void nothing_is_seen_afterwards(void) {
    start();
    op_result_free(stop());
    CHECK_OK(op_window_start());
    block = reallocarray(calloc(2, 2000), 3, 2000);
    free(realloc(block, 2000));
    library_give(library_take(2000));
    free(block = memalign(32, 2000));
    free(block = aligned_alloc(64, 2048));
    void *aligned;
    CHECK_EQ(posix_memalign(&aligned, 64, 2048), 0);
    free(aligned);
    op_result *r;
    CHECK_OK(op_window_stop(&r));
    CHECK_EQ(r->memory_count, 0);
    op_result_free(r);
}

static void what_is_older_has_no_bytes(void) {
    block = malloc(3000);
    uintptr_t old = (uintptr_t)block;
    start();
    free(block);
    op_result *r = stop();
    CHECK_EQ(nth_change(r, old, 0), 0);
    op_result_free(r);
}

static void failures_are_told(void) {
    volatile size_t too_much = SIZE_MAX / 4;
    start();
    block = malloc(too_much);
    op_result *r = stop();
    CHECK(block == NULL);
    op_memory m = {0};
    for (uint64_t row = 0; row < r->columns.count; row++)
        if (op_result_memory(r, row, &m) && m.address == 0)
            break;
    CHECK_EQ((uint64_t)m.bytes, too_much);
    op_result_free(r);
}

static void resizing_to_nothing_is_no_failure(void) {
    volatile size_t nothing = 0;
    start();
    block = realloc(malloc(10), nothing);
    block = reallocarray(malloc(10), 3, nothing);
    op_result *r = stop();
    op_memory m;
    for (uint64_t row = 0; row < r->columns.count; row++)
        CHECK(!op_result_memory(r, row, &m) || m.address != 0);
    op_result_free(r);
}

static void allocate(void) {
    block = malloc(100);
    free(block);
}

static void a_fork_is_not_held_up(void) {
    start();
    in_child(allocate, _exit);
    op_result_free(stop());
}

/* The C library's own allocations may be seen, even inside the collector. */
static void the_collector_does_not_wait_for_itself(void) {
    op_result *r;
    alarm(30);
    start();
    CHECK_OK(op_step_begin(1)); /* which lists the threads */
    CHECK_OK(op_window_peek(&r));
    op_result_free(r);
    op_result_free(stop());
    alarm(0);
}

static void *take_otherwise(size_t bytes) {
    static char room[64];
    return bytes < sizeof room ? room : NULL;
}

static void give_otherwise(void *taken) { (void)taken; }

static void a_program_that_is_not_seen_is_refused(void) {
    CHECK_OK(op_window_start());
    CHECK_FAILS(op_malloc_watch(take_otherwise, give_otherwise), OP_EUNSEEN, "cannot be watched");
    block = malloc(2000);
    free(block);
    op_result *r;
    CHECK_OK(op_window_stop(&r));
    CHECK_EQ(r->memory_count, 0);
    op_result_free(r);
}

int main(void) {
    const op_config config = {0};
    CHECK_OK(op_session_open(&config));
    RUN(each_of_the_family_is_seen);
    RUN(a_block_that_grows_gives_back_the_old);
    RUN(a_library_is_seen);
    RUN(a_call_by_address_is_seen_at_most_once);
    RUN(nothing_is_seen_afterwards);
    RUN(what_is_older_has_no_bytes);
    RUN(failures_are_told);
    RUN(resizing_to_nothing_is_no_failure);
    RUN(a_fork_is_not_held_up);
    RUN(the_collector_does_not_wait_for_itself);
    RUN(a_program_that_is_not_seen_is_refused);
    op_session_close();
    return 0;
}
