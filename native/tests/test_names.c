#include "core/name_text.h"
#include "fixture.h"
#include "others.h"

#include <fcntl.h>

static uint32_t numbered(const char *stem, unsigned number) {
    char text[64];
    snprintf(text, sizeof text, "%s-%u", stem, number);
    return name_id(text);
}

static void check_name(uint32_t id, const char *expected, size_t bytes) {
    uint32_t length;
    const char *text = op_names_text(id, &length);
    CHECK_EQ(length, bytes);
    CHECK(memcmp(text, expected, bytes) == 0);
    CHECK_EQ(text[bytes], 0);
}

static void overflow_name_comes_first(void) {
    CHECK_EQ(op_names_count(), 0);
    check_name(OP_NAME_OVERFLOW, "(overflow)", 10);
    CHECK(name_id("first") > OP_NAME_OVERFLOW);
    check_name(OP_NAME_OVERFLOW, "(overflow)", 10);
}

static void same_text_has_one_id(void) {
    uint32_t id = name_id("aten::mm");
    CHECK_EQ(name_id("aten::mm"), id);
    CHECK(name_id("aten::mm.out") != id);
    check_name(id, "aten::mm", 8);
}

static void any_bytes_are_a_name(void) {
    check_name(op_names_intern("", 0), "", 0);
    check_name(op_names_intern("a\0b", 3), "a\0b", 3);
    CHECK(op_names_intern("a\0b", 3) != op_names_intern("a\0c", 3));
    check_name(op_names_intern("\xed\xa0\x80", 3), "\xed\xa0\x80", 3);
    check_name(op_names_intern("\xff\xfe", 2), "\xff\xfe", 2);
}

static void unknown_ids_have_no_text(void) {
    check_name(OP_NAME_NONE, "", 0);
    check_name(op_names_count() + 1, "", 0);
    check_name(UINT32_MAX, "", 0);
    CHECK_EQ(op_names_group(UINT32_MAX), UINT32_MAX);
}

static void long_names_end_in_a_digest_of_all_of_them(void) {
    char text[OP_NAME_MAX_BYTES + 100];
    uint32_t length;
    memset(text, 'x', sizeof text);
    check_name(op_names_intern(text, OP_NAME_MAX_BYTES), text, OP_NAME_MAX_BYTES);
    uint32_t one = op_names_intern(text, sizeof text);
    CHECK_EQ(op_names_intern(text, sizeof text), one);
    const char *told = op_names_text(one, &length);
    CHECK_EQ(length, OP_NAME_MAX_BYTES);
    CHECK(memcmp(told, text, length - 17) == 0 && told[length - 17] == '~');
    CHECK(op_names_intern(text, sizeof text - 1) != one);
    text[sizeof text - 1] = 'y';
    CHECK(op_names_intern(text, sizeof text) != one);
    CHECK(op_names_intern_call(text, sizeof text) != one);
    memcpy(text + OP_NAME_MAX_BYTES - 18, "\xe6\x97\xa5", 3); /* a character is not split */
    told = op_names_text(op_names_intern(text, sizeof text), &length);
    CHECK_EQ(length, OP_NAME_MAX_BYTES - 1);
    CHECK_EQ(told[length - 17], '~');
    memset(text, 0x80, sizeof text); /* only continuation bytes: no character boundary */
    told = op_names_text(op_names_intern(text, sizeof text), &length);
    CHECK_EQ(length, 17);
}

static void profiler_steps_group_together(void) {
    uint32_t all = name_id("ProfilerStep*");
    CHECK_EQ(op_names_group(name_id("ProfilerStep#0")), all);
    CHECK_EQ(op_names_group(name_id("ProfilerStep#12")), all);
    CHECK_EQ(op_names_group(all), all);
    CHECK_EQ(op_names_group(name_id("ProfilerStep")), name_id("ProfilerStep"));
    CHECK_EQ(op_names_group(OP_NAME_NONE), OP_NAME_NONE);
}

static uint32_t lent(const char *text, op_name_loans *to) {
    return op_names_lend(text, strlen(text), OP_NAME_NONE, to);
}

