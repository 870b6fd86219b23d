/* The files mapped into this process: which one contains a code address. */
#ifndef OP_LOADED_H
#define OP_LOADED_H

#include "core/event.h"

#include <stdbool.h>

#define OP_BUILD_ID_BYTES 20

/* Layout of an OP_ARGS_MODULE block. */
typedef struct op_module {
    uint64_t start, end; /* addresses of its mapping */
    uint64_t bias;       /* an address here minus the symbol's address in the file */
    uint32_t id_bytes;   /* 0: it has no build id */
    uint8_t id[OP_BUILD_ID_BYTES];
} op_module;
#define OP_ARGS_MODULE_WORDS 12u
OP_STATIC_ASSERT(sizeof(op_module) == OP_ARGS_MODULE_WORDS * sizeof(uint32_t),
                 "the block's words as they are");

#define OP_LOADED_PATH 4096

/* The module that contains an address; false: none, as for code generated at run time. `path`, of
 * OP_LOADED_PATH bytes, may be NULL. Takes the loader's short lock. */
bool op_loaded_around(uint64_t address, op_module *out, char *path);

/* Finds the build id in `bytes` of ELF notes, cut if it is too long. */
void op_build_id_of(const void *notes, uint64_t bytes, uint64_t alignment, op_module *out);

#endif
