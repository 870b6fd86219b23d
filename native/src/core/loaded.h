/* The files that are mapped into this process: what an address of code lies in. */
#ifndef OP_LOADED_H
#define OP_LOADED_H

#include "core/event.h"

#include <stdbool.h>

#define OP_BUILD_ID_BYTES 20

/* As it stands in a block of OP_ARGS_MODULE. */
typedef struct op_module {
    uint64_t start, end; /* addresses of its mapping */
    uint64_t bias;       /* an address here less the one that the file's symbols have */
    uint32_t id_bytes;   /* 0: the linker gave it no build id */
    uint8_t id[OP_BUILD_ID_BYTES];
} op_module;
#define OP_ARGS_MODULE_WORDS 12u
OP_STATIC_ASSERT(sizeof(op_module) == OP_ARGS_MODULE_WORDS * sizeof(uint32_t),
                 "the block's words as they are");

#define OP_LOADED_PATH 4096

/* The module around an address; false: there is none, as of code that was made at run time. `path`, of
 * OP_LOADED_PATH bytes, may be NULL. It asks the loader, which has a short lock for its list. */
bool op_loaded_around(uint64_t address, op_module *out, char *path);

/* Among ELF notes of so many bytes: the build id, as far as it fits. */
void op_build_id_of(const void *notes, uint64_t bytes, uint64_t alignment, op_module *out);

#endif
