/* Fuzzes the reader of traces: `fuzz_trace CORPUS SECONDS [SEED]`.
 *
 * Inputs are changed at random; one that takes the code somewhere new is changed further (the library
 * is compiled to call __sanitizer_cov_trace_pc() at every edge). What is read without an error must
 * hold together, must not depend on the pieces it came in, and must be the same when it is written and
 * read again. A child process does a batch, so that its table of names starts empty; one that dies
 * leaves the input in ./crash.json. */
#include "check.h"
#include "json.h"
#include "mutate.h"
#include "result.h"

#include <dirent.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_INPUTS = 4096, EDGES = 1 << 16, BATCH = 20000 };

/* Of all batches. */
static struct shared {
    uint8_t seen[EDGES];
    uint32_t count, edges;
    uint64_t runs, accepted;
    input current;
    input inputs[MOST_INPUTS];
} *shared;

static uint8_t hit[EDGES];
void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void) {
    uint64_t place = (uint64_t)(uintptr_t)__builtin_return_address(0) * 0x9e3779b97f4a7c15u;
    hit[place >> 48] = 1;
}

/* ---- one input -------------------------------------------------------------------------- */

/* Each piece in memory of its own, so that a sanitizer sees what is read beyond it. */
static int read_pieces(const char *text, size_t length, uint32_t piece, op_result **out) {
    op_trace_reader *reader;
    *out = NULL;
    CHECK_OK(op_trace_open(&reader, 0, 0));
    int rc = OP_OK;
    for (size_t at = 0; rc == OP_OK && at < length;) {
        size_t count = 1 + below(piece);
        count = length - at < count ? length - at : count;
        char *copy = malloc(count);
        CHECK(copy != NULL);
        memcpy(copy, text + at, count);
        rc = op_trace_feed(reader, copy, count);
        free(copy);
        at += count;
    }
    if (rc == OP_OK)
        rc = op_trace_finish(reader, out);
    op_trace_close(reader);
    CHECK((rc == OP_OK) == (*out != NULL));
    CHECK(rc == OP_OK || op_last_error()[0]);
    return rc;
}

static void check_columns(const op_result *r) {
    op_columns c;
    uint32_t threads, steps;
    op_result_columns(r, &c);
    op_result_threads(r, &threads);
    op_result_steps(r, &steps);
    for (uint64_t row = 0; row < c.count; row++) {
        CHECK(c.start_ns[row] >= 0 && c.start_ns[row] <= op_result_trace_duration(r));
        CHECK(c.duration_ns[row] >= -1);
        CHECK(c.duration_ns[row] <= op_result_trace_duration(r) - c.start_ns[row]);
        CHECK(c.parent[row] >= -1 && c.parent[row] < (int64_t)row);
        CHECK(c.launcher[row] >= -1 && c.launcher[row] < (int64_t)c.count);
        CHECK(c.launcher[row] < 0 || c.kind[c.launcher[row]] < OP_KERNEL);
        CHECK(c.step[row] >= -1 && c.step[row] < (int64_t)steps);
        CHECK(c.thread[row] < threads);
        CHECK(row == 0 || c.thread[row] >= c.thread[row - 1]);
        const char *text;
        uint64_t length;
        CHECK_OK(op_result_event_args((op_result *)(uintptr_t)r, row, &text, &length));
    }
}

static void check_sums(op_result *r) {
    const op_group *rows;
    const op_path *paths;
    const int64_t *samples;
    op_memory_columns memory;
    op_columns c;
    op_result_columns(r, &c);
    CHECK_OK(op_result_memory_columns(r, &memory));
    uint64_t shown = 0; /* memory that an event accounts for is in that event's row */
    for (uint64_t row = 0; row < c.count; row++)
        shown += !(c.flags[row] & OP_FLAG_CREDITED);
    for (int by_inputs = 0; by_inputs < 2; by_inputs++) {
        uint64_t count, events = 0;
        uint32_t stack_depth = by_inputs ? 3 : 0;
        CHECK_OK(op_result_groups(r, by_inputs, stack_depth, &rows, &count, &samples));
        for (uint64_t i = 0; i < count; i++)
            events += rows[i].count;
        CHECK_EQ(events, shown);
        op_device_use use;
        CHECK_OK(op_result_device_use(r, &use));
        for (uint64_t i = 0; i < count && use.count; i++)
            CHECK(use.of_group[i] < use.count);
    }
    uint64_t nodes;
    CHECK_OK(op_result_paths(r, 100, &paths, &nodes));
}

static char *written(const op_result *r, int fd, size_t *length) {
    CHECK(ftruncate(fd, 0) == 0 && lseek(fd, 0, SEEK_SET) == 0);
    CHECK_OK(op_result_write_trace(r, fd, "", ""));
    off_t size = lseek(fd, 0, SEEK_CUR);
    CHECK(size > 0);
    *length = (size_t)size;
    char *text = malloc(*length + 1);
    CHECK(text && pread(fd, text, *length, 0) == size);
    text[*length] = 0;
    return text;
}

