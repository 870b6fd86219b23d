/* `names.lock` guards every write; readers see a table or entry only after its release store. It may be
 * taken inside the collector's lock, never around it. A name belongs to the process or is on loan. The
 * process's names are found without the lock, so they are never freed. Loans are found and counted
 * under the lock, so when the last holder returns one, its text and id are freed. */
#include "core/names.h"

#include "core/fault.h"
#include "core/grow.h"
#include "core/name_text.h"
#include "core/owned_fd.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define BLOCK_ENTRIES 4096u
#define BLOCKS (OP_NAME_MAX_COUNT / BLOCK_ENTRIES)
#define ARENA_BYTES (64u << 10)
#define LOANS_MOST (OP_NAME_MAX_COUNT / 4 * 3) /* ids; the others are reserved for recorded names */

typedef struct entry {
    const char *text;
    uint32_t length, hash;
    uint32_t given;   /* the group it was interned in; 0: none */
    uint32_t group;   /* 0 until asked for */
    uint32_t holders; /* of a name on loan */
    uint32_t next;    /* in a bucket of loans, or in the free list */
} entry;

typedef struct table {
    struct table *older; /* kept: a reader without the lock may still use it */
    uint32_t mask;
    uint32_t ids[]; /* 0: empty */
} table;

static struct {
    pthread_mutex_t lock;
    table *table;
    entry *blocks[BLOCKS];
    uint32_t count; /* ids ever assigned */
    uint32_t kept;  /* names of the process */
    char *arena;
    size_t arena_left;
    op_owned_fd log;
    bool log_broken;
    uint32_t *loans; /* buckets: the first id; 0: empty */
    uint32_t loan_count, loan_mask, free;
} names = {.lock = PTHREAD_MUTEX_INITIALIZER, .log = {.fd = -1}};

static const char overflow_text[] = "(overflow)";

static uint32_t hash_of(const char *text, size_t length) {
    uint64_t h = op_name_digest(text, length);
    return (uint32_t)(h ^ (h >> 29));
}

static entry *entry_of(uint32_t id) {
    entry *block = __atomic_load_n(&names.blocks[id / BLOCK_ENTRIES], __ATOMIC_ACQUIRE);
    return &block[id % BLOCK_ENTRIES];
}

static bool is_same(const entry *e, const entry *wanted) {
    return e->hash == wanted->hash && e->length == wanted->length && e->given == wanted->given &&
           memcmp(e->text, wanted->text, wanted->length) == 0;
}

static bool is_kept(const entry *e) { return e->text && !e->holders; }

static uint32_t find(const table *t, const entry *wanted) {
    for (uint32_t i = wanted->hash & t->mask;; i = (i + 1) & t->mask) {
        uint32_t id = __atomic_load_n(&t->ids[i], __ATOMIC_ACQUIRE);
        if (id == 0)
            return 0;
        if (is_same(entry_of(id), wanted))
            return id;
    }
}

static void place(table *t, uint32_t id, uint32_t hash) {
    uint32_t i = hash & t->mask;
    while (t->ids[i] != 0)
        i = (i + 1) & t->mask;
    __atomic_store_n(&t->ids[i], id, __ATOMIC_RELEASE);
}

/* The old tables stay allocated; together they are smaller than the new one. */
static bool grow(void) {
    uint32_t slots = names.table ? (names.table->mask + 1) * 2 : 4096;
    table *bigger = op_calloc(1, sizeof(table) + (size_t)slots * sizeof(uint32_t));
    if (!bigger)
        return false;
    bigger->older = names.table;
    bigger->mask = slots - 1;
    for (uint32_t id = 1; id <= names.count; id++)
        if (is_kept(entry_of(id)))
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
        names.log_broken = true; /* a reader would misread ids after a torn record */
}

static bool has_block(uint32_t id) {
    entry **block = &names.blocks[id / BLOCK_ENTRIES];
    entry *fresh = *block ? *block : op_calloc(BLOCK_ENTRIES, sizeof(entry));
    __atomic_store_n(block, fresh, __ATOMIC_RELEASE);
    return fresh != NULL;
}

