#include "core/record.h"

#include "fixture.h"

static folder here;

static void nested_ranges_are_a_tree(void) {
    CHECK_OK(op_window_start());
    op_slot outer = begin("outer"), inner = begin("inner"), innermost = begin("innermost");
    op_end(&innermost);
    op_end(&inner);
    op_slot second = begin("second");
    op_end(&second);
    op_end(&outer);
    op_slot sibling = begin("sibling");
    op_end(&sibling);
    op_result *r = stop_window();
    check_sound(r);
    op_columns c = columns_of(r);
    CHECK_EQ(c.count, 5);
    CHECK_EQ(c.parent[row_of(r, "outer")], -1);
    CHECK_EQ(c.parent[row_of(r, "inner")], row_of(r, "outer"));
    CHECK_EQ(c.parent[row_of(r, "innermost")], row_of(r, "inner"));
    CHECK_EQ(c.parent[row_of(r, "second")], row_of(r, "outer"));
    CHECK_EQ(c.parent[row_of(r, "sibling")], -1);
    for (uint64_t row = 0; row < c.count; row++)
        CHECK_EQ(c.flags[row], 0);
    op_result_free(r);
}

static void nesting_past_the_deepest_is_counted(void) {
    enum { DEEP = UINT16_MAX + 1000 };
    static op_slot slots[DEEP];
    op_session_close();
    open_session_with((op_config){.pool_dir = here.path, .pool_bytes = 4 * OP_CHUNK_MAX});
    CHECK_OK(op_window_start());
    for (uint32_t i = 0; i < DEEP; i++)
        slots[i] = begin_numbered(name_id("deeper"), i);
    CHECK_EQ(op_window_dropped(), DEEP - UINT16_MAX);
    for (uint32_t i = DEEP; i-- > 0;)
        op_end(&slots[i]);
    op_slot after = begin("after");
    op_end(&after);
    op_result *r = stop_window();
    check_sound(r);
    op_columns c = columns_of(r);
    CHECK_EQ(c.count, UINT16_MAX + 1);
    CHECK_EQ(stats_of(r).dropped, DEEP - UINT16_MAX);
    CHECK_EQ(c.parent[UINT16_MAX - 1], UINT16_MAX - 2);
    CHECK_EQ(c.parent[row_of(r, "after")], -1);
    op_result_free(r);
    op_session_close();
    open_session(&here);
}

static void argument_blocks_stay_with_their_events(void) {
    static uint32_t words[OP_ARGS_MAX_WORDS];
    const uint32_t n = 3000;
    CHECK_OK(op_window_start());
    for (uint32_t i = 0; i < n; i++) {
        uint32_t payload = i % 7 == 0 ? OP_ARGS_MAX_WORDS - 1 : i % 5 + 1;
        words[0] = OP_ARGS_HEADER(OP_ARGS_TEXT, payload);
        words[1] = 4 * (payload - 1);
        for (uint32_t j = 2; j <= payload; j++)
            words[j] = i;
        op_slot slot = op_begin(name_id("argued"), OP_RANGE, OP_SCOPE_USER, 0, words, 1 + payload);
        op_end(&slot);
    }
    op_result *r = stop_window();
    op_columns c = columns_of(r);
    uint64_t total;
    const uint32_t *args = op_result_args(r, &total);
    CHECK_EQ(c.count, n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t payload = i % 7 == 0 ? OP_ARGS_MAX_WORDS - 1 : i % 5 + 1;
        CHECK(c.args[i] && c.args[i] + payload <= total);
        const uint32_t *block = args + c.args[i] - 1;
        CHECK_EQ(block[0], OP_ARGS_HEADER(OP_ARGS_TEXT, payload));
        for (uint32_t j = 2; j <= payload; j++)
            CHECK_EQ(block[j], i);
    }
    op_result_free(r);
}

static void arguments_larger_than_a_chunk_are_dropped(void) {
    static uint32_t words[OP_CHUNK_MIN];
    CHECK_OK(op_window_start());
    op_slot slot = op_begin(name_id("huge"), OP_RANGE, OP_SCOPE_USER, 0, words, OP_CHUNK_MIN);
    op_end(&slot);
    record_numbered(name_id("after"), 0, 10);
    op_result *r = stop_window();
    CHECK_EQ(columns_of(r).count, stats_of(r).dropped ? 10 : 11);
    op_result_free(r);
}

int main(void) {
    here = make_folder();
    open_session(&here);
    RUN(nested_ranges_are_a_tree);
    RUN(nesting_past_the_deepest_is_counted);
    RUN(argument_blocks_stay_with_their_events);
    RUN(arguments_larger_than_a_chunk_are_dropped);
    close_session(&here);
    return 0;
}
