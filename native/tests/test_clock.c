#include "core/clock.h"
#include "cuda/cupti_clock.h"

#include "fixture.h"

static const op_clock_pair first = {.ticks = 1000, .monotonic_ns = 5000000, .realtime_ns = 900};

static void ticks_never_go_back(void) {
    uint64_t last = op_ticks();
    for (int i = 0; i < COUNT(1000000); i++) {
        uint64_t now = op_ticks();
        CHECK(now >= last);
        last = now;
    }
}

static void clock_has_a_name(void) {
    const char *name = op_clock_name();
    CHECK(strcmp(name, "tsc") == 0 || strcmp(name, "cntvct") == 0 || strcmp(name, "monotonic") == 0);
    CHECK_EQ(op_clock_kind == OP_CLOCK_MONOTONIC, strcmp(name, "monotonic") == 0);
    CHECK_TEXT(op_session_clock(), name);
}

static void line_goes_through_both_pairs(void) {
    op_clock_pair last = {.ticks = 1000 + 2600000000u, .monotonic_ns = 5000000 + 1000000000u};
    int kind = op_clock_kind;
    op_clock_kind = OP_CLOCK_COUNTER;
    op_clock_line line = op_clock_through(&first, &last);
    op_clock_kind = kind;
    CHECK_EQ(op_clock_ns(&line, first.ticks), 900);
    CHECK(llabs(op_clock_ns(&line, last.ticks) - (900 + 1000000000)) <= 1);
    CHECK(llabs(op_clock_ns(&line, 1000 + 1300000000u) - (900 + 500000000)) <= 1);
    CHECK(op_clock_ns(&line, 0) < 900); /* before the first pair */
}

static void ticks_of_the_system_clock_are_nanoseconds(void) {
    op_clock_pair last = {.ticks = 1000 + 77, .monotonic_ns = 5000000 + 80};
    int kind = op_clock_kind;
    op_clock_kind = OP_CLOCK_MONOTONIC;
    op_clock_line line = op_clock_through(&first, &last);
    op_clock_kind = kind;
    CHECK_EQ(op_clock_ns(&line, 1077), 977);
}

static void wall_clock_steps_bend_nothing(void) {
    op_clock_pair last = {.ticks = 3600, .monotonic_ns = 5001000, .realtime_ns = 1900};
    op_clock_pair stepped = last;
    stepped.realtime_ns += 3600000000000u;
    op_clock_line plain = op_clock_through(&first, &last);
    op_clock_line after_step = op_clock_through(&first, &stepped);
    CHECK_EQ(op_clock_ns(&after_step, 3000), op_clock_ns(&plain, 3000));
}

static void pairs_at_one_instant_divide_nothing(void) {
    op_clock_line line = op_clock_through(&first, &first);
    CHECK_EQ(op_clock_ns(&line, first.ticks), 900);
}

/* Wherever this process is interrupted, a reading lies between two of the system's clock. */
static void readings_agree_with_the_system(void) {
    const int64_t off = 50000; /* a calibration whose every try was interrupted */
    op_clock_pair from, to;
    struct reading {
        uint64_t before, ticks, after;
    } readings[200];
    op_clock_calibrate(&from);
    for (int i = 0; i < 200; i++) {
        readings[i].before = op_clock_now(CLOCK_MONOTONIC);
        readings[i].ticks = op_ticks();
        readings[i].after = op_clock_now(CLOCK_MONOTONIC);
        for (uint64_t start = readings[i].after; op_clock_now(CLOCK_MONOTONIC) - start < 50000;)
            ;
    }
    op_clock_calibrate(&to);
    op_clock_line line = op_clock_through(&from, &to);
    for (int i = 0; i < 200; i++) {
        int64_t ns = op_clock_ns(&line, readings[i].ticks) - (int64_t)from.realtime_ns;
        CHECK(ns >= (int64_t)(readings[i].before - from.monotonic_ns) - off);
        CHECK(ns <= (int64_t)(readings[i].after - from.monotonic_ns) + off);
    }
}

/* Whatever a tick lasts, CUPTI's time of a moment is not before it, nor a nanosecond later. */
static void moments_come_back_from_cupti(void) {
    static const uint64_t rates[] = {1000000000, 999999937, 2600000000, 3893217654, 24000000, 5};
    int kind = op_clock_kind;
    op_clock_kind = OP_CLOCK_COUNTER;
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        op_clock_pair last = {.ticks = 1000 + rates[i],
                              .monotonic_ns = 5000000 + 1000000000u,
                              .realtime_ns = 900 + 1000000000u};
        op_cupti_clock clock = op_cupti_clock_through(&first, &last);
        uint64_t a_ns = rates[i] / 1000000000 + 2, step = rates[i] / 977 + 1;
        for (uint64_t ticks = 1000; ticks < 1000 + 20000 * step; ticks += step) {
            uint64_t ns = op_cupti_clock_ns(&clock, ticks);
            uint64_t after = op_cupti_clock_last_tick(&clock, ns);
            CHECK(after >= ticks && after - ticks <= a_ns);
            CHECK(op_cupti_clock_ticks(&clock, ns) <= ticks);
        }
    }
    op_clock_kind = kind;
}

int main(void) {
    op_clock_choose();
    RUN(clock_has_a_name);
    RUN(ticks_never_go_back);
    RUN(line_goes_through_both_pairs);
    RUN(ticks_of_the_system_clock_are_nanoseconds);
    RUN(wall_clock_steps_bend_nothing);
    RUN(pairs_at_one_instant_divide_nothing);
    RUN(moments_come_back_from_cupti);
    RUN(readings_agree_with_the_system);
    return 0;
}