static void names_on_loan_go_with_their_last_holder(void) {
    op_name_loans one = {0}, other = {0};
    uint32_t kept = name_id("the process's"), id = lent("of a trace", &one);
    CHECK_EQ(lent("the process's", &one), kept);
    CHECK_EQ(one.count, 1);
    CHECK_EQ(lent("of a trace", &other), id);
    op_names_return(&one);
    check_name(id, "of a trace", 10);
    uint32_t recorded = name_id("of a trace"); /* recorded names are never on loan */
    CHECK(recorded != id);
    op_names_return(&other);
    check_name(id, "", 0);
    check_name(recorded, "of a trace", 10);
    CHECK_EQ(lent("of a trace", &one), recorded);
    CHECK_EQ(lent("of another", &one), id);
    op_names_return(&one);
}

static void names_on_loan_group_as_others(void) {
    op_name_loans loans = {0};
    uint32_t first = op_names_lend_call("x.py(41): f", 11, &loans);
    uint32_t second = op_names_lend_call("x.py(7): f", 10, &loans);
    CHECK(first != second);
    CHECK_EQ(op_names_group(first), op_names_group(second));
    check_name(op_names_group(first), "x.py: f", 7);
    CHECK_EQ(op_names_group(lent("ProfilerStep#9911", &loans)), name_id("ProfilerStep*"));
    op_names_return(&loans);
}

static void readers_take_turns_in_the_same_room(void) {
    char text[64];
    op_name_loans loans = {0};
    uint32_t most = 0;
    for (unsigned reader = 0; reader < 30; reader++) {
        for (unsigned i = 0; i < COUNT(30000); i++) {
            snprintf(text, sizeof text, "reader %u-%u", reader, i);
            uint32_t id = lent(text, &loans);
            CHECK(id > OP_NAME_OVERFLOW);
            check_name(id, text, strlen(text));
        }
        most = reader ? most : op_names_count();
        CHECK_EQ(op_names_count(), most);
        op_names_return(&loans);
    }
}

static uint32_t call_id(const char *text) { return op_names_intern_call(text, strlen(text)); }

static void calls_group_without_their_line(void) {
    uint32_t group = name_id("a (2): b.py: f");
    CHECK_EQ(op_names_group(call_id("a (2): b.py(41): f")), group);
    CHECK_EQ(op_names_group(call_id("a (2): b.py(7): f")), group);
    CHECK(call_id("a.py(41): f") != call_id("a.py(7): f"));
    check_name(call_id("a.py(41): f"), "a.py(41): f", 11);
    const char *const without[] = {"", "a.py: f", "a.py(): f", "a.py(x1): f", "a.py(1) f", "1): f"};
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        CHECK_EQ(call_id(without[i]), name_id(without[i]));
}

/* Two lambdas of one line. */
static void one_text_may_be_in_several_groups(void) {
    const char *text = "a.py(1): <lambda>";
    uint32_t groups[] = {OP_NAME_NONE, name_id("a.py: <lambda>"), name_id("a.py: f.<locals>.<lambda>")};
    for (size_t i = 0; i < 3; i++) {
        uint32_t id = op_names_intern_in(text, strlen(text), groups[i]);
        CHECK_EQ(op_names_intern_in(text, strlen(text), groups[i]), id);
        CHECK_EQ(op_names_group(id), groups[i] ? groups[i] : id);
        check_name(id, text, strlen(text));
    }
    CHECK_EQ(op_names_intern_in(text, strlen(text), OP_NAME_OVERFLOW), OP_NAME_OVERFLOW);
}

static void names_survive_growth(void) {
    static uint32_t ids[30000];
    const unsigned n = COUNT(30000);
    for (unsigned i = 0; i < n; i++)
        ids[i] = numbered("growth", i);
    for (unsigned i = 0; i < n; i++)
        CHECK_EQ(numbered("growth", i), ids[i]);
}

#define RACERS 8
#define RACED 4000

static uint32_t raced[RACERS][RACED];

static void *intern_all(void *number) {
    unsigned me = *(unsigned *)number;
    for (unsigned i = 0; i < COUNT(RACED); i++) {
        unsigned at = me % 2 ? COUNT(RACED) - 1 - i : i;
        raced[me][at] = numbered("raced", at);
    }
    return NULL;
}

