#include "result/collectives.h"

#include "core/error.h"
#include "core/event.h"
#include "core/fault.h"
#include "core/names.h"
#include "result/result.h"

#include <ctype.h>
#include <string.h>

/* Names such as `ncclKernel_AllReduce_RING_LL_Sum_float(...)`, `ncclDevKernel_AllGather_...` and RCCL's
 * `mscclKernel_Sum_float_...`: the first word begins with the library's name (MSCCL, MSCCL++) and
 * contains "kernel". */
int op_name_is_collective(const char *name, size_t length) {
    static const char *const libraries[] = {"nccl", "msccl"};
    size_t at = 0;
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries && !at; i++)
        if (length >= strlen(libraries[i]) && !memcmp(name, libraries[i], strlen(libraries[i])))
            at = strlen(libraries[i]);
    size_t end = at;
    while (at && end < length && (isalnum((unsigned char)name[end]) || name[end] == '_'))
        end++;
    return memmem(name + at, end - at, "Kernel", 6) || memmem(name + at, end - at, "kernel", 6);
}

bool op_is_collective_row(const op_columns *c, uint64_t row) {
    uint32_t length;
    const char *name = c->kind[row] == OP_KERNEL ? op_names_text(c->name[row], &length) : NULL;
    return name && op_name_is_collective(name, length);
}

int op_result_collectives(op_result *r, const uint32_t **rows, uint64_t *count) {
    const op_columns *c = &r->columns;
    uint64_t n = 0;
    for (uint64_t row = 0; row < c->count; row++)
        n += c->kind[row] == OP_KERNEL;
    uint32_t *found = op_realloc(r->collectives, (n + 1) * sizeof *found);
    if (!found)
        return op_error_set(OP_ENOMEM, "no memory to list the collectives");
    r->collectives = found;
    *rows = found;
    *count = 0;
    for (uint64_t row = 0; row < c->count; row++)
        if (c->duration_ns[row] >= 0 && op_is_collective_row(c, row))
            found[(*count)++] = (uint32_t)row;
    return OP_OK;
}
