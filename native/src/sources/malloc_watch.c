/* Hooks the malloc family as loaded libraries call it, by pointing each library's table of imported
 * functions here. Allocations of the C library itself, and of libraries loaded later, are not seen. */
#include "sources/malloc_watch.h"

#include "core/error.h"
#include "core/fault.h"
#include "core/names.h"
#include "core/record.h"

#include <elf.h>
#include <link.h>
#include <malloc.h>
#include <stdbool.h>
#include <string.h>

static bool active;
static uint32_t memory_name, out_of_memory_name;

__thread bool op_memory_paused;

static bool is_watching(void) {
    return __atomic_load_n(&active, __ATOMIC_RELAXED) && !op_memory_paused && op_recording();
}

static void changed(uint32_t name, uintptr_t address, int64_t bytes) {
    const op_memory_change change = {.address = address,
                                     .bytes = bytes,
                                     .total_allocated = -1,
                                     .total_reserved = -1,
                                     .device_index = -1};
    int saved = errno;
    op_memory_changed(name, &change);
    errno = saved;
}

/* This thread called a hook while nothing was recorded. */
static __thread bool came_by
#if defined(__GLIBC__)
    __attribute__((tls_model("initial-exec")))
#endif
    ;

static void *taken(void *block, size_t bytes) {
    if (is_watching())
        changed(block ? memory_name : out_of_memory_name, (uintptr_t)block, (int64_t)bytes);
    else
        came_by = true;
    return block;
}

/* Recorded before the block is freed: afterwards another thread may get the same address. */
static void give_back(const void *block) {
    if (block && is_watching())
        changed(memory_name, (uintptr_t)block, OP_BYTES_UNKNOWN);
}

static void *hook_malloc(size_t n) { return taken(malloc(n), n); }
static void *hook_calloc(size_t n, size_t size) { return taken(calloc(n, size), n * size); }
static void *hook_aligned_alloc(size_t to, size_t n) { return taken(aligned_alloc(to, n), n); }
static void *hook_memalign(size_t to, size_t n) { return taken(memalign(to, n), n); }

static void *hook_realloc(void *old, size_t n) {
    give_back(old);
    void *block = realloc(old, n);
    return block || n ? taken(block, n) : block;
}

static void *hook_reallocarray(void *old, size_t n, size_t size) {
    give_back(old);
    void *block = reallocarray(old, n, size);
    return block || (n && size) ? taken(block, n * size) : block;
}

static int hook_posix_memalign(void **out, size_t to, size_t n) {
    int rc = posix_memalign(out, to, n);
    taken(rc ? NULL : *out, n);
    return rc;
}

static void hook_free(void *block) {
    give_back(block);
    free(block);
}

typedef void (*function)(void);

/* In a program at a fixed address, as some distributions link Python, a function's address may be that
 * of a stub in the program, which jumps to the target in the program's import table. Call tables never
 * contain that address; they contain what our own does. */
static struct {
    const char *name;
    function hook, address, called;
} family[] = {{"malloc", (function)hook_malloc, (function)malloc, NULL},
              {"calloc", (function)hook_calloc, (function)calloc, NULL},
              {"realloc", (function)hook_realloc, (function)realloc, NULL},
              {"reallocarray", (function)hook_reallocarray, (function)reallocarray, NULL},
              {"aligned_alloc", (function)hook_aligned_alloc, (function)aligned_alloc, NULL},
              {"memalign", (function)hook_memalign, (function)memalign, NULL},
              {"posix_memalign", (function)hook_posix_memalign, (function)posix_memalign, NULL},
              {"free", (function)hook_free, (function)free, NULL}};

enum { FAMILY = sizeof family / sizeof *family };

/* ---- one library's import table ----------------------------------------------------------------- */

typedef struct library library;

/* Handles an entry for family[i]; `is_call`: it is only used for calls. */
typedef void visitor(library *l, function *entry, size_t i, bool is_call);

struct library {
    uintptr_t base, from, to;         /* its address range */
    uintptr_t sealed_from, sealed_to; /* read-only once it is loaded */
    const ElfW(Sym) * symbols;
    const char *strings;
    visitor *visit;
    uint32_t failures; /* entries that could not be written */
};

enum { NO_IMPORT, CALL, ADDRESS };

static int kind_of(ElfW(Xword) info) {
#if defined(__x86_64__)
    enum { OF_CALL = R_X86_64_JUMP_SLOT, OF_ADDRESS = R_X86_64_GLOB_DAT };
#elif defined(__aarch64__)
    enum { OF_CALL = R_AARCH64_JUMP_SLOT, OF_ADDRESS = R_AARCH64_GLOB_DAT };
#else
    enum { OF_CALL = -1, OF_ADDRESS = -2 };
#endif
    int type = (int)ELF64_R_TYPE(info);
    return type == OF_CALL ? CALL : type == OF_ADDRESS ? ADDRESS : NO_IMPORT;
}

static void write_entry(library *l, function *entry, function value) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)entry & ~(page - 1);
    bool sealed = at >= (l->sealed_from & ~(page - 1)) && at < (l->sealed_to & ~(page - 1));
    if (sealed && mprotect((void *)at, page, PROT_READ | PROT_WRITE) != 0) {
        l->failures++;
        return;
    }
    __atomic_store_n(entry, value, __ATOMIC_RELEASE);
    if (sealed)
        mprotect((void *)at, page, PROT_READ);
}

