/* What a session file still holds, as text, for tests/integration/test_kill.py.
 *
 *     recover_dump FILE
 *
 * A line of totals, then one an event, each thread in the order of begin:
 *
 *     truncated 0|1 spilled BYTES events COUNT
 *     TID START END NUMBER NAME PARENT TEXT     END -1: unfinished; PARENT a number, -1: none */
#include "fixture.h"

static long long number_of(const op_columns *c, int64_t row) {
    return row < 0 ? -1 : c->sequence_nr[row];
}

/* The number that kill_writer put into the event's argument block. */
static uint32_t text_of(const op_result *r, uint32_t args) {
    uint64_t words;
    const uint32_t *all = op_result_args(r, &words);
    CHECK(args == 0 || (uint64_t)args + 2 <= words);
    return args ? all[args + 1] : 0;
}

int main(int count, char **arguments) {
    op_result *r;
    if (count != 2)
        return 2;
    CHECK_OK(op_recover(arguments[1], &r));
    op_columns c = columns_of(r);
    op_stats s = stats_of(r);
    uint32_t threads, length;
    const op_thread_info *info = op_result_threads(r, &threads);
    printf("truncated %u spilled %llu events %llu\n", s.truncated, (unsigned long long)s.spilled_bytes,
           (unsigned long long)c.count);
    for (uint64_t row = 0; row < c.count; row++)
        printf("%u %lld %lld %lld %s %lld %u\n", info[c.thread[row]].os_tid, (long long)c.start_ns[row],
               c.duration_ns[row] < 0 ? -1ll : (long long)(c.start_ns[row] + c.duration_ns[row]),
               number_of(&c, (int64_t)row), op_name_text(c.name[row], &length),
               number_of(&c, c.parent[row]), text_of(r, c.args[row]));
    op_result_free(r);
    return 0;
}
