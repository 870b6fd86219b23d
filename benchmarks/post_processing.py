"""Stop, events, key averages and table of 300,000 events: ours against torch.profiler's."""

from __future__ import annotations

import gc
import json
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.child import measured
from benchmarks.table import Bound, Row, nanoseconds
from benchmarks.workloads import torch_workloads

EVENTS = 300_000
_OPS_A_STEP = 1_229


def rows(*, quick: bool) -> list[Row]:
    """Time, and memory above what the process had before it profiled."""
    steps = str((EVENTS // 10 if quick else EVENTS) // _OPS_A_STEP)
    ours, torch = measured("post_processing", "ours", steps), measured("post_processing", "torch", steps)
    return [
        Row(
            what=f"stop, events, key averages, table: {ours['events']:,} events",
            ours=nanoseconds(ours["ns"]),
            peer=f"torch.profiler {nanoseconds(torch['ns'])}",
            figure=torch["ns"] / ours["ns"],
            bound=300,
        ),
        Row(
            what="memory of the same, share of torch.profiler's",
            ours=f"{ours['kib'] / 1024:.0f} MiB",
            peer=f"torch.profiler {torch['kib'] / 1024:.0f} MiB",
            figure=ours["kib"] / torch["kib"],
            bound=0.1,
            direction=Bound.AT_MOST,
        ),
    ]


def _status_kib(field: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))


def _side(name: str, steps: int) -> dict[str, float]:
    if name == "ours":
        from pytest_opprof import profile  # noqa: PLC0415  # one side only in each process
    else:
        from torch.profiler import profile  # type: ignore[no-redef]  # noqa: PLC0415
    make: Any = profile
    loop = next(w.loop for w in torch_workloads() if w.name == "encoder, forward and backward")
    for _ in range(2):  # the first session pays for imports
        with make() as warm:
            loop(2)
        warm.key_averages().table()
    del warm
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak begins here
    before = _status_kib("VmRSS")
    profiler = make()
    profiler.start()
    loop(steps)
    start = time.perf_counter_ns()
    profiler.stop()
    events = profiler.events()
    profiler.key_averages().table(sort_by="self_cpu_time_total", row_limit=10)
    took = time.perf_counter_ns() - start
    return {"ns": took, "kib": max(_status_kib("VmHWM") - before, 1), "events": len(events)}


if __name__ == "__main__":
    print(json.dumps(_side(sys.argv[1], int(sys.argv[2]))))
