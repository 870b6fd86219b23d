/* A plugin of qemu-user: counts the guest's instructions between two marks, by the address that the
 * translated block begins at.
 *
 * A mark is a system call with arguments that no other has (sources/replay.c). At the second one the
 * counts are written to $OPPROF_REPLAY_COUNTS-PID, as pairs of 64-bit numbers: address, instructions.
 * The interface is QEMU's until 8.2; 9 has another one, and says so. It is declared here, as
 * distributions do not package its header. */
#include "opprof_replay.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

struct qemu_plugin_tb;
struct qemu_info_t;
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };
typedef uint64_t qemu_plugin_id_t;
typedef void translated(qemu_plugin_id_t, struct qemu_plugin_tb *);
typedef void called(qemu_plugin_id_t, unsigned, int64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                    uint64_t, uint64_t, uint64_t, uint64_t);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, translated *);
void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t, called *);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *, enum qemu_plugin_op, void *,
                                              uint64_t);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);

EXPORT int qemu_plugin_version = 1;

#define BLOCKS 4096

/* What a chunk of blocks counted; a chunk never moves, as translated code has its address. */
typedef struct chunk {
    struct chunk *next;
    uint32_t count;
    uint64_t address[BLOCKS], before[BLOCKS];
    uint64_t instructions[BLOCKS];
} chunk;

static chunk *chunks; /* the newest first */

/* QEMU holds its lock of translation meanwhile. */
static void on_translated(qemu_plugin_id_t id, struct qemu_plugin_tb *block) {
    (void)id;
    if (!chunks || chunks->count == BLOCKS) {
        chunk *fresh = calloc(1, sizeof *fresh);
        if (!fresh) {
            fprintf(stderr, "opprof replay: no memory to count instructions in\n");
            _exit(EXIT_FAILURE);
        }
        fresh->next = chunks;
        chunks = fresh;
    }
    uint32_t at = chunks->count++;
    chunks->address[at] = qemu_plugin_tb_vaddr(block);
    qemu_plugin_register_vcpu_tb_exec_inline(block, QEMU_PLUGIN_INLINE_ADD_U64,
                                             &chunks->instructions[at], qemu_plugin_tb_n_insns(block));
}

static void begin(void) {
    for (chunk *c = chunks; c; c = c->next)
        for (uint32_t i = 0; i < c->count; i++)
            c->before[i] = c->instructions[i];
}

static bool write_counts(FILE *file) {
    for (const chunk *c = chunks; c; c = c->next)
        for (uint32_t i = 0; i < c->count; i++) {
            uint64_t pair[2] = {c->address[i], c->instructions[i] - c->before[i]};
            if (pair[1] && fwrite(pair, sizeof pair, 1, file) != 1)
                return false;
        }
    return true;
}

/* Whole, or not there: whoever finds none knows that nothing was counted. The folder may be
 * everybody's. */
static void end(void) {
    char path[4096];
    const char *prefix = getenv("OPPROF_REPLAY_COUNTS");
    int length = snprintf(path, sizeof path, "%s-%ld", prefix ? prefix : "", (long)getpid());
    if (!prefix || length < 0 || (size_t)length >= sizeof path)
        return;
    int descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "wb");
    if (!file)
        return;
    bool is_written = write_counts(file);
    if (fclose(file) || !is_written)
        unlink(path);
}

static void on_call(qemu_plugin_id_t id, unsigned thread, int64_t number, uint64_t magic, uint64_t mark,
                    uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8) {
    (void)id, (void)thread, (void)number, (void)a3, (void)a4, (void)a5, (void)a6, (void)a7, (void)a8;
    if (magic != OP_REPLAY_MAGIC)
        return;
    if (mark == OP_REPLAY_BEGIN)
        begin();
    else if (mark == OP_REPLAY_END)
        end();
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info_t *info, int count,
                               char **arguments) {
    (void)info, (void)count, (void)arguments;
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translated);
    qemu_plugin_register_vcpu_syscall_cb(id, on_call);
    return 0;
}
