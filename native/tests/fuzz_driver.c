/* Fuzzes a reader without libFuzzer, for gcc: `fuzz_READER CORPUS SECONDS [SEED]`. Inputs are changed
 * at random; one that reaches new code is changed further (the library is compiled to call
 * __sanitizer_cov_trace_pc() at every edge). Each batch runs in a child process, so that its table of
 * names starts empty; a child that dies leaves the input in ./crash. */
#include "check.h"
#include "fuzz.h"
#include "mutate.h"

#include <dirent.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_INPUTS = 4096, EDGES = 1 << 16, BATCH = 20000 };

/* Shared by all batches. */
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
    const uint64_t before = fuzz_accepted;
    for (uint32_t i = 0; i < BATCH; i++) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        if ((double)now.tv_sec + 1e-9 * (double)now.tv_nsec > until)
            break;
        shared->current = shared->inputs[below(shared->count)];
        for (uint32_t changes = 1 + below(below(4) ? 2 : 8); changes; changes--)
            (fuzz_is_json ? change_json : change_binary)(&shared->current,
                                                         &shared->inputs[below(shared->count)]);
        memset(hit, 0, sizeof hit);
        LLVMFuzzerTestOneInput((const uint8_t *)shared->current.text, shared->current.length);
        shared->runs++;
        if (is_new())
            keep(&shared->current);
    }
    shared->accepted += fuzz_accepted - before;
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
        exit(0); /* not _exit(), so that leaks are reported */
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    random_state ^= shared->runs * 0x9e3779b97f4a7c15u; /* a child's numbers differ from its parent's */
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
    printf("%llu inputs, %llu of them accepted, %u kept, %u edges\n", (unsigned long long)shared->runs,
           (unsigned long long)shared->accepted, shared->count, shared->edges);
    if (!failed)
        return shared->accepted == 0 || shared->edges < 100;
    FILE *file = fopen("crash", "wb");
    if (file) {
        fwrite(shared->current.text, 1, shared->current.length, file);
        fclose(file);
    }
    fprintf(stderr, "it failed: the input is in ./crash\n");
    return 1;
}
