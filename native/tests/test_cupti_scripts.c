/* Runs random scripts of activities over windows and compares the results. Optional argument: the
 * number of scripts, or one seed to run again. */
#include "cuda_script.h"
#include "device.h"

enum { DEEPEST = 16 };

/* Fewer under TSan, where each of a script's threads costs a millisecond. */
#if defined(__SANITIZE_THREAD__)
enum { MOST_SCRIPTS = 100 };
#else
enum { MOST_SCRIPTS = 2000 };
#endif

static cuda_script script;
static uint64_t seed;
static char failed[96]; /* the call that was made to fail */

/* ---- ranges and steps of the script --------------------------------------------------------- */

static _Thread_local op_slot open_ranges[DEEPEST];
static _Thread_local int open_count;
static int next_step;

static void begin_named(const char *name) { open_ranges[open_count++] = begin(name); }
static void end_last(void) { op_end(&open_ranges[--open_count]); }
static void step(void) {
    if (next_step)
        CHECK_OK(op_step_end());
    CHECK_OK(op_step_begin(next_step++));
}

static op_result *replay(void) {
    static const fake_hooks hooks = {.begin = begin_named, .end = end_last, .step = step};
    next_step = 0;
    CHECK_EQ(fake_script(script.text, &hooks), 0);
    if (next_step)
        CHECK_OK(op_step_end());
    return stop_window();
}

/* ---- one row of work ------------------------------------------------------------------------ */

/* The line of the script that it comes from. */
static int line_of(const op_result *r, const op_columns *c, uint64_t row) {
    if (c->kind[row] == OP_KERNEL)
        return atoi(name_of(r, (int64_t)row) + 1);
    return (int)work_of(r, (int64_t)row).bytes - 1;
}

static void check_launcher(const op_result *r, const op_columns *c, uint64_t row,
                           const expected_work *w) {
    int32_t call = c->launcher[row];
    CHECK_EQ(call >= 0, w->has_call);
    if (call < 0)
        return;
    CHECK(c->kind[call] == OP_RUNTIME || c->kind[call] == OP_DRIVER);
    CHECK_EQ(c->step[row], w->step);
    CHECK_EQ(c->step[call], w->step);
    CHECK_EQ(c->parent[call] >= 0, w->range >= 0);
    if (w->range >= 0) {
        CHECK_EQ(c->kind[c->parent[call]], OP_RANGE);
        CHECK_EQ(atoi(name_of(r, c->parent[call]) + 1), w->range);
    }
}

static void check_work(const op_result *r, const op_columns *c, uint64_t row, const expected_work *w) {
    uint32_t count;
    const op_thread_info *place = &op_result_threads(r, &count)[c->thread[row]];
    CHECK_EQ(c->kind[row], w->kind);
    CHECK_EQ(place->device_index, w->device);
    CHECK_EQ(place->resource, w->stream);
    if (w->timed)
        CHECK(llabs(c->duration_ns[row] - (int64_t)w->ns) <= 2); /* converted through ticks */
    else
        CHECK(c->duration_ns[row] <= 0);
}

static bool is_work(uint8_t kind) {
    return kind == OP_KERNEL || kind == OP_MEMCPY || kind == OP_MEMSET;
}

/* Compares the number of rows of each line. */
static void check_rows(const op_result *r, uint32_t found[MOST_WORKS], bool launchers_too) {
    op_columns c = columns_of(r);
    for (uint64_t row = 0; row < c.count; row++) {
        if (!is_work(c.kind[row]))
            continue;
        int line = line_of(r, &c, row);
        CHECK(line >= 0 && line < script.work_count);
        found[line]++;
        check_work(r, &c, row, &script.works[line]);
        if (launchers_too || c.launcher[row] >= 0)
            check_launcher(r, &c, row, &script.works[line]);
    }
}

/* ---- device memory --------------------------------------------------------------------------- */

static void check_change(const op_result *r, const op_columns *c, uint64_t row, bool whole) {
    op_memory m;
    uint64_t id;
    CHECK_EQ(op_result_memory(r, row, &m), 1);
    id = (m.address - block_at(0)) / (block_at(1) - block_at(0));
    CHECK(id < (uint64_t)script.block_count);
    const expected_block *b = &script.blocks[id];
    bool taken = m.bytes > 0;
    int range = taken ? b->range : b->freed_range;
    CHECK_EQ(m.device_type, 1);
    CHECK_EQ(m.device_index, b->device);
    CHECK(taken || b->freed);
    if (taken || whole)
        CHECK_EQ(m.bytes, taken ? (int64_t)b->bytes : -(int64_t)b->bytes);
    CHECK_EQ(c->step[row], taken ? b->step : b->freed_step);
    CHECK_EQ(c->parent[row] >= 0, range >= 0);
    if (range >= 0)
        CHECK_EQ(atoi(name_of(r, c->parent[row]) + 1), range);
}

