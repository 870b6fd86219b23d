"""The traces of many ranks, read and summed up: ours against HolisticTraceAnalysis."""

from __future__ import annotations

import importlib.util
import json
import resource
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from benchmarks.child import measured
from benchmarks.memory import memory_so_far_kib, status_kib
from benchmarks.table import Bound, Row, nanoseconds

_RANKS: Final = 64
_EXAMPLES: Final = Path(__file__).parent.parent / "examples"


def rows(*, quick: bool) -> list[Row]:
    """Processor time and memory of a process a side, over the same ranks."""
    ranks = 8 if quick else _RANKS
    with tempfile.TemporaryDirectory() as folder:
        _write_job(Path(folder), ranks)
        ours, plain, hta = (measured("fleet", side, folder) for side in ("ours", "plain", "hta"))
    return [
        Row(
            what=f"{ranks} ranks: overlap, idle time, collectives, stragglers",
            ours=nanoseconds(ours["ns"]),
            peer=f"HolisticTraceAnalysis {nanoseconds(hta['ns'])}",
            figure=hta["ns"] / ours["ns"],
            bound=10,
        ),
        Row(
            what="memory for it, at its highest",
            ours=f"{ours['kib'] / 1024:.0f} MiB",
            peer=f"HolisticTraceAnalysis {hta['kib'] / 1024:.0f} MiB",
            figure=ours["kib"] / hta["kib"],
            bound=1 / 3,
            direction=Bound.AT_MOST,
        ),
        Row(
            what="the same to tables, beside reading and grouping alone",
            ours=nanoseconds(ours["map_ns"]),
            peer=f"load_trace, groups {nanoseconds(plain['ns'])}",
            figure=ours["map_ns"] / plain["ns"],
            bound=1.3,
            direction=Bound.AT_MOST,
        ),
    ]


def _write_job(folder: Path, ranks: int) -> None:
    spec = importlib.util.spec_from_file_location("fleet_job", _EXAMPLES / "fleet_job.py")
    assert spec is not None
    assert spec.loader is not None
    model = importlib.util.module_from_spec(spec)
    sys.modules["fleet_job"] = model  # its dataclasses look for it
    spec.loader.exec_module(model)
    plan = model.Plan(ranks=ranks, slower={13 % ranks: 1.08})
    model.write_job(_EXAMPLES / "traces" / "nccl_rank.json.gz", folder, plan)


def _processor_ns() -> int:
    """Of this process and those that it waited for: HolisticTraceAnalysis reads in its own."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time_ns() + round((children.ru_utime + children.ru_stime) * 1e9)


def _children_kib() -> float:
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss


def _ours(folder: str) -> dict[str, float]:
    import duckdb  # noqa: F401, PLC0415  # as the other side's libraries, before the clock runs
    import fsspec.core  # noqa: F401, PLC0415
    import pyarrow.parquet  # noqa: PLC0415

    from pytest_opprof.fleet.ingest import ingest  # noqa: PLC0415  # one side only in each process
    from pytest_opprof.fleet.summary import summarize  # noqa: PLC0415
    from pytest_opprof.fleet.tables import windows_of  # noqa: PLC0415

    pyarrow.array([0])  # imports pandas, which HolisticTraceAnalysis has by now too
    before = memory_so_far_kib()
    start = _processor_ns()
    with tempfile.TemporaryDirectory() as tables, ThreadPoolExecutor(1) as executor:
        files = ingest(folder, tables, job="bench", executor=executor)
        mapped = _processor_ns() - start
        summary = summarize(windows_of(tables, "bench")[0])
    took = _processor_ns() - start
    assert len(summary.ranks) == len(files)
    return {"ns": took, "map_ns": mapped, "kib": status_kib("VmHWM") - before}


def _plain(folder: str) -> dict[str, float]:
    from pytest_opprof import load_trace  # noqa: PLC0415

    start = time.process_time_ns()
    for path in sorted(Path(folder).iterdir()):
        assert load_trace(path).recording.groups()
    return {"ns": time.process_time_ns() - start}


def _hta(folder: str) -> dict[str, float]:
    from hta.trace_analysis import TraceAnalysis  # noqa: PLC0415

    before = memory_so_far_kib()
    start = _processor_ns()
    files = {int(path.stem.removeprefix("rank")): str(path) for path in Path(folder).iterdir()}
    analysis = TraceAnalysis(trace_files=files, include_last_profiler_step=True)
    analysis.get_temporal_breakdown(visualize=False)
    analysis.get_comm_comp_overlap(visualize=False)
    analysis.get_idle_time_breakdown(ranks=list(files), visualize=False)
    analysis.get_potential_stragglers()
    return {"ns": _processor_ns() - start, "kib": status_kib("VmHWM") - before + _children_kib()}


if __name__ == "__main__":
    sides = {"ours": _ours, "plain": _plain, "hta": _hta}
    print(json.dumps(sides[sys.argv[1]](sys.argv[2])))