/* Twice beside itself, where half of all names are marked and time stands still, and then jumps. */
static char *side_by_side(const op_result *r, int fd) {
    op_columns c;
    uint32_t threads;
    op_result_columns(r, &c);
    op_result_threads(r, &threads);
    const op_trace_mark mark = {
        .label = " [+1]", .category = ",more", .color = "bad", .args = "\"n\": 1"};
    const int64_t end = op_result_trace_duration(r), from[] = {0, end / 2}, to[] = {0, end};
    enum { SLOTS = 1 << 12 };
    static uint32_t mark_of[SLOTS];
    for (uint32_t i = 0; i < SLOTS; i++)
        mark_of[i] = i & 1;
    int64_t *numbers = calloc((size_t)threads + 1, sizeof *numbers);
    CHECK(numbers != NULL);
    const op_trace_side side = {r, mark_of, SLOTS, &mark, from, to, 2, numbers, numbers};
    const op_trace_side sides[] = {side, side};
    CHECK(ftruncate(fd, 0) == 0 && lseek(fd, 0, SEEK_SET) == 0);
    CHECK_OK(op_trace_write_sides(sides, 2, fd, "", ""));
    free(numbers);
    off_t size = lseek(fd, 0, SEEK_CUR);
    char *text = malloc((size_t)size + 1);
    CHECK(text && pread(fd, text, (size_t)size, 0) == size);
    text[size] = 0;
    return text;
}

static int deepest(const char *text) {
    int depth = 0, found = 0;
    for (; *text; text++) {
        depth += (*text == '[' || *text == '{') - (*text == ']' || *text == '}');
        found = depth > found ? depth : found;
    }
    return found;
}

static void check_same(const op_result *a, const op_result *b) {
    op_columns x, y;
    op_result_columns(a, &x);
    op_result_columns(b, &y);
    CHECK_EQ(x.count, y.count);
    CHECK_EQ(op_result_other_events(a), op_result_other_events(b));
    CHECK_EQ(op_result_trace_start(a), op_result_trace_start(b));
    for (uint64_t row = 0; row < x.count; row++) {
        CHECK_EQ(x.start_ns[row], y.start_ns[row]);
        CHECK_EQ(x.duration_ns[row], y.duration_ns[row]);
        CHECK_EQ(x.self_ns[row], y.self_ns[row]);
        CHECK_EQ(x.name[row], y.name[row]);
        CHECK_EQ(x.parent[row], y.parent[row]);
        CHECK_EQ(x.launcher[row], y.launcher[row]);
        CHECK_EQ(x.kind[row], y.kind[row]);
        CHECK_EQ(x.flags[row], y.flags[row]);
    }
}

static void try_input(const input *in, int fd) {
    op_result *whole, *pieces, *again;
    int rc = read_pieces(in->text, in->length, LONGEST * 2, &whole);
    CHECK_EQ(read_pieces(in->text, in->length, 1 + below(64), &pieces), rc);
    shared->runs++;
    if (rc != OP_OK)
        return;
    shared->accepted++;
    check_columns(whole);
    check_sums(whole);
    check_same(whole, pieces);
    size_t length;
    char *text = written(whole, fd, &length);
    CHECK(deepest(text) > 60 || is_json(text));
    CHECK_OK(read_pieces(text, length, LONGEST, &again));
    check_same(whole, again);
    free(text);
    text = side_by_side(whole, fd);
    CHECK(deepest(text) > 60 || is_json(text));
    free(text);
    op_result_free(whole);
    op_result_free(pieces);
    op_result_free(again);
}

/* ---- many ------------------------------------------------------------------------------- */

static bool is_new(void) {
    uint32_t fresh = 0;
    for (uint32_t i = 0; i < EDGES; i++) {
        fresh += hit[i] && !shared->seen[i];
        shared->seen[i] |= hit[i];
    }
    shared->edges += fresh;
    return fresh > 0;
}

static void keep(const input *in) {
    uint32_t place = shared->count < MOST_INPUTS ? shared->count++ : below(MOST_INPUTS);
    shared->inputs[place] = *in;
}

static void run_batch(double until) {
    int fd = memfd_create("written", 0);
    CHECK(fd >= 0);
    for (uint32_t i = 0; i < BATCH; i++) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        if ((double)now.tv_sec + 1e-9 * (double)now.tv_nsec > until)
            break;
        shared->current = shared->inputs[below(shared->count)];
        for (uint32_t changes = 1 + below(below(4) ? 2 : 8); changes; changes--)
            change(&shared->current, &shared->inputs[below(shared->count)]);
        memset(hit, 0, sizeof hit);
        try_input(&shared->current, fd);
        if (is_new())
            keep(&shared->current);
    }
    close(fd);
}

static void take_corpus(const char *folder) {
    DIR *dir = opendir(folder);
    CHECK(dir != NULL);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char path[1024];
        static input in;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        FILE *file = entry->d_name[0] == '.' ? NULL : fopen(path, "rb");
        if (!file)
            continue;
        in.length = (uint32_t)fread(in.text, 1, LONGEST, file);
        fclose(file);
        keep(&in);
    }
    closedir(dir);
    CHECK(shared->count > 0);
}

static bool batch_fails(double until) {
    fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        run_batch(until);
        exit(0); /* and not _exit: what leaked is told at the end */
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    random_state ^= shared->runs * 0x9e3779b97f4a7c15u; /* a child's numbers are not its parent's */
    return status != 0;
}

int main(int argc, char **argv) {
    CHECK(argc >= 3);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    if (argc > 3)
        random_state = strtoull(argv[3], NULL, 10) | 1;
    take_corpus(argv[1]);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double start = (double)now.tv_sec, until = start + atof(argv[2]);
    bool failed = false;
    do {
        failed = batch_fails(until);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (!failed && (double)now.tv_sec < until);
    printf("%llu inputs, %llu of them traces, %u kept, %u edges\n", (unsigned long long)shared->runs,
           (unsigned long long)shared->accepted, shared->count, shared->edges);
    if (!failed)
        return shared->accepted == 0 || shared->edges < 100;
    FILE *file = fopen("crash.json", "wb");
    if (file) {
        fwrite(shared->current.text, 1, shared->current.length, file);
        fclose(file);
    }
    fprintf(stderr, "it failed: the input is in crash.json\n");
    return 1;
}
