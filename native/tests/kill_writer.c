/* Records until it is killed, and keeps a log of its own, for tests/integration/test_kill.py.
 *
 *     kill_writer FOLDER SEED
 *
 * The session lies in FOLDER, with a pool so small that it wraps and spills all the time; its path
 * is printed once the window is open. Four threads keep FOLDER/0.log to 3.log with write(2): events
 * are announced before they begin, and called ended after they have:
 *
 *     t TID                       the thread, first
 *     b NUMBER NAME PARENT TEXT   about to begin this event, a child of that one (-1: none)
 *     d NUMBER                    all up to this one have ended, but for number 0, which never does
 *
 * So what was recorded is in the log, and what the log calls ended was recorded. */
#include "fixture.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/syscall.h>

enum { THREADS = 4, DEEPEST = 12, LARGEST_BATCH = 200, LONGEST_LINE = 96 };

typedef struct planned {
    uint32_t number, depth, text;
    char name[32];
} planned;

typedef struct writer {
    int log;
    uint64_t random;
    uint32_t next;
    uint32_t path[DEEPEST + 1]; /* by depth: the number of that event */
    planned batch[LARGEST_BATCH];
    uint32_t planned;
    char text[(LARGEST_BATCH + 1) * LONGEST_LINE];
    size_t length;
} writer;

static uint32_t random_below(writer *w, uint32_t n) {
    w->random = w->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(w->random >> 33) % n;
}

static void log_all(writer *w) {
    CHECK_EQ(write(w->log, w->text, w->length), w->length);
    w->length = 0;
}

static void log_line(writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void log_line(writer *w, const char *format, ...) {
    va_list args;
    va_start(args, format);
    w->length += (size_t)vsnprintf(w->text + w->length, LONGEST_LINE, format, args);
    va_end(args);
}

/* Mostly the same few names, and now and then a new one. */
static void plan_one(writer *w, uint32_t depth) {
    planned *p = &w->batch[w->planned++];
    p->number = w->next++;
    p->depth = depth;
    p->text = random_below(w, 3) ? 0 : 1 + random_below(w, 1000000);
    if (random_below(w, 50))
        snprintf(p->name, sizeof p->name, "op-%u", random_below(w, 40));
    else
        snprintf(p->name, sizeof p->name, "日本-%d-%u", w->log, p->number);
    w->path[depth] = p->number;
    log_line(w, "b %u %s %d %u\n", p->number, p->name, depth ? (int)w->path[depth - 1] : -1, p->text);
}

/* A random tree below event 0. */
static void plan_batch(writer *w) {
    uint32_t count = 1 + random_below(w, LARGEST_BATCH), depth = 0;
    w->planned = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t deepest = depth < DEEPEST ? depth + 1 : DEEPEST;
        depth = 1 + random_below(w, deepest);
        plan_one(w, depth);
    }
    log_all(w);
}

static op_slot begin_planned(const planned *p) {
    uint32_t words[3] = {OP_ARGS_HEADER(OP_ARGS_TEXT, 2), 4, p->text};
    return op_begin(name_id(p->name), OP_TORCH, 0, p->number, words, p->text ? 3 : 0);
}

static void record_batch(writer *w) {
    op_slot open[DEEPEST + 1];
    uint32_t depth = 0;
    for (uint32_t i = 0; i < w->planned; i++) {
        while (depth >= w->batch[i].depth)
            op_end(&open[depth--]);
        depth = w->batch[i].depth;
        open[depth] = begin_planned(&w->batch[i]);
    }
    while (depth > 0)
        op_end(&open[depth--]);
    log_line(w, "d %u\n", w->next - 1);
}

static void *record_forever(void *argument) {
    writer *w = argument;
    log_line(w, "t %ld\n", syscall(SYS_gettid));
    plan_one(w, 0);
    log_all(w);
    begin_planned(&w->batch[0]);
    for (;;) {
        plan_batch(w);
        record_batch(w);
    }
    return NULL;
}

static writer writers[THREADS];

int main(int count, char **arguments) {
    if (count != 3)
        return 2;
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    open_session_with((op_config){
        .pool_dir = arguments[1], .spill_dir = arguments[1], .pool_bytes = 4 * OP_CHUNK_MAX});
    CHECK_OK(op_window_start());
    printf("%s\n", op_session_path());
    fflush(stdout);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%d.log", arguments[1], i);
        writers[i].log = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
        CHECK(writers[i].log >= 0);
        writers[i].random = strtoull(arguments[2], NULL, 10) * THREADS + (unsigned)i;
        CHECK_EQ(pthread_create(&threads[i], NULL, record_forever, &writers[i]), 0);
    }
    return pthread_join(threads[0], NULL); /* never */
}
