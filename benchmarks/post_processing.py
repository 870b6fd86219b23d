"""Compares post-processing (stop, events, key averages, table) of 300,000 events with torch.profiler's."""

from __future__ import annotations

import json
import sys
import time
from typing import Any, Final

from benchmarks.child import least
from benchmarks.memory import memory_so_far_kib, status_kib
from benchmarks.table import Row, nanoseconds
from benchmarks.workloads import training_step

_EVENTS: Final = 300_000
_OPS_A_STEP: Final = 1_229
_PROCESSES: Final = 3


def rows(*, quick: bool) -> list[Row]:
    """Each side's least processor time and memory over some processes; the sides take turns."""
    steps = str((_EVENTS // 10 if quick else _EVENTS) // _OPS_A_STEP)
    ours, torch = least("post_processing", ("ours", "torch"), steps, rounds=1 if quick else _PROCESSES)
    return [
        Row(
            what=f"stop, events, key averages, table: {ours['events']:,} events",
            ours=nanoseconds(ours["ns"]),
            peer=f"torch.profiler {nanoseconds(torch['ns'])}",
            figure=torch["ns"] / ours["ns"],
            at_least=300,
        ),
        Row(
            what="the same, and then a look at each event",
            ours=nanoseconds(ours["read_ns"]),
            peer=f"torch.profiler {nanoseconds(torch['read_ns'])}",
            figure=torch["read_ns"] / ours["read_ns"],
            at_least=60,
        ),
        Row(
            what="memory for the first, at its highest",
            ours=f"{ours['kib'] / 1024:.0f} MiB",
            peer=f"torch.profiler {torch['kib'] / 1024:.0f} MiB",
            figure=ours["kib"] / torch["kib"],
            at_most=0.1,
        ),
    ]


def _side(name: str, steps: int) -> dict[str, float]:
    loop = training_step()
    loop(2)
    before = memory_so_far_kib()
    if name == "ours":
        from pytest_opprof import profile  # noqa: PLC0415  # one side only in each process
    else:
        from torch.profiler import profile  # type: ignore[no-redef]  # noqa: PLC0415
    make: Any = profile
    for _ in range(2):  # warm up: the first session pays for imports
        with make() as warm:
            loop(2)
        warm.key_averages().table()
    del warm
    if name == "torch":  # importing torch's compiler must not count as its profiler's memory
        before = memory_so_far_kib()
    profiler = make()
    profiler.start()
    loop(steps)
    start = time.process_time_ns()
    profiler.stop()
    events = profiler.events()
    profiler.key_averages().table(sort_by="self_cpu_time_total", row_limit=10)
    took = time.process_time_ns() - start
    kib = status_kib("VmHWM") - before
    for event in events:
        assert event.cpu_time_total >= 0, event
    read = time.process_time_ns() - start
    return {"ns": took, "read_ns": read, "kib": kib, "events": len(events)}


if __name__ == "__main__":
    print(json.dumps(_side(sys.argv[1], int(sys.argv[2]))))
