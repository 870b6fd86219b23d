/* Names of functions, from the symbol table of their file. */
#ifndef OP_SYMBOLS_H
#define OP_SYMBOLS_H

#include "core/loaded.h"

typedef struct op_symbol {
    uint64_t address; /* the address within the file */
    uint32_t frame;   /* the caller's own */
    uint32_t name;    /* output: id of the demangled name; 0: no known function contains it */
} op_symbol;

/* Fills in the names. `symbols` is sorted by address. If the file cannot be read, or is no longer the
 * mapped one (another build id), they stay 0. */
void op_symbols_find(uint32_t path, const op_module *module, op_symbol *symbols, uint32_t count);

/* Id of a function's name. It stays mangled if neither the process nor the system has a C++ library. */
uint32_t op_symbol_name(const char *mangled);

#endif
