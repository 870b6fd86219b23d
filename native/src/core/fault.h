/* System requests that may fail. With -DOP_FAULTS a test makes the n-th request of a kind fail; without
 * it these are the plain calls. */
#ifndef OP_FAULT_H
#define OP_FAULT_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum op_fault_kind {
    OP_FAULT_MEMORY,
    OP_FAULT_MAP,
    OP_FAULT_FALLOCATE,
    OP_FAULT_WRITE,
    OP_FAULT_OPEN,
    OP_FAULT_THREAD,
    OP_FAULT_COUNTER,
    OP_FAULT_KINDS
};

#ifdef OP_FAULTS

void op_fault_arm(enum op_fault_kind kind, unsigned nth); /* nth 0: never */
unsigned op_fault_fired(void);                            /* failures injected since arming */
int op_fault_now(enum op_fault_kind kind);

static inline void *op_malloc(size_t n) { return op_fault_now(OP_FAULT_MEMORY) ? NULL : malloc(n); }
static inline void *op_calloc(size_t n, size_t size) {
    return op_fault_now(OP_FAULT_MEMORY) ? NULL : calloc(n, size);
}
static inline void *op_aligned_alloc(size_t alignment, size_t n) {
    return op_fault_now(OP_FAULT_MEMORY) ? NULL : aligned_alloc(alignment, n);
}
static inline void *op_realloc(void *p, size_t n) {
    return op_fault_now(OP_FAULT_MEMORY) ? NULL : realloc(p, n);
}
static inline void *op_mmap(void *a, size_t n, int prot, int flags, int fd, off_t at) {
    if (op_fault_now(OP_FAULT_MAP)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return mmap(a, n, prot, flags, fd, at);
}
static inline int op_fallocate(int fd, off_t at, off_t n) {
    return op_fault_now(OP_FAULT_FALLOCATE) ? ENOSPC : posix_fallocate(fd, at, n);
}
static inline ssize_t op_write(int fd, const void *data, size_t n) {
    if (op_fault_now(OP_FAULT_WRITE)) {
        errno = ENOSPC;
        return -1;
    }
    return write(fd, data, n);
}
static inline int op_open_file(const char *path, int flags, mode_t mode) {
    if (op_fault_now(OP_FAULT_OPEN)) {
        errno = EMFILE;
        return -1;
    }
    return open(path, flags, mode);
}
static inline int op_thread_start(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *x) {
    return op_fault_now(OP_FAULT_THREAD) ? EAGAIN : pthread_create(t, a, f, x);
}
static inline int op_perf_event_open(void *attributes, unsigned long flags) {
    if (op_fault_now(OP_FAULT_COUNTER)) {
        errno = EMFILE;
        return -1;
    }
    return (int)syscall(SYS_perf_event_open, attributes, 0, -1, -1, flags);
}

#else

#define op_malloc(n) malloc(n)
#define op_calloc(n, size) calloc(n, size)
#define op_aligned_alloc(alignment, n) aligned_alloc(alignment, n)
#define op_realloc(p, n) realloc(p, n)
#define op_mmap(a, n, prot, flags, fd, at) mmap(a, n, prot, flags, fd, at)
#define op_fallocate(fd, at, n) posix_fallocate(fd, at, n)
#define op_write(fd, data, n) write(fd, data, n)
#define op_open_file(path, flags, mode) open(path, flags, mode)
#define op_thread_start(t, a, f, x) pthread_create(t, a, f, x)
/* Counts the calling thread, on any CPU. */
#define op_perf_event_open(attributes, flags)                                                          \
    (int)syscall(SYS_perf_event_open, attributes, 0, -1, -1, flags)

#endif
#endif
