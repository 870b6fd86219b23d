/* What functions are called: by the symbol table of the file that they are in. */
#ifndef OP_SYMBOLS_H
#define OP_SYMBOLS_H

#include "core/loaded.h"

typedef struct op_symbol {
    uint64_t address; /* as the file has it */
    uint32_t frame;   /* the caller's own */
    uint32_t name;    /* out: id, in C++'s own words; 0: no function of the file is known to be there */
} op_symbol;

/* Fills in the names; they are sorted by address. What cannot be read, or is not the file that was
 * mapped any more (its build id differs), has none. */
void op_symbols_find(uint32_t path, const op_module *module, op_symbol *symbols, uint32_t count);

#endif
