/* The ITT ABI, as far as either of our sides uses it: layouts from ittnotify_config.h of ITT API 3.x
 * (struct ___itt_global up to api_list_ptr, ___itt_domain, ___itt_string_handle). No 3.x release has
 * changed them up to these fields. */
#ifndef OP_ITT_ABI_H
#define OP_ITT_ABI_H

#include <pthread.h>

typedef struct itt_api_info {
    const char *name;
    void **func_ptr;
    void *init_func, *null_func;
    int group;
} itt_api_info;

typedef struct itt_domain {
    volatile int flags; /* 0: the inline macros do not call the collector */
    const char *nameA;
    void *nameW;
    int extra1; /* the collector's own */
    void *extra2;
    struct itt_domain *next;
} itt_domain;

typedef struct itt_string {
    const char *strA;
    void *strW;
    int extra1; /* the collector's own */
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

#endif