static function read_entry(const function *entry) { return __atomic_load_n(entry, __ATOMIC_RELAXED); }

static void learn(library *l, function *entry, size_t i, bool is_call) {
    (void)l;
    if (is_call)
        family[i].called = read_entry(entry);
}

/* An entry that was not needed yet points into the library itself, at the code that resolves it. */
static void watch(library *l, function *entry, size_t i, bool is_call) {
    (void)is_call;
    function now = read_entry(entry);
    bool is_unbound = (uintptr_t)now >= l->from && (uintptr_t)now < l->to;
    if (family[i].called && (is_unbound || now == family[i].called || now == family[i].address))
        write_entry(l, entry, family[i].hook);
}

static void unwatch(library *l, function *entry, size_t i, bool is_call) {
    if (read_entry(entry) == family[i].hook)
        write_entry(l, entry, is_call ? family[i].called : family[i].address);
}

static void visit_entry(library *l, const ElfW(Rela) * rela) {
    const ElfW(Sym) *symbol = &l->symbols[ELF64_R_SYM(rela->r_info)];
    int kind = kind_of(rela->r_info);
    if (kind == NO_IMPORT || symbol->st_shndx != SHN_UNDEF)
        return;
    for (size_t i = 0; i < FAMILY; i++)
        if (strcmp(l->strings + symbol->st_name, family[i].name) == 0)
            l->visit(l, (function *)(l->base + rela->r_offset), i, kind == CALL);
}

static void visit_entries(library *l, uintptr_t table, size_t bytes) {
    const ElfW(Rela) *rela = (const ElfW(Rela) *)table;
    for (size_t i = 0; table && i < bytes / sizeof *rela; i++)
        visit_entry(l, &rela[i]);
}

static void read_dynamic(library *l, const ElfW(Dyn) * dynamic) {
    uintptr_t plt = 0, rela = 0;
    size_t plt_bytes = 0, rela_bytes = 0;
    for (; dynamic->d_tag != DT_NULL; dynamic++) {
        uintptr_t value = dynamic->d_un.d_ptr;
        uintptr_t address = value < l->base ? l->base + value : value; /* musl leaves them relative */
        switch (dynamic->d_tag) {
        case DT_SYMTAB:
            l->symbols = (const ElfW(Sym) *)address;
            break;
        case DT_STRTAB:
            l->strings = (const char *)address;
            break;
        case DT_JMPREL:
            plt = address;
            break;
        case DT_PLTRELSZ:
            plt_bytes = value;
            break;
        case DT_RELA:
            rela = address;
            break;
        case DT_RELASZ:
            rela_bytes = value;
            break;
        default:
            break;
        }
    }
    if (!l->symbols || !l->strings)
        return;
    visit_entries(l, plt, plt_bytes);
    visit_entries(l, rela, rela_bytes);
}

/* Skips the loader and the kernel's page. The C library defines the family, so it does not import
 * it. */
static bool is_watched(const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    return strncmp(name, "ld-", 3) != 0 && strncmp(name, "linux-vdso", 10) != 0;
}

typedef struct pass {
    visitor *visit;
    uint32_t failures;
} pass;

static int visit(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    pass *p = data;
    library l = {.base = info->dlpi_addr, .from = UINTPTR_MAX, .visit = p->visit};
    const ElfW(Dyn) *dynamic = NULL;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t from = l.base + part->p_vaddr, to = from + part->p_memsz;
        if (part->p_type == PT_LOAD) {
            l.from = from < l.from ? from : l.from;
            l.to = to > l.to ? to : l.to;
        } else if (part->p_type == PT_DYNAMIC) {
            dynamic = (const ElfW(Dyn) *)from;
        } else if (part->p_type == PT_GNU_RELRO) {
            l.sealed_from = from;
            l.sealed_to = to;
        }
    }
    bool is_ours = (uintptr_t)&active >= l.from && (uintptr_t)&active < l.to;
    if (dynamic && is_ours == (p->visit == learn) && is_watched(info->dlpi_name))
        read_dynamic(&l, dynamic);
    p->failures += l.failures;
    return 0;
}

/* Returns how many entries could not be written. */
static uint32_t visit_all(visitor *what) {
    pass p = {what, 0};
    dl_iterate_phdr(visit, &p);
    return p.failures;
}

int op_malloc_watch(void *(*take)(size_t), void (*give)(void *)) {
    static const char memory[] = "[memory]", out_of_memory[] = "[OutOfMemory]";
    memory_name = op_names_intern(memory, sizeof memory - 1);
    out_of_memory_name = op_names_intern(out_of_memory, sizeof out_of_memory - 1);
    visit_all(learn);
    uint32_t failures = visit_all(watch);
    came_by = false;
    give(take(1));
    if (!came_by || failures) {
        op_malloc_unwatch();
        return op_error_set(OP_EUNSEEN, "malloc cannot be watched in this process: %s",
                            failures ? "a library's table of imports cannot be written"
                                     : "the program does not call it through a table of imports");
    }
    __atomic_store_n(&active, true, __ATOMIC_RELEASE);
    return OP_OK;
}

void op_malloc_unwatch(void) {
    __atomic_store_n(&active, false, __ATOMIC_RELEASE);
    visit_all(unwatch);
}
