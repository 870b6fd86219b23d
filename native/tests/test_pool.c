#include "core/pool.h"

#include "fixture.h"

#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>

static op_pool pool;

static void sizes_it_cannot_cut_are_refused(void) {
    const uint64_t sizes[] = {0, 4096, OP_CHUNK_MAX + 1, OP_CHUNK_MAX * 3 / 2, 32ull << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        CHECK_FAILS(op_pool_open(&pool, NULL, sizes[i]), OP_ESTATE, "multiple of 256 KiB");
}

static void missing_folder_is_named(void) {
    CHECK_FAILS(op_pool_open(&pool, "/nowhere/at all", OP_CHUNK_MAX), OP_EIO, "/nowhere/at all");
    CHECK(strstr(op_last_error(), "No such file") != NULL);
}

static void folder_with_too_long_a_path_is_refused(void) {
    folder f = make_folder();
    static char path[2000];
    for (size_t depth = 900; depth < 1030; depth++) {
        int n = snprintf(path, sizeof path, "%s", f.path);
        while ((size_t)n < depth)
            n += snprintf(path + n, sizeof path - (size_t)n, "/.");
        if (op_pool_open(&pool, path, OP_CHUNK_MAX) == OP_OK) {
            char expected[2100];
            snprintf(expected, sizeof expected, "%s.names", pool.path);
            CHECK_TEXT(pool.names_path, expected);
            op_pool_close(&pool);
        } else {
            CHECK(strstr(op_last_error(), "too long") != NULL);
        }
    }
    remove_folder(&f);
}

static void file_is_private_locked_and_whole(void) {
    folder f = make_folder();
    CHECK_OK(op_pool_open(&pool, f.path, OP_CHUNK_MAX));
    struct stat info;
    CHECK_EQ(stat(pool.path, &info), 0);
    CHECK_EQ(info.st_mode & 0777, 0600);
    CHECK_EQ(info.st_size, OP_HEADER_BYTES + OP_CHUNK_MAX);
    CHECK(info.st_blocks * 512 >= info.st_size); /* no page of it can raise SIGBUS later */
    CHECK_EQ(stat(pool.names_path, &info), 0);
    CHECK_EQ(info.st_mode & 0777, 0600);
    int other = open(pool.path, O_RDONLY | O_CLOEXEC);
    CHECK_EQ(flock(other, LOCK_SH | LOCK_NB), -1);
    close(other);
    CHECK(memcmp(pool.header->magic, OP_FILE_MAGIC, 8) == 0);
    CHECK_EQ(pool.header->window, 0);
    CHECK_EQ(pool.header->segments, 1);
    op_pool_close(&pool);
    remove_folder(&f);
}

/* Chunks of mixed sizes until the segment is full: none overlap, each is aligned to its size. */
static void check_chunks_tile_the_pool(void) {
    static const uint32_t sizes[] = {OP_CHUNK_MIN, 64u << 10, 2 * OP_CHUNK_MIN, OP_CHUNK_MAX,
                                     128u << 10};
    op_chunk *taken[256];
    uint32_t n = 0;
    for (int failures = 0, i = 0; failures < 5; i++) {
        op_chunk *c = op_pool_take(&pool, sizes[i % 5]);
        failures = c ? 0 : failures + 1;
        if (c) {
            CHECK_EQ(((uint8_t *)c - pool.segment[0].base) % c->bytes, 0);
            memset((char *)c + sizeof *c, (int)n, c->bytes - sizeof *c);
            taken[n++] = c;
        }
    }
    CHECK_EQ(pool.used_units, pool.segment_units);
    for (uint32_t i = 0; i < n; i++) {
        CHECK_EQ(((uint8_t *)taken[i])[sizeof(op_chunk)], (uint8_t)i);
        CHECK_EQ(((uint8_t *)taken[i])[taken[i]->bytes - 1], (uint8_t)i);
        op_pool_give(&pool, taken[i]);
        CHECK_EQ(taken[i]->magic, 0);
    }
    CHECK_EQ(pool.used_units, 0);
}

static void chunks_tile_the_pool(void) {
    CHECK_OK(op_pool_open(&pool, NULL, 4 * OP_CHUNK_MAX));
    for (int round = 0; round < 3; round++)
        check_chunks_tile_the_pool();
    op_pool_close(&pool);
}

static void it_grows_to_four_segments(void) {
    folder f = make_folder();
    CHECK_OK(op_pool_open(&pool, f.path, OP_CHUNK_MAX));
    for (uint32_t i = 1; i <= OP_SEGMENTS; i++) {
        CHECK(op_pool_take(&pool, OP_CHUNK_MAX) != NULL);
        CHECK(op_pool_take(&pool, OP_CHUNK_MIN) == NULL);
        CHECK_EQ(pool.header->segments, i);
        CHECK_EQ(op_pool_grow(&pool), i < OP_SEGMENTS);
    }
    struct stat info;
    CHECK_EQ(stat(pool.path, &info), 0);
    CHECK_EQ(info.st_size, OP_HEADER_BYTES + OP_SEGMENTS * OP_CHUNK_MAX);
    op_pool_close(&pool);
    remove_folder(&f);
}

/* On a full disk the kernel refuses the blocks, and no file is left behind. */
static void no_room_for_the_file_is_an_error(void) {
    folder f = make_folder();
    struct rlimit all, few = {.rlim_cur = OP_CHUNK_MAX, .rlim_max = RLIM_INFINITY};
    getrlimit(RLIMIT_FSIZE, &all);
    few.rlim_max = all.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &few), 0);
    CHECK_FAILS(op_pool_open(&pool, f.path, OP_CHUNK_MAX), OP_ENOMEM, "no room for a pool");
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &all), 0);
    remove_folder(&f);
}

static void anonymous_memory_has_no_file(void) {
    CHECK_OK(op_pool_open(&pool, NULL, OP_CHUNK_MAX));
    CHECK_EQ(pool.file.fd, -1);
    CHECK_TEXT(pool.path, "");
    CHECK(op_pool_take(&pool, OP_CHUNK_MIN) != NULL);
    op_pool_close(&pool);
}

int main(void) {
    RUN(sizes_it_cannot_cut_are_refused);
    RUN(missing_folder_is_named);
    RUN(folder_with_too_long_a_path_is_refused);
    RUN(file_is_private_locked_and_whole);
    RUN(chunks_tile_the_pool);
    RUN(it_grows_to_four_segments);
    RUN(no_room_for_the_file_is_an_error);
    RUN(anonymous_memory_has_no_file);
    return 0;
}
