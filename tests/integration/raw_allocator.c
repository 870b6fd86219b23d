/* Python's raw memory, taken past the imports of malloc: by the name that the C library has for itself. */
#include <stddef.h>

typedef struct allocator {
    void *context;
    void *(*malloc)(void *, size_t);
    void *(*calloc)(void *, size_t, size_t);
    void *(*realloc)(void *, void *, size_t);
    void (*free)(void *, void *);
} allocator; /* PyMemAllocatorEx */

void PyMem_SetAllocator(int domain, allocator *with);
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t bytes);
void __libc_free(void *block);

/* As Python's own, never NULL for 0 bytes. */
static void *take(void *context, size_t bytes) {
    (void)context;
    return __libc_malloc(bytes ? bytes : 1);
}

static void *take_zeros(void *context, size_t count, size_t size) {
    (void)context;
    return count && size ? __libc_calloc(count, size) : __libc_calloc(1, 1);
}

static void *resize(void *context, void *old, size_t bytes) {
    (void)context;
    return __libc_realloc(old, bytes ? bytes : 1);
}

static void give(void *context, void *block) {
    (void)context;
    __libc_free(block);
}

void use(void) {
    allocator with = {NULL, take, take_zeros, resize, give};
    PyMem_SetAllocator(0, &with);
}
