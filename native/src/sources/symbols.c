#include "sources/symbols.h"

#include "core/fault.h"
#include "core/names.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

typedef struct image {
    const uint8_t *base;
    uint64_t bytes;
} image;

/* ---- the file ----------------------------------------------------------------------------- */

/* Do not block: a path from a dead process's file may lead to a pipe. */
static image map_file(const char *path) {
    image m = {0};
    int fd = path[0] == '/' ? op_open_file(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0) : -1;
    struct stat info;
    if (fd < 0)
        return m;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) {
        void *p = op_mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p != MAP_FAILED)
            m = (image){p, (uint64_t)info.st_size};
    }
    close(fd);
    return m;
}

/* NULL: not inside the file. */
static const void *at(const image *m, uint64_t offset, uint64_t bytes) {
    return offset <= m->bytes && bytes <= m->bytes - offset ? m->base + offset : NULL;
}

static bool read_header(const image *m, ElfW(Ehdr) * out) {
    const void *header = at(m, 0, sizeof *out);
    if (!header)
        return false;
    memcpy(out, header, sizeof *out);
    return memcmp(out->e_ident, ELFMAG, SELFMAG) == 0 &&
           out->e_ident[EI_CLASS] == (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) &&
           out->e_shentsize == sizeof(ElfW(Shdr)) && out->e_phentsize == sizeof(ElfW(Phdr));
}

static bool is_the_same(const image *m, const ElfW(Ehdr) * header, const op_module *module) {
    op_module found = {0};
    for (uint32_t i = 0; i < header->e_phnum && !found.id_bytes; i++) {
        ElfW(Phdr) part;
        const void *place = at(m, header->e_phoff + i * sizeof part, sizeof part);
        if (!place)
            return false;
        memcpy(&part, place, sizeof part);
        const void *notes = part.p_type == PT_NOTE ? at(m, part.p_offset, part.p_filesz) : NULL;
        if (notes)
            op_build_id_of(notes, part.p_filesz, part.p_align, &found);
    }
    return found.id_bytes == module->id_bytes && memcmp(found.id, module->id, found.id_bytes) == 0;
}

/* ---- its symbols -------------------------------------------------------------------------- */

/* The first symbol that is not below the address. */
static uint32_t lower_bound(const op_symbol *symbols, uint32_t count, uint64_t address) {
    uint32_t from = 0, to = count;
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        if (symbols[middle].address < address)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static char *(*demangle)(const char *mangled, char *buffer, size_t *length, int *status);

static void find_demangler(void) {
    void *found = dlsym(RTLD_DEFAULT, "__cxa_demangle");
    void *library = found ? NULL : dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
    if (library)
        found = dlsym(library, "__cxa_demangle");
    memcpy(&demangle, &found, sizeof found);
}

uint32_t op_symbol_name(const char *mangled) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_demangler);
    int status = -1;
    char *plain =
        demangle && strncmp(mangled, "_Z", 2) == 0 ? demangle(mangled, NULL, NULL, &status) : NULL;
    const char *name = plain && status == 0 ? plain : mangled;
    uint32_t id = op_names_intern(name, strlen(name));
    free(plain);
    return id;
}

/* The symbols to name, and which ones of the file to search. */
typedef struct search {
    op_symbol *symbols; /* by address */
    uint32_t count;
    const image *file;
    const ElfW(Ehdr) * header;
    bool is_local;
} search;

static bool is_function(const ElfW(Sym) * symbol) {
    unsigned type = symbol->st_info & 0xf;
    return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol->st_shndx != SHN_UNDEF &&
           symbol->st_size > 0;
}

static void name_within(const search *s, const ElfW(Sym) * function, const char *text) {
    uint32_t name = 0;
    for (uint32_t i = lower_bound(s->symbols, s->count, function->st_value);
         i < s->count && s->symbols[i].address - function->st_value < function->st_size; i++) {
        if (s->symbols[i].name)
            continue;
        if (!name)
            name = op_symbol_name(text);
        s->symbols[i].name = name;
    }
}

static void search_table(const search *s, const ElfW(Shdr) * table, const ElfW(Shdr) * strings) {
    const uint8_t *entries = at(s->file, table->sh_offset, table->sh_size);
    const char *text = at(s->file, strings->sh_offset, strings->sh_size);
    if (!entries || !text || strings->sh_size == 0 || text[strings->sh_size - 1] != 0)
        return;
    for (uint64_t i = 0; i < table->sh_size / sizeof(ElfW(Sym)); i++) {
        ElfW(Sym) symbol;
        memcpy(&symbol, entries + i * sizeof symbol, sizeof symbol);
        if (is_function(&symbol) && (symbol.st_info >> 4 == STB_LOCAL) == s->is_local &&
            symbol.st_name < strings->sh_size)
            name_within(s, &symbol, text + symbol.st_name);
    }
}

static bool read_section(const search *s, uint32_t index, ElfW(Shdr) * out) {
    const void *place = index < s->header->e_shnum
                            ? at(s->file, s->header->e_shoff + index * sizeof *out, sizeof *out)
                            : NULL;
    if (place)
        memcpy(out, place, sizeof *out);
    return place != NULL;
}

static void search_tables(const search *s, uint32_t type) {
    for (uint32_t i = 0; i < s->header->e_shnum; i++) {
        ElfW(Shdr) table, strings;
        if (read_section(s, i, &table) && table.sh_type == type &&
            read_section(s, table.sh_link, &strings))
            search_table(s, &table, &strings);
    }
}

/* .dynsym has exported functions; .symtab has all of them unless stripped. Local symbols come last,
 * because compilers create local names for functions that have better ones. */
void op_symbols_find(uint32_t path, const op_module *module, op_symbol *symbols, uint32_t count) {
    uint32_t length;
    image m = map_file(op_names_text(path, &length));
    ElfW(Ehdr) header;
    if (m.base && read_header(&m, &header) && is_the_same(&m, &header, module)) {
        search s = {symbols, count, &m, &header, false};
        search_tables(&s, SHT_DYNSYM);
        search_tables(&s, SHT_SYMTAB);
        s.is_local = true;
        search_tables(&s, SHT_SYMTAB);
    }
    if (m.base)
        munmap((void *)m.base, m.bytes);
}
