"""Compares writing an uncompressed Chrome trace with torch.profiler and json.dump, in time and size."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.child import measured
from benchmarks.table import Row, nanoseconds
from benchmarks.workloads import training_step

_STEPS = 80


def rows(*, quick: bool) -> list[Row]:
    """Both sides run the same steps; json.dump writes the events of our trace again."""
    steps = str(_STEPS // 8 if quick else _STEPS)
    ours, torch = measured("trace_export", "ours", steps), measured("trace_export", "torch", steps)
    each = f"{nanoseconds(ours['ns'] / ours['events'])} an event"
    what = f"Chrome trace of {ours['events']:,} events"
    size = Row(
        what=f"size of that file, against torch.profiler's of {torch['events']:,}",
        ours=f"{ours['bytes'] / 1e6:.1f} MB",
        peer=f"{torch['bytes'] / 1e6:.1f} MB",
        figure=ours["bytes"] / torch["bytes"],
        at_most=1.0,
    )
    speed = [
        Row(
            what=what,
            ours=f"{nanoseconds(ours['ns'])} ({each})",
            peer=f"{name} {nanoseconds(ns)}",
            figure=ns / ours["ns"],
            at_least=bound,
        )
        for name, ns, bound in (("torch.profiler", torch["ns"], 5), ("json.dump", ours["json_ns"], 20))
    ]
    return [*speed, size]


def _exported(profiler: Any, path: Path) -> int:
    start = time.process_time_ns()
    profiler.export_chrome_trace(str(path))
    return time.process_time_ns() - start


def _side(name: str, steps: int) -> dict[str, float]:
    loop = training_step()
    if name == "ours":
        from pytest_opprof import profile  # noqa: PLC0415  # one side only in each process
    else:
        from torch.profiler import profile  # type: ignore[no-redef]  # noqa: PLC0415
    make: Any = profile
    with tempfile.TemporaryDirectory() as folder:
        path, best = Path(folder) / "trace.json", float("inf")
        for _ in range(5):  # a new session each time: torch can export one only once
            profiler = make()
            with profiler:
                loop(steps)
            best = min(best, _exported(profiler, path))
        document = json.loads(path.read_text(encoding="utf-8"))
        written = {"ns": best, "bytes": path.stat().st_size, "events": len(document["traceEvents"])}
        if name == "torch":
            return written
        start = time.process_time_ns()
        with (Path(folder) / "again.json").open("w", encoding="utf-8") as file:
            json.dump(document, file)
        return {**written, "json_ns": time.process_time_ns() - start}


if __name__ == "__main__":
    print(json.dumps(_side(sys.argv[1], int(sys.argv[2]))))