/* Returns the number of changes. With lost records, blocks may be freed that were never allocated. */
static uint64_t check_memory(const op_result *r, bool whole) {
    op_columns c = columns_of(r);
    uint64_t changes = 0;
    for (uint64_t row = 0; row < c.count; row++)
        if (c.kind[row] == OP_MEMORY) {
            check_change(r, &c, row, whole);
            changes++;
        }
    return changes;
}

static void check_use(op_result *r) {
    const op_memory_use *uses;
    CHECK_OK(op_result_memory_use(r, 1, &uses));
    for (int step = 0; step <= script.steps; step++) {
        int64_t allocated = 0, freed = 0;
        uint64_t allocations = 0;
        for (int i = 0; i < script.block_count; i++) {
            const expected_block *b = &script.blocks[i];
            if (step < script.steps && b->step != step)
                continue;
            allocated += (int64_t)b->bytes;
            allocations++;
            if (b->freed && (step == script.steps || b->freed_step == step))
                freed += (int64_t)b->bytes;
        }
        CHECK_EQ(uses[step].allocated, allocated);
        CHECK_EQ(uses[step].freed, freed);
        CHECK_EQ(uses[step].allocations, allocations);
        CHECK(uses[step].peak <= allocated && uses[step].peak >= allocated - freed);
    }
}

/* ---- sums ----------------------------------------------------------------------------------- */

static void check_sum(int64_t actual, uint64_t expected, uint32_t records) {
    CHECK(llabs(actual - (int64_t)expected) <= 2 * (int64_t)records);
}

static void check_groups(op_result *r) {
    const op_group *groups;
    const int64_t *samples;
    uint64_t count;
    int ranges = 0;
    CHECK_OK(op_result_groups(r, OP_GROUP_BY_NAME, 0, &groups, &count, &samples));
    for (uint64_t i = 0; i < count; i++) {
        uint32_t length;
        if (groups[i].kind != OP_RANGE)
            continue;
        int range = atoi(op_name_text(groups[i].name, &length) + 1);
        const expected_range *e = &script.ranges[range];
        CHECK_EQ(groups[i].count, 1);
        check_sum(groups[i].device_total_ns, e->total_ns, e->total_records);
        check_sum(groups[i].self_device_ns, e->self_ns, e->self_records);
        CHECK_EQ(groups[i].self_device_memory, e->self_bytes);
        CHECK_EQ(groups[i].device_memory, e->total_bytes);
        ranges++;
    }
    CHECK_EQ(ranges, script.range_count);
}

/* ---- all of a result ------------------------------------------------------------------------ */

static void check_stats(op_result *r) {
    op_stats s = stats_of(r);
    uint64_t untimed = 0, unlaunched = 0;
    for (int i = 0; i < script.work_count; i++) {
        untimed += script.works[i].timed ? 0 : script.works[i].records;
        unlaunched += script.works[i].has_call ? 0 : script.works[i].records;
    }
    CHECK_EQ(s.cuda, OP_CUDA_RECORDED);
    CHECK_EQ(s.device_events, expected_rows(&script) + script.syncs);
    CHECK_EQ(s.device_dropped, 0);
    CHECK_EQ(s.device_untimed, untimed);
    CHECK_EQ(s.device_unlaunched, unlaunched);
    CHECK_EQ(launches_unseen(r), script.lost);
}

static void check_whole(op_result *r) {
    uint32_t found[MOST_WORKS] = {0};
    check_sound(r);
    check_stats(r);
    check_rows(r, found, true);
    for (int i = 0; i < script.work_count; i++)
        CHECK_EQ(found[i], script.works[i].records);
    CHECK_EQ(count_kind(r, OP_RUNTIME) + count_kind(r, OP_DRIVER), script.calls);
    CHECK_EQ(count_kind(r, OP_SYNC), script.syncs);
    CHECK_EQ(count_kind(r, OP_RANGE), script.range_count);
    CHECK_EQ(check_memory(r, true), expected_changes(&script));
    check_use(r);
    check_groups(r);
}

static void all_of_a_script_is_on_record(void) {
    fake_reset();
    write_script(&script, seed, false);
    fake_worker(seed % 4 != 0);
    fake_launch("before it", 7, 1000);
    start_window();
    op_result *r = replay();
    fake_launch("after it", 7, 1000);
    check_whole(r);
    op_result_free(r);
}

