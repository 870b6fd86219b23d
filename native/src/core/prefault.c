#include "core/prefault.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14; older kernels reject it */
#endif

#define WORTH_ASKING (256u << 10) /* below this the system call does not pay */

void op_prefault_expect(void *block, size_t bytes) {
    uintptr_t page = (uintptr_t)getpagesize(), at = (uintptr_t)block;
    uintptr_t from = (at + page - 1) & ~(page - 1), to = (at + bytes) & ~(page - 1);
    if (bytes >= WORTH_ASKING && to > from)
        madvise((void *)from, to - from, MADV_POPULATE_WRITE);
}

void op_prefault_forget(void *mapping, size_t bytes) {
    if (mapping)
        madvise(mapping, bytes, MADV_DONTNEED);
}
