#include "core/error.h"

#include "opprof.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 1536u

/* Not a thread-local variable: because of op_self, all of this library's would use what the loader
 * reserves for late libraries, 1,664 bytes for all of them, and torch is loaded late too. */
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_key;

/* Not free() itself: if the library took its address, malloc_watch.c could not find its call's slot. */
static void free_text(void *text) { free(text); }

static void make_key(void) { has_key = pthread_key_create(&key, free_text) == 0; }

/* This thread's text; NULL: it had no error, or there was no memory for one. */
static char *text_here(void) {
    pthread_once(&once, make_key);
    return has_key ? pthread_getspecific(key) : NULL;
}

static char *text_to_set(void) {
    char *text = text_here();
    if (text || !has_key)
        return text;
    text = calloc(1, TEXT_MAX);
    if (text && pthread_setspecific(key, text)) {
        free(text);
        text = NULL;
    }
    return text;
}

static size_t set(const char *format, va_list args) {
    char *text = text_to_set();
    int n = text ? vsnprintf(text, TEXT_MAX, format, args) : 0;
    return n < 0 ? 0 : (size_t)n;
}

int op_error_set(int code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    set(format, args);
    va_end(args);
    return code;
}

int op_error_errno(const char *format, ...) {
    char reason[128];
    const char *said = strerror_r(errno, reason, sizeof reason);
    va_list args;
    va_start(args, format);
    size_t n = set(format, args);
    va_end(args);
    char *text = text_here();
    if (text && n < TEXT_MAX)
        snprintf(text + n, TEXT_MAX - n, ": %s", said);
    return OP_EIO;
}

const char *op_last_error(void) {
    const char *text = text_here();
    return text ? text : "there was no memory to say why";
}
