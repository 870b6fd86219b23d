/* Checks for the C tests: the first that fails says where, and ends the test. */
#ifndef CHECK_H
#define CHECK_H

#include "opprof.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUN(test)                                                                                      \
    do {                                                                                               \
        test();                                                                                        \
        printf("ok %s\n", #test);                                                                      \
        fflush(stdout);                                                                                \
    } while (0)

#define CHECK(condition) check_that(!!(condition), #condition, __FILE__, __LINE__)
#define CHECK_EQ(actual, expected)                                                                     \
    check_equal((long long)(actual), (long long)(expected), #actual, __FILE__, __LINE__)
#define CHECK_TEXT(actual, expected) check_text(actual, expected, #actual, __FILE__, __LINE__)
#define CHECK_OK(call) check_code(call, OP_OK, #call, __FILE__, __LINE__)
/* The call fails with this code, and its message contains this text. */
#define CHECK_FAILS(call, code, text)                                                                  \
    do {                                                                                               \
        check_code(call, code, #call, __FILE__, __LINE__);                                             \
        check_that(strstr(op_last_error(), text) != NULL, op_last_error(), __FILE__, __LINE__);        \
    } while (0)

static inline void check_that(int holds, const char *what, const char *file, int line) {
    if (holds)
        return;
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, what);
    exit(1);
}

static inline void check_equal(long long actual, long long expected, const char *what, const char *file,
                               int line) {
    if (actual != expected)
        fprintf(stderr, "%s is %lld, not %lld\n", what, actual, expected);
    check_that(actual == expected, what, file, line);
}

static inline void check_text(const char *actual, const char *expected, const char *what,
                              const char *file, int line) {
    if (strcmp(actual, expected) != 0)
        fprintf(stderr, "%s is \"%s\", not \"%s\"\n", what, actual, expected);
    check_that(strcmp(actual, expected) == 0, what, file, line);
}

static inline void check_code(int actual, int expected, const char *what, const char *file, int line) {
    if (actual != expected)
        fprintf(stderr, "%s gave %d, not %d: %s\n", what, actual, expected, op_last_error());
    check_that(actual == expected, what, file, line);
}

/* Sanitizers make everything ten times slower, so repetitive tests repeat less. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COUNT(n) ((n) / 10)
#else
#define COUNT(n) (n)
#endif

#endif
