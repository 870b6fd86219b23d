/* Other threads, and other processes. */
#ifndef OTHERS_H
#define OTHERS_H

#include "check.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

typedef void *(*thread_body)(void *);

static inline pthread_t start_thread(thread_body body, void *argument) {
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, body, argument), 0);
    return thread;
}

static inline void join_thread(pthread_t thread) { CHECK_EQ(pthread_join(thread, NULL), 0); }

static inline void on_another_thread(thread_body body, void *argument) {
    join_thread(start_thread(body, argument));
}

/* Each with its own argument, `size` bytes apart; 0: the same for all. */
static inline void start_threads(pthread_t *threads, int count, thread_body body, void *arguments,
                                 size_t size) {
    for (int i = 0; i < count; i++)
        threads[i] = start_thread(body, arguments ? (char *)arguments + (size_t)i * size : NULL);
}

static inline void join_threads(const pthread_t *threads, int count) {
    for (int i = 0; i < count; i++)
        join_thread(threads[i]);
}

static inline void on_threads(int count, thread_body body, void *arguments, size_t size) {
    pthread_t threads[64];
    CHECK(count <= 64);
    start_threads(threads, count, body, arguments, size);
    join_threads(threads, count);
}

/* Runs `body` in a child that leaves by exit(), which then checks for leaks, or by _exit(). A check
 * that fails there fails here. */
static inline void in_child(void (*body)(void), void (*leave)(int)) {
    fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        body();
        leave(0);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
}

/* ---- locks that a fork must not leave behind ------------------------------------------------ */

typedef struct repeated {
    void (*task)(unsigned turn);
    bool is_over;
} repeated;

static inline void *repeat(void *work) {
    repeated *r = work;
    for (unsigned turn = 0; !__atomic_load_n(&r->is_over, __ATOMIC_RELAXED); turn++)
        r->task(turn);
    return NULL;
}

/* Forks children that run `body` while another thread is somewhere in `task`. */
static inline void fork_beside(void (*task)(unsigned turn), void (*body)(void)) {
    repeated work = {.task = task};
    pthread_t thread = start_thread(repeat, &work);
    for (int i = 0; i < COUNT(50); i++)
        in_child(body, _exit);
    __atomic_store_n(&work.is_over, true, __ATOMIC_RELAXED);
    join_thread(thread);
}

#endif
