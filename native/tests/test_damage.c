/* Damaged recordings: whatever is read from them, nothing crashes. */
#include "damaged.h"
#include "killed.h"

#include <sys/stat.h>

static folder here;

/* True: something was recovered. */
static bool survives(const remains *left, bool with_trace) {
    op_result *r;
    int rc = op_recover(left->pool, &r);
    if (rc != OP_OK) {
        CHECK(r == NULL && op_last_error()[0] != 0);
        return false;
    }
    use_damaged(r, with_trace);
    op_result_free(r);
    return true;
}

static off_t size_of(const char *path) {
    struct stat info;
    CHECK_EQ(stat(path, &info), 0);
    return info.st_size;
}

/* Each file is truncated to many lengths, and restored at the end. */
static void cut_files_do_no_harm(void) {
    remains left = killed_by(SIGKILL, &here);
    char copy[sizeof here.path + 8];
    snprintf(copy, sizeof copy, "%s/whole", here.path);
    const char *const files[] = {left.names, left.spill, left.pool};
    uint32_t recovered = 0;
    for (int i = 0; i < 3; i++) {
        off_t size = size_of(files[i]), step = size / COUNT(150) + 1;
        copy_file(files[i], copy);
        for (off_t cut = size; cut >= 0; cut -= cut > size - 40 ? 1 : step) {
            CHECK_EQ(truncate(files[i], cut), 0);
            recovered += survives(&left, false);
        }
        CHECK_EQ(unlink(files[i]), 0);
        CHECK_EQ(rename(copy, files[i]), 0);
    }
    CHECK(recovered > COUNT(150)); /* except for the pool, a truncated file only loses its end */
    CHECK(survives(&left, true));
    remove_remains(&left);
}

/* ---- random damage, always the same
 * ----------------------------------------------------------------- */

static uint64_t seed = 20240607;

static uint32_t random_below(uint32_t n) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((seed >> 33) % n);
}

typedef struct damage {
    const char *path;
    size_t at;
    uint32_t before;
} damage;

/* Mostly where a reader is easily misled: headers of the file and of chunks. */
static size_t place_to_damage(const remains *left, const char *path) {
    uint32_t words = (uint32_t)(size_of(path) / 4 - 1);
    if (path == left->pool && random_below(3) == 0)
        return 4 * (random_below(4) ? random_below(24) : random_below(OP_HEADER_BYTES / 4));
    if (path == left->pool && random_below(2) == 0)
        return OP_HEADER_BYTES + (size_t)random_below(OP_CHUNK_MAX / OP_UNIT_BYTES) * OP_UNIT_BYTES +
               4 * random_below(sizeof(op_chunk) / 4);
    if (path == left->spill && random_below(3) == 0)
        return 4 * random_below(sizeof(op_chunk) / 4);
    return 4 * (size_t)random_below(words);
}

static damage damage_something(const remains *left) {
    static const uint32_t extremes[] = {
        0, 1, 0x7fffffff, 0x80000000, 0xffffffff, OP_CHUNK_MAGIC, OP_CHUNK_MAX};
    const char *const files[] = {left->pool, left->pool, left->names, left->spill};
    damage d = {.path = files[random_below(4)]};
    d.at = place_to_damage(left, d.path);
    uint32_t word = extremes[random_below(7)];
    overwrite(d.path, d.at, &word, 4, &d.before);
    if (random_below(3)) { /* a flipped bit instead */
        word = d.before ^ 1u << random_below(32);
        overwrite(d.path, d.at, &word, 4, NULL);
    }
    return d;
}

static void random_damage_does_no_harm(void) {
    remains left = killed_by(SIGKILL, &here);
    damage done[6];
    uint32_t recovered = 0;
    for (uint32_t i = 0; i < COUNT(2000); i++) {
        uint32_t n = 1 + random_below(6);
        for (uint32_t j = 0; j < n; j++)
            done[j] = damage_something(&left);
        recovered += survives(&left, i % 8 == 0);
        while (n-- > 0)
            overwrite(done[n].path, done[n].at, &done[n].before, 4, NULL);
    }
    CHECK(recovered > COUNT(200));
    op_result *r;
    CHECK_OK(op_recover(left.pool, &r));
    check_whole(r, left.pid);
    op_result_free(r);
    remove_remains(&left);
}

int main(void) {
    here = make_folder();
    RUN(cut_files_do_no_harm);
    RUN(random_damage_does_no_harm);
    remove_folder(&here);
    return 0;
}