/* Needs the lock. */
static uint32_t add(const entry *wanted) {
    if (names.count + 1 >= OP_NAME_MAX_COUNT)
        return 0;
    if ((!names.table || (names.kept + 1) * 4 > (names.table->mask + 1) * 3) && !grow())
        return 0;
    uint32_t id = names.count + 1;
    char *copy = has_block(id) ? arena_take((size_t)wanted->length + 1) : NULL;
    if (!copy)
        return 0;
    memcpy(copy, wanted->text, wanted->length);
    copy[wanted->length] = 0;
    entry *e = entry_of(id);
    *e = *wanted;
    e->text = copy;
    names.kept++;
    __atomic_store_n(&names.count, id, __ATOMIC_RELEASE);
    log_name(id, e);
    place(names.table, id, wanted->hash);
    return id;
}

/* ---- names on loan, all under the lock
 * ------------------------------------------------------------ */

/* The link to the name, or where it would be inserted. */
static uint32_t *loan_link(const entry *wanted) {
    uint32_t *link = &names.loans[wanted->hash & names.loan_mask];
    while (*link && !is_same(entry_of(*link), wanted))
        link = &entry_of(*link)->next;
    return link;
}

static bool has_buckets(void) {
    if (names.loans && names.loan_count <= names.loan_mask)
        return true;
    uint32_t mask = names.loans ? names.loan_mask * 2 + 1 : 4095, *old = names.loans;
    uint32_t *heads = op_calloc((size_t)mask + 1, sizeof *heads);
    if (!heads)
        return false;
    for (uint32_t bucket = 0; old && bucket <= names.loan_mask; bucket++)
        for (uint32_t id = old[bucket], next; id; id = next) {
            entry *e = entry_of(id);
            next = e->next;
            e->next = heads[e->hash & mask];
            heads[e->hash & mask] = id;
        }
    free(old);
    names.loans = heads;
    names.loan_mask = mask;
    return true;
}

static uint32_t lend_new(const entry *wanted) {
    uint32_t id = names.free ? names.free : names.count + 1;
    if (id > LOANS_MOST)
        return OP_NAME_OVERFLOW;
    char *copy = has_buckets() && has_block(id) ? op_malloc((size_t)wanted->length + 1) : NULL;
    if (!copy)
        return OP_NAME_NONE;
    memcpy(copy, wanted->text, wanted->length);
    copy[wanted->length] = 0;
    entry *e = entry_of(id);
    if (names.free)
        names.free = e->next;
    else
        __atomic_store_n(&names.count, id, __ATOMIC_RELEASE);
    *e = *wanted;
    e->text = copy;
    uint32_t *head = &names.loans[wanted->hash & names.loan_mask];
    e->next = *head;
    *head = id;
    names.loan_count++;
    return id;
}

static uint32_t lend(const entry *wanted, op_name_loans *to) {
    uint32_t id = names.loans ? *loan_link(wanted) : 0;
    if (!OP_HAS_ROOM(to->ids, to->count, to->capacity, 64))
        return OP_NAME_NONE;
    if (!id && (id = lend_new(wanted)) <= OP_NAME_OVERFLOW)
        return id;
    entry_of(id)->holders++;
    return to->ids[to->count++] = id;
}

static void give_back(uint32_t id) {
    entry *e = entry_of(id);
    if (--e->holders)
        return;
    *loan_link(e) = e->next;
    free((char *)(uintptr_t)e->text);
    *e = (entry){.next = names.free};
    names.free = id;
    names.loan_count--;
}

void op_names_return(op_name_loans *loans) {
    if (loans->count) {
        pthread_mutex_lock(&names.lock);
        for (uint32_t i = 0; i < loans->count; i++)
            give_back(loans->ids[i]);
        pthread_mutex_unlock(&names.lock);
    }
    free(loans->ids);
    *loans = (op_name_loans){0};
}

