/* For processes whose instructions QEMU counts: marks where counting begins and ends, and names the
 * functions that contain addresses. */
#include "opprof.h"

#include "core/error.h"
#include "core/fault.h"
#include "core/names.h"
#include "opprof_replay.h"
#include "sources/symbols.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Names the leading addresses that lie in one file; returns how many. */
static uint32_t name_file(const uint64_t *addresses, uint32_t count, op_symbol *symbols,
                          uint32_t *files, uint32_t *functions) {
    op_module module;
    char path[OP_LOADED_PATH];
    files[0] = functions[0] = 0;
    if (!op_loaded_around(addresses[0], &module, path))
        return 1;
    uint32_t file = op_names_intern(path, strlen(path)), here = 0;
    for (; here < count && addresses[here] < module.end; here++)
        symbols[here] = (op_symbol){.address = addresses[here] - module.bias};
    op_symbols_find(file, &module, symbols, here);
    for (uint32_t i = 0; i < here; i++) {
        files[i] = file;
        functions[i] = symbols[i].name;
    }
    return here;
}

int op_code_names(const uint64_t *addresses, uint32_t count, uint32_t *files, uint32_t *functions) {
    op_symbol *symbols = op_malloc((size_t)count * sizeof *symbols + 1);
    if (!symbols)
        return op_error_set(OP_ENOMEM, "no memory for the names of %u addresses", count);
    for (uint32_t at = 0; at < count;)
        at += name_file(addresses + at, count - at, symbols, files + at, functions + at);
    free(symbols);
    return OP_OK;
}

/* The call has no effect and ignores its arguments. */
static void mark(uint64_t which) { (void)syscall(SYS_getppid, OP_REPLAY_MAGIC, which); }

void op_replay_begin(void) { mark(OP_REPLAY_BEGIN); }

void op_replay_end(void) { mark(OP_REPLAY_END); }
