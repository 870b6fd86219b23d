#include "core/loaded.h"

#include <elf.h>
#include <limits.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

typedef struct search {
    uint64_t address;
    op_module *out;
    char *path;
    bool found;
} search;

void op_build_id_of(const void *notes, uint64_t bytes, uint64_t alignment, op_module *out) {
    const uint8_t *at = notes;
    uint64_t mask = alignment == 8 ? 7 : 3;
    while (bytes >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        memcpy(&note, at, sizeof note);
        uint64_t name = sizeof note, content = name + (((uint64_t)note.n_namesz + mask) & ~mask);
        uint64_t next = content + (((uint64_t)note.n_descsz + mask) & ~mask);
        if (content + note.n_descsz > bytes)
            return;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(at + name, "GNU", 4) == 0) {
            out->id_bytes = note.n_descsz < OP_BUILD_ID_BYTES ? note.n_descsz : OP_BUILD_ID_BYTES;
            memcpy(out->id, at + content, out->id_bytes);
            return;
        }
        if (next >= bytes)
            return;
        at += next;
        bytes -= next;
    }
}

static bool measure(const struct dl_phdr_info *info, uint64_t address, op_module *out) {
    bool inside = false;
    *out = (op_module){.start = UINT64_MAX, .bias = info->dlpi_addr};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uint64_t start = info->dlpi_addr + part->p_vaddr, end = start + part->p_memsz;
        if (part->p_type == PT_NOTE && out->id_bytes == 0)
            op_build_id_of((const void *)start, part->p_memsz, part->p_align, out);
        if (part->p_type != PT_LOAD)
            continue;
        inside = inside || (address >= start && address < end);
        out->start = start < out->start ? start : out->start;
        out->end = end > out->end ? end : out->end;
    }
    return inside;
}

static int look(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    search *s = data;
    if (!measure(info, s->address, s->out))
        return 0;
    s->found = true;
    if (s->path) {
        strncpy(s->path, info->dlpi_name ? info->dlpi_name : "", OP_LOADED_PATH - 1);
        s->path[OP_LOADED_PATH - 1] = 0;
    }
    return 1;
}

bool op_loaded_around(uint64_t address, op_module *out, char *path) {
    search s = {.address = address, .out = out, .path = path};
    dl_iterate_phdr(look, &s);
    if (s.found && path && path[0] == 0) { /* the loader has no name for the program itself */
        ssize_t length = readlink("/proc/self/exe", path, OP_LOADED_PATH - 1);
        path[length > 0 ? length : 0] = 0;
    }
    return s.found;
}
