/* Fuzzes the reader of session files: whatever a dead process left, nothing crashes, and the result is
 * consistent. A session is three files, mostly holes: the pool, the names, the spill. An input is their
 * content piece by piece: which file, how many bytes, where; then the bytes. tests/fuzz/targets/left.py
 * reads the same format. */
#include "damaged.h"
#include "fuzz.h"

#include <sys/stat.h>

const bool fuzz_is_json = false;
uint64_t fuzz_accepted;

enum { FILES = 3, POOL_BYTES = OP_HEADER_BYTES + OP_CHUNK_MAX, OTHER_BYTES = 1 << 16 };

static struct left {
    char path[1024];
    int fd;
} left[FILES];

static void make_files(void) {
    static const char *const names[FILES] = {"pool", "names", "spill"};
    const char *within = getenv("TMPDIR");
    char parent[512];
    snprintf(parent, sizeof parent, "%s/opprof-fuzz-XXXXXX", within ? within : "/dev/shm");
    CHECK(mkdtemp(parent) != NULL);
    for (int i = 0; i < FILES; i++) {
        snprintf(left[i].path, sizeof left[i].path, "%s/%s", parent, names[i]);
        left[i].fd = open(left[i].path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        CHECK(left[i].fd >= 0);
    }
}

static void remove_files(void) {
    char *end = strrchr(left[0].path, '/');
    for (int i = 0; i < FILES; i++)
        unlink(left[i].path);
    *end = 0;
    rmdir(left[0].path);
}

static void write_at(int file, const void *bytes, size_t length, off_t at) {
    CHECK_EQ(pwrite(left[file].fd, bytes, length, at), length);
}

static void write_pieces(const uint8_t *data, size_t size) {
    enum { HEAD = 8 };
    for (size_t at = 0; at + HEAD <= size;) {
        uint32_t start;
        uint16_t length;
        int file = data[at] % FILES;
        memcpy(&length, data + at + 2, sizeof length);
        memcpy(&start, data + at + 4, sizeof start);
        at += HEAD;
        uint32_t most = file == 0 ? POOL_BYTES : OTHER_BYTES;
        start %= most;
        size_t room = most - start, there = size - at, count = length;
        count = count < room ? count : room;
        count = count < there ? count : there;
        write_at(file, data + at, count, (off_t)start);
        at += length < there ? length : there;
    }
}

static void write_files(const uint8_t *data, size_t size) {
    for (int i = 0; i < FILES; i++)
        CHECK(ftruncate(left[i].fd, 0) == 0);
    CHECK(ftruncate(left[0].fd, POOL_BYTES) == 0);
    write_pieces(data, size);
    write_at(0, left[1].path, sizeof left[1].path, offsetof(op_file_header, names_path));
    write_at(0, left[2].path, sizeof left[2].path, offsetof(op_file_header, spill_path));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!left[0].path[0]) {
        make_files();
        atexit(remove_files);
    }
    write_files(data, size);
    op_left look;
    op_result *r;
    if (op_recover_look(left[0].path, &look) == OP_OK)
        CHECK(look.note_bytes <= OP_NOTE_BYTES && !look.is_alive);
    if (op_recover(left[0].path, &r) != OP_OK) {
        CHECK(r == NULL && op_last_error()[0] != 0);
        return 0;
    }
    fuzz_accepted++;
    use_damaged(r, true);
    op_result_free(r);
    return 0;
}
