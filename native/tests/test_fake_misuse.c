/* What hangs or crashes the real library ends the process with a message in the fake. */
#include "cupti_client.h"
#include "others.h"

static pthread_mutex_t clients_lock = PTHREAD_MUTEX_INITIALIZER;

static void CUPTIAPI take_and_flush(CUcontext context, uint32_t stream, uint8_t *data, size_t size,
                                    size_t valid) {
    take(context, stream, data, size, valid);
    cuptiActivityFlushAll(0);
}

static void CUPTIAPI take_under_lock(CUcontext context, uint32_t stream, uint8_t *data, size_t size,
                                     size_t valid) {
    pthread_mutex_lock(&clients_lock);
    take(context, stream, data, size, valid);
    pthread_mutex_unlock(&clients_lock);
}

static uint64_t one_buffer[512];
static void CUPTIAPI give_the_same(uint8_t **data, size_t *size, size_t *most) {
    *data = (uint8_t *)one_buffer;
    *size = sizeof one_buffer;
    *most = 0;
}

static void CUPTIAPI give_askew(uint8_t **data, size_t *size, size_t *most) {
    give_the_same(data, size, most);
    *data += 4;
    *size -= 8;
}

static void flush_in_a_callback(void) {
    cuptiActivityRegisterCallbacks(give, take_and_flush);
    fake_call(FAKE_RUNTIME, 10);
    flush();
}

/* The flush waits for the callback, and the callback for the thread that called the flush. */
static void lock_around_a_flush(void) {
    cuptiActivityRegisterCallbacks(give, take_under_lock);
    fake_deadlock_after(50);
    fake_call(FAKE_RUNTIME, 10);
    pthread_mutex_lock(&clients_lock);
    flush();
}

static void *flush_there(void *unused) {
    flush();
    return unused;
}

static void lock_around_the_dropped_count(void) {
    fake_worker(0);
    cuptiActivityRegisterCallbacks(give, take_under_lock);
    fake_deadlock_after(50);
    fake_call(FAKE_RUNTIME, 10);
    pthread_mutex_lock(&clients_lock);
    start_thread(flush_there, NULL);
    for (size_t n;;)
        cuptiActivityGetNumDroppedRecords(NULL, 0, &n);
}

static void refuse_too_early(void) {
    fake_version(26);
    refuse = true;
    fake_call(FAKE_RUNTIME, 10);
}

static void hand_out_twice(void) {
    cuptiActivityRegisterCallbacks(give_the_same, take);
    for (int i = 0; i < 1000; i++)
        fake_call(FAKE_RUNTIME, 10);
}

static void hand_out_askew(void) {
    cuptiActivityRegisterCallbacks(give_askew, take);
    fake_call(FAKE_RUNTIME, 10);
}

static void touch_it_after_a_fork(void) { cuptiActivityDisable(CUPTI_ACTIVITY_KIND_RUNTIME); }

static const struct {
    void (*wrong)(void);
    const char *says;
    bool before_the_fork; /* whether the parent used the library */
} misuses[] = {{flush_in_a_callback, "called in a buffer callback", false},
               {lock_around_a_flush, "a buffer callback does not end", false},
               {lock_around_the_dropped_count, "a buffer callback waits for who waits for it", false},
               {refuse_too_early, "refused a buffer", false},
               {hand_out_twice, "while CUPTI still had it", false},
               {hand_out_askew, "not aligned", false},
               {touch_it_after_a_fork, "forked after CUPTI had been used", true}};

/* Checks the child's stderr, and that it ended by abort(). */
static void check_dies(void (*wrong)(void), const char *says, bool before_the_fork) {
    int ends[2];
    char said[512] = "";
    CHECK_EQ(pipe(ends), 0);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 2);
        if (!before_the_fork)
            start();
        wrong();
        _exit(0);
    }
    close(ends[1]);
    for (ssize_t n, used = 0; (n = read(ends[0], said + used, sizeof said - 1 - (size_t)used)) > 0;)
        used += n;
    close(ends[0]);
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    if (!strstr(said, says))
        fprintf(stderr, "it said: %s\n", said);
    CHECK(strstr(said, says) != NULL);
    CHECK(!WIFEXITED(status) || WEXITSTATUS(status) != 0);
}

static void misuse_ends_the_process(void) {
    for (size_t i = 0; i < sizeof misuses / sizeof *misuses; i++) {
        if (misuses[i].before_the_fork)
            start();
        check_dies(misuses[i].wrong, misuses[i].says, misuses[i].before_the_fork);
    }
}

int main(void) {
    RUN(misuse_ends_the_process);
    fake_reset();
    return 0;
}