/* ---- both ------------------------------------------------------------------------------------- */

/* Needs the lock. The overflow name must exist before it is needed. */
static bool ready(void) {
    if (names.count)
        return true;
    uint32_t length = sizeof overflow_text - 1;
    const entry overflow = {
        .text = overflow_text, .length = length, .hash = hash_of(overflow_text, length)};
    return add(&overflow) == OP_NAME_OVERFLOW;
}

static uint32_t intern(const char *utf8, size_t bytes, uint32_t group, op_name_loans *loans);

/* Out of line: its array would enlarge every caller's stack frame. */
__attribute__((noinline)) static uint32_t intern_long(const char *utf8, size_t bytes, uint32_t group,
                                                      op_name_loans *loans) {
    char text[OP_NAME_MAX_BYTES + 1];
    return intern(text, op_name_shortened(text, utf8, bytes), group, loans);
}

/* Returns the process's name if it exists; else lends one to `loans`, or adds one if that is NULL. */
static uint32_t intern(const char *utf8, size_t bytes, uint32_t group, op_name_loans *loans) {
    if (group == OP_NAME_OVERFLOW)
        return OP_NAME_OVERFLOW;
    if (bytes > OP_NAME_MAX_BYTES)
        return intern_long(utf8, bytes, group, loans);
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
                           &cancelling); /* writing the log may be a cancellation point */
    pthread_mutex_lock(&names.lock);
    if (ready()) {
        id = find(names.table, &wanted);
        if (!id)
            id = loans ? lend(&wanted, loans) : add(&wanted);
    }
    pthread_mutex_unlock(&names.lock);
    pthread_setcancelstate(cancelling, NULL);
    return id;
}

uint32_t op_names_intern_in(const char *utf8, size_t bytes, uint32_t group) {
    uint32_t id = intern(utf8, bytes, group, NULL);
    return id ? id : OP_NAME_OVERFLOW;
}

uint32_t op_names_lend(const char *utf8, size_t bytes, uint32_t group, op_name_loans *loans) {
    return intern(utf8, bytes, group, loans);
}

uint32_t op_names_intern(const char *utf8, size_t bytes) {
    return op_names_intern_in(utf8, bytes, OP_NAME_NONE);
}

static uint32_t intern_call(const char *utf8, size_t bytes, op_name_loans *loans) {
    char shorter[OP_NAME_MAX_BYTES + 1], group[OP_NAME_MAX_BYTES];
    size_t begin, end;
    if (bytes > OP_NAME_MAX_BYTES) {
        bytes = op_name_shortened(shorter, utf8, bytes);
        utf8 = shorter;
    }
    if (!op_name_find_line(utf8, bytes, &begin, &end))
        return intern(utf8, bytes, OP_NAME_NONE, loans);
    memcpy(group, utf8, begin);
    memcpy(group + begin, utf8 + end, bytes - end);
    uint32_t id = intern(group, begin + bytes - end, OP_NAME_NONE, loans);
    return id ? intern(utf8, bytes, id, loans) : id;
}

uint32_t op_names_intern_call(const char *utf8, size_t bytes) {
    uint32_t id = intern_call(utf8, bytes, NULL);
    return id ? id : OP_NAME_OVERFLOW;
}

uint32_t op_names_lend_call(const char *utf8, size_t bytes, op_name_loans *loans) {
    return intern_call(utf8, bytes, loans);
}

const char *op_names_text(uint32_t id, uint32_t *length) {
    if (id == OP_NAME_NONE || id > op_names_count()) {
        *length = id == OP_NAME_OVERFLOW ? sizeof overflow_text - 1 : 0;
        return id == OP_NAME_OVERFLOW ? overflow_text : "";
    }
    const entry *e = entry_of(id);
    *length = e->length;
    return e->text ? e->text : "";
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
            if (is_kept(entry_of(id)))
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