static void threads_agree_on_ids(void) {
    unsigned numbers[RACERS];
    uint32_t before = op_names_count();
    for (unsigned i = 0; i < RACERS; i++)
        numbers[i] = i;
    on_threads(RACERS, intern_all, numbers, sizeof numbers[0]);
    CHECK_EQ(op_names_count() - before, COUNT(RACED));
    for (unsigned i = 1; i < RACERS; i++)
        CHECK(memcmp(raced[i], raced[0], COUNT(RACED) * sizeof raced[0][0]) == 0);
}

/* The log gives a dead process's ids their text: all names, including earlier ones. */
static void log_holds_every_name(void) {
    FILE *file = tmpfile();
    CHECK(file != NULL);
    uint32_t early = name_id("before the log");
    CHECK_EQ(op_names_log(fileno(file)), 0);
    uint32_t late = name_id("while logging");
    uint32_t call = op_names_intern_call("a.py(3): f", 10);
    CHECK_EQ(op_names_log(-1), 0);
    uint32_t after = name_id("after the log");
    bool seen_early = false, seen_late = false;
    uint32_t head[3], expected = 1;
    char text[OP_NAME_MAX_BYTES + 1];
    rewind(file);
    while (fread(head, sizeof head, 1, file) == 1) {
        CHECK(head[0] >= expected); /* it has no name on loan */
        expected = head[0] + 1;
        if (head[0] == call)
            CHECK_EQ(head[2], name_id("a.py: f"));
        CHECK(head[1] <= OP_NAME_MAX_BYTES && fread(text, 1, head[1], file) == head[1]);
        check_name(head[0], text, head[1]);
        seen_early |= head[0] == early;
        seen_late |= head[0] == late;
    }
    CHECK(seen_early && seen_late);
    CHECK_EQ(expected, after);
    fclose(file);
}

static void unwritable_log_is_said(void) {
    int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK_EQ(op_names_log(fd), -1);
    CHECK_EQ(op_names_log(-1), 0);
    close(fd);
}

/* Last, because it fills the table. */
static void names_past_the_cap_overflow(void) {
    unsigned i = 0;
    while (numbered("cap", i) != OP_NAME_OVERFLOW)
        CHECK(i++ < OP_NAME_MAX_COUNT);
    CHECK_EQ(op_names_count(), OP_NAME_MAX_COUNT - 1);
    CHECK_EQ(numbered("cap", i + 1), OP_NAME_OVERFLOW);
    CHECK(numbered("cap", 0) > OP_NAME_OVERFLOW); /* known names are still found */
}

/* An id that is kept, as by a decorator, is used in later windows too. */
static void events_that_share_the_name_are_counted_by_window(void) {
    uint32_t kept = numbered("cap", OP_NAME_MAX_COUNT), known = numbered("cap", 0);
    folder here = make_folder();
    open_session(&here);
    for (uint32_t many = 0; many < 3; many++) {
        CHECK_OK(op_window_start());
        record_numbered(known, 0, 5);
        record_numbered(kept, 5, many);
        op_result *r = stop_window();
        CHECK_EQ(stats_of(r).names_overflowed, many);
        op_result_free(r);
    }
    close_session(&here);
}

int main(void) {
    RUN(overflow_name_comes_first);
    RUN(same_text_has_one_id);
    RUN(any_bytes_are_a_name);
    RUN(unknown_ids_have_no_text);
    RUN(long_names_end_in_a_digest_of_all_of_them);
    RUN(profiler_steps_group_together);
    RUN(names_on_loan_go_with_their_last_holder);
    RUN(names_on_loan_group_as_others);
    RUN(readers_take_turns_in_the_same_room);
    RUN(calls_group_without_their_line);
    RUN(one_text_may_be_in_several_groups);
    RUN(names_survive_growth);
    RUN(threads_agree_on_ids);
    RUN(log_holds_every_name);
    RUN(unwritable_log_is_said);
    RUN(names_past_the_cap_overflow);
    RUN(events_that_share_the_name_are_counted_by_window);
    return 0;
}
