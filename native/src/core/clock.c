#include "core/clock.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

int op_clock_kind = OP_CLOCK_MONOTONIC;

#if defined(__x86_64__)
/* The invariant TSC bit (leaf 0x80000007, EDX bit 8) promises a constant rate on one core. Only the
 * kernel's own choice of clock source shows that the cores agree. */
static int counter_is_trusted(void) {
    unsigned eax, ebx, ecx, edx = 0;
    if (!__get_cpuid(0x80000007u, &eax, &ebx, &ecx, &edx) || !(edx & (1u << 8)))
        return 0;
    char source[16] = "";
    int fd =
        open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, source, sizeof source - 1);
    close(fd);
    return n >= 3 && strncmp(source, "tsc", 3) == 0;
}
#elif defined(__aarch64__)
/* The architecture defines one generic timer for all cores. */
static int counter_is_trusted(void) { return 1; }
#else
static int counter_is_trusted(void) { return 0; }
#endif

void op_clock_choose(void) {
    int kind = counter_is_trusted() ? OP_CLOCK_COUNTER : OP_CLOCK_MONOTONIC;
    if (kind != op_clock_kind) /* not written again: other threads may read it */
        op_clock_kind = kind;
}

const char *op_clock_name(void) {
    if (op_clock_kind == OP_CLOCK_MONOTONIC)
        return "monotonic";
#if defined(__aarch64__)
    return "cntvct";
#else
    return "tsc";
#endif
}

/* The narrowest of many brackets wins: a wide one was interrupted between its two reads. */
void op_clock_calibrate(op_clock_pair *out) {
    uint64_t narrowest = UINT64_MAX;
    for (int i = 0; i < 200; i++) {
        uint64_t before = op_ticks();
        uint64_t monotonic = op_clock_now(CLOCK_MONOTONIC);
        uint64_t after = op_ticks();
        if (after - before < narrowest) {
            narrowest = after - before;
            out->ticks = before + narrowest / 2;
            out->monotonic_ns = monotonic;
        }
    }
    uint64_t gap = UINT64_MAX;
    for (int i = 0; i < 20; i++) {
        uint64_t before = op_clock_now(CLOCK_MONOTONIC);
        uint64_t realtime = op_clock_now(CLOCK_REALTIME);
        uint64_t after = op_clock_now(CLOCK_MONOTONIC);
        if (after - before < gap) {
            gap = after - before;
            out->realtime_ns = realtime - (before + gap / 2) + out->monotonic_ns;
        }
    }
}

/* Rates come from CLOCK_MONOTONIC alone. CLOCK_REALTIME only sets the origin, from the first pair, so a
 * step of the wall clock within the window distorts no duration. */
op_clock_line op_clock_through(const op_clock_pair *from, const op_clock_pair *to) {
    op_clock_line line = {
        .from_ticks = from->ticks, .scale = 1ull << 32, .base_ns = (int64_t)from->realtime_ns};
    uint64_t ticks = to->ticks - from->ticks;
    uint64_t ns = to->monotonic_ns - from->monotonic_ns;
    if (op_clock_kind == OP_CLOCK_COUNTER && ticks != 0)
        line.scale = (uint64_t)(((unsigned __int128)ns << 32) / ticks);
    return line;
}
