/* Lock: `names.lock` guards every write; readers see a table or entry only after its release
 * store. Taken alone or inside the collector's lock, never around it. */
#include "names.h"

#include "fault.h"
#include "held.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BLOCK_ENTRIES 4096u
#define BLOCKS (OP_NAME_MAX_COUNT / BLOCK_ENTRIES)
#define ARENA_BYTES (64u << 10)

typedef struct entry {
    const char *text;
    uint32_t length, hash;
    uint32_t given; /* the group that it was interned in; 0: none */
    uint32_t group; /* 0 until asked for */
} entry;

typedef struct table {
    struct table *older; /* kept: a reader without the lock may still be in it */
    uint32_t mask;
    uint32_t ids[]; /* 0: empty */
} table;

static struct {
    pthread_mutex_t lock;
    table *table;
    entry *blocks[BLOCKS];
    uint32_t count;
    char *arena;
    size_t arena_left;
    op_held log;
    bool log_broken;
} names = {.lock = PTHREAD_MUTEX_INITIALIZER, .log = {.fd = -1}};

static const char overflow_text[] = "(overflow)";

static uint64_t mixed(const char *text, size_t length) {
    uint64_t h = 0xcbf29ce484222325u ^ length; /* FNV-1a over words, then folded */
    while (length >= 8) {
        uint64_t word;
        memcpy(&word, text, 8);
        h = (h ^ word) * 0x9e3779b97f4a7c15u;
        h ^= h >> 32;
        text += 8;
        length -= 8;
    }
    for (size_t i = 0; i < length; i++)
        h = (h ^ (uint8_t)text[i]) * 0x100000001b3u;
    return h;
}

static uint32_t hash_of(const char *text, size_t length) {
    uint64_t h = mixed(text, length);
    return (uint32_t)(h ^ (h >> 29));
}

static entry *entry_of(uint32_t id) {
    entry *block = __atomic_load_n(&names.blocks[id / BLOCK_ENTRIES], __ATOMIC_ACQUIRE);
    return &block[id % BLOCK_ENTRIES];
}

static uint32_t find(const table *t, const entry *wanted) {
    for (uint32_t i = wanted->hash & t->mask;; i = (i + 1) & t->mask) {
        uint32_t id = __atomic_load_n(&t->ids[i], __ATOMIC_ACQUIRE);
        if (id == 0)
            return 0;
        const entry *e = entry_of(id);
        if (e->hash == wanted->hash && e->length == wanted->length && e->given == wanted->given &&
            memcmp(e->text, wanted->text, wanted->length) == 0)
            return id;
    }
}

static void place(table *t, uint32_t id, uint32_t hash) {
    uint32_t i = hash & t->mask;
    while (t->ids[i] != 0)
        i = (i + 1) & t->mask;
    __atomic_store_n(&t->ids[i], id, __ATOMIC_RELEASE);
}

/* The old tables stay allocated; all together they are smaller than the new one. */
static bool grow(void) {
    uint32_t slots = names.table ? (names.table->mask + 1) * 2 : 4096;
    table *bigger = op_calloc(1, sizeof(table) + (size_t)slots * sizeof(uint32_t));
    if (!bigger)
        return false;
    bigger->older = names.table;
    bigger->mask = slots - 1;
    for (uint32_t id = 1; id <= names.count; id++)
        place(bigger, id, entry_of(id)->hash);
    __atomic_store_n(&names.table, bigger, __ATOMIC_RELEASE);
    return true;
}

static char *arena_take(size_t bytes) {
    if (bytes > names.arena_left) {
        char *fresh = op_malloc(ARENA_BYTES);
        if (!fresh)
            return NULL;
        names.arena = fresh;
        names.arena_left = ARENA_BYTES;
    }
    char *taken = names.arena;
    names.arena += bytes;
    names.arena_left -= bytes;
    return taken;
}

static void log_name(uint32_t id, const entry *e) {
    if (names.log.fd < 0 || names.log_broken)
        return;
    if (!op_holds(&names.log)) {
        names.log_broken = true;
        return;
    }
    char record[OP_NAME_RECORD_BYTES + OP_NAME_MAX_BYTES];
    memcpy(record, &id, 4);
    memcpy(record + 4, &e->length, 4);
    memcpy(record + 8, &e->given, 4);
    memcpy(record + OP_NAME_RECORD_BYTES, e->text, e->length);
    size_t bytes = OP_NAME_RECORD_BYTES + (size_t)e->length;
    if (op_write(names.log.fd, record, bytes) != (ssize_t)bytes)
        names.log_broken = true; /* ids after a torn record would be read wrongly */
}

/* With the lock held. */
static uint32_t add(const entry *wanted) {
    if (names.count + 1 >= OP_NAME_MAX_COUNT)
        return 0;
    if ((!names.table || (names.count + 1) * 4 > (names.table->mask + 1) * 3) && !grow())
        return 0;
    uint32_t id = names.count + 1;
    entry **block = &names.blocks[id / BLOCK_ENTRIES];
    if (!*block) {
        entry *fresh = op_calloc(BLOCK_ENTRIES, sizeof(entry));
        if (!fresh)
            return 0;
        __atomic_store_n(block, fresh, __ATOMIC_RELEASE);
    }
    char *copy = arena_take((size_t)wanted->length + 1);
    if (!copy)
        return 0;
    memcpy(copy, wanted->text, wanted->length);
    copy[wanted->length] = 0;
    entry *e = entry_of(id);
    *e = *wanted;
    e->text = copy;
    __atomic_store_n(&names.count, id, __ATOMIC_RELEASE);
    log_name(id, e);
    place(names.table, id, wanted->hash);
    return id;
}