/* What was not recorded is counted, and what was recorded is right. */
static void what_is_dropped_is_counted(void) {
    fake_reset();
    write_script(&script, seed, true);
    start_window();
    fake_drop(1 + seed % 37);
    op_result *r = replay();
    uint32_t found[MOST_WORKS] = {0};
    check_sound(r);
    check_rows(r, found, false);
    uint64_t on_record = count_kind(r, OP_RUNTIME) + count_kind(r, OP_DRIVER) + count_kind(r, OP_SYNC);
    for (int i = 0; i < script.work_count; i++) {
        CHECK(found[i] <= script.works[i].records);
        on_record += found[i];
    }
    on_record += check_memory(r, false);
    uint64_t all = expected_rows(&script) + script.calls + script.syncs + expected_changes(&script);
    CHECK_EQ(on_record + stats_of(r).device_dropped, all);
    op_result_free(r);
}

/* ---- calls that fail ------------------------------------------------------------------------ */

static void fail_something(void) {
    static const char *const functions[] = {"cuptiActivityEnable",
                                            "cuptiActivityDisable",
                                            "cuptiActivityFlushAll",
                                            "cuptiActivityRegisterCallbacks",
                                            "cuptiActivityRegisterTimestampCallback",
                                            "cuptiActivitySetAttribute",
                                            "cuptiSetThreadIdType",
                                            "cuptiActivityGetNumDroppedRecords",
                                            "cuptiActivityGetNextRecord",
                                            "cuptiActivityEnableRuntimeApi",
                                            "cuptiActivityEnableDriverApi",
                                            "cuptiActivityEnableAllSyncRecords",
                                            "cuptiGetCallbackName",
                                            "cuptiGetResultString",
                                            "cuCtxSynchronize"};
    static const int codes[] = {1, 7, 8, 15, 21, 35, 999};
    uint32_t which = below(&script, sizeof functions / sizeof *functions);
    int code = codes[below(&script, sizeof codes / sizeof *codes)];
    if (strncmp(functions[which], "cupti", 5) == 0)
        fake_fail(functions[which], code, below(&script, 8)); /* 0: every call */
    else
        fake_cuda_fail(functions[which], code);
    snprintf(failed, sizeof failed, "%s gives %d", functions[which], code);
}

/* A result that claims to be complete is complete, whatever went wrong. */
static void what_failed_is_told(void) {
    fake_reset();
    write_script(&script, seed, true);
    fail_something();
    CHECK_OK(op_window_start());
    bool told = op_cuda_problem()[0] != 0;
    op_result *r = replay();
    fake_cuda_fail("cuCtxSynchronize", 0);
    uint32_t found[MOST_WORKS] = {0};
    op_stats s = stats_of(r);
    check_sound(r);
    CHECK_EQ(s.cuda == OP_CUDA_NOT_RECORDED, told);
    if (s.cuda == OP_CUDA_RECORDED && !s.device_dropped && !s.device_untimed && !s.device_unlaunched &&
        !launches_unseen(r)) {
        check_rows(r, found, true);
        for (int i = 0; i < script.work_count; i++)
            CHECK_EQ(found[i], script.works[i].records);
        CHECK_EQ(count_kind(r, OP_RUNTIME) + count_kind(r, OP_DRIVER), script.calls);
        CHECK_EQ(count_kind(r, OP_SYNC), script.syncs);
        if (op_cuda_parts() & OP_CUDA_MEMORY)
            CHECK_EQ(check_memory(r, true), expected_changes(&script));
    }
    op_result_free(r);
    failed[0] = 0;
}

/* ---- many scripts ---------------------------------------------------------------------------- */

static bool done;

/* Prints the seed, to run a script again alone. */
static void say_seed(void) {
    if (!done)
        fprintf(stderr, "in the script of seed %llu, %s:\n%s", (unsigned long long)seed, failed,
                script.text);
}

static void run(uint64_t from, uint64_t to) {
    folder f = start_device();
    for (seed = from; seed < to; seed++) {
        all_of_a_script_is_on_record();
        what_is_dropped_is_counted();
        what_failed_is_told();
    }
    close_session(&f);
}

int main(int count, char **arguments) {
    atexit(say_seed);
    const char *counts = getenv("OPPROF_COUNTS");
    bool all = counts && strcmp(counts, "all") == 0;
    uint64_t scripts = all ? MOST_SCRIPTS : COUNT(300);
    if (count > 1)
        scripts = strtoull(arguments[1], NULL, 10);
    if (count > 2) {
        uint64_t only = strtoull(arguments[2], NULL, 10);
        run(only, only + 1);
    } else {
        run(0, scripts);
    }
    done = true;
    printf("ok %llu scripts\n", (unsigned long long)scripts);
    fake_reset();
    return 0;
}