/* With the lock held: the overflow name must exist before it is needed. */
static bool ready(void) {
    if (names.count)
        return true;
    uint32_t length = sizeof overflow_text - 1;
    const entry overflow = {
        .text = overflow_text, .length = length, .hash = hash_of(overflow_text, length)};
    return add(&overflow) == OP_NAME_OVERFLOW;
}

/* The beginning of a name that is too long, cut at a character, and a digest of all of it: names that
 * begin alike stay apart. */
static size_t shortened(char out[OP_NAME_MAX_BYTES + 1], const char *text, size_t length) {
    const size_t digest = 17;
    size_t kept = OP_NAME_MAX_BYTES - digest;
    while (kept > 0 && ((uint8_t)text[kept] & 0xc0) == 0x80)
        kept--;
    memcpy(out, text, kept);
    snprintf(out + kept, digest + 1, "~%016" PRIx64, mixed(text, length));
    return kept + digest;
}

/* Out of line: its array would be every name's stack frame. */
__attribute__((noinline)) static uint32_t intern_long(const char *utf8, size_t bytes, uint32_t group) {
    char text[OP_NAME_MAX_BYTES + 1];
    return op_names_intern_in(text, shortened(text, utf8, bytes), group);
}

uint32_t op_names_intern_in(const char *utf8, size_t bytes, uint32_t group) {
    if (group == OP_NAME_OVERFLOW)
        return OP_NAME_OVERFLOW;
    if (bytes > OP_NAME_MAX_BYTES)
        return intern_long(utf8, bytes, group);
    uint32_t length = (uint32_t)bytes;
    const entry wanted = {.text = utf8,
                          .length = length,
                          .hash = hash_of(utf8, length) ^ group * 0x9e3779b9u,
                          .given = group};
    const table *t = __atomic_load_n(&names.table, __ATOMIC_ACQUIRE);
    uint32_t id = t ? find(t, &wanted) : 0;
    if (id)
        return id;
    int cancelling;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE,
                           &cancelling); /* to write the log may be a thread's last act */
    pthread_mutex_lock(&names.lock);
    if (ready()) {
        id = find(names.table, &wanted);
        if (!id)
            id = add(&wanted);
    }
    pthread_mutex_unlock(&names.lock);
    pthread_setcancelstate(cancelling, NULL);
    return id ? id : OP_NAME_OVERFLOW;
}

uint32_t op_names_intern(const char *utf8, size_t bytes) {
    return op_names_intern_in(utf8, bytes, OP_NAME_NONE);
}

/* Where the last `(LINE): ` of a text begins, and where it ends; false where it has none. */
static bool find_line(const char *text, size_t bytes, size_t *begin, size_t *end) {
    for (size_t at = bytes; at-- > 3;) {
        if (memcmp(text + at - 2, "): ", 3) != 0)
            continue;
        size_t digit = at - 2;
        while (digit > 0 && text[digit - 1] >= '0' && text[digit - 1] <= '9')
            digit--;
        if (digit == at - 2 || digit == 0 || text[digit - 1] != '(')
            continue;
        *begin = digit - 1;
        *end = at - 1;
        return true;
    }
    return false;
}

uint32_t op_names_intern_call(const char *utf8, size_t bytes) {
    char shorter[OP_NAME_MAX_BYTES + 1], group[OP_NAME_MAX_BYTES];
    size_t begin, end;
    if (bytes > OP_NAME_MAX_BYTES) {
        bytes = shortened(shorter, utf8, bytes);
        utf8 = shorter;
    }
    if (!find_line(utf8, bytes, &begin, &end))
        return op_names_intern(utf8, bytes);
    memcpy(group, utf8, begin);
    memcpy(group + begin, utf8 + end, bytes - end);
    return op_names_intern_in(utf8, bytes, op_names_intern(group, begin + bytes - end));
}

const char *op_names_text(uint32_t id, uint32_t *length) {
    if (id == OP_NAME_NONE || id > op_names_count()) {
        *length = id == OP_NAME_OVERFLOW ? sizeof overflow_text - 1 : 0;
        return id == OP_NAME_OVERFLOW ? overflow_text : "";
    }
    const entry *e = entry_of(id);
    *length = e->length;
    return e->text;
}

uint32_t op_names_group(uint32_t id) {
    static const char step[] = "ProfilerStep#", all_steps[] = "ProfilerStep*";
    if (id == OP_NAME_NONE || id > op_names_count())
        return id;
    entry *e = entry_of(id);
    uint32_t group = __atomic_load_n(&e->group, __ATOMIC_RELAXED);
    if (group)
        return group;
    group = e->given ? e->given : id;
    if (e->length >= sizeof step - 1 && memcmp(e->text, step, sizeof step - 1) == 0)
        group = op_names_intern(all_steps, sizeof all_steps - 1);
    __atomic_store_n(&e->group, group, __ATOMIC_RELAXED);
    return group;
}

uint32_t op_names_count(void) { return __atomic_load_n(&names.count, __ATOMIC_ACQUIRE); }

int op_names_log(int fd) {
    pthread_mutex_lock(&names.lock);
    names.log = op_hold(fd);
    names.log_broken = fd >= 0 && names.log.fd < 0;
    if (fd >= 0)
        for (uint32_t id = 1; id <= names.count; id++)
            log_name(id, entry_of(id));
    int broken = names.log_broken;
    pthread_mutex_unlock(&names.lock);
    return broken ? -1 : 0;
}

void op_names_lock(void) { pthread_mutex_lock(&names.lock); }

void op_names_unlock(void) { pthread_mutex_unlock(&names.lock); }

void op_names_after_fork(void) {
    names.log = OP_HELD_NONE;
    pthread_mutex_unlock(&names.lock);
}
