"""Compares summing up the traces of many ranks with HolisticTraceAnalysis; measures the largest jobs."""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import sys
import tempfile
import time
from collections import defaultdict
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.child import measured
from benchmarks.memory import memory_so_far_kib, status_kib
from benchmarks.table import Row, nanoseconds

if TYPE_CHECKING:
    from pytest_opprof.fleet.tables import Window

_RANKS: Final = 64
_MOST_RANKS: Final = 4096
_IDS: Final = frozenset({"External id", "correlation", "Ev Idx", "Sequence number"})
_EXAMPLES: Final = Path(__file__).parent.parent / "examples"


def rows(*, quick: bool) -> list[Row]:
    """Processor time and memory, with a process per side that reads the same ranks."""
    ranks = 8 if quick else _RANKS
    with tempfile.TemporaryDirectory() as folder:
        _write_job(Path(folder), ranks)
        ours, plain = _by_turns(folder, "ours", "plain")
        hta = measured("fleet", "hta", folder)
        compared = measured("fleet", "compared", folder)
    with tempfile.TemporaryDirectory() as folder:
        _write_long_job(Path(folder), ranks=2 if quick else 12)
        loop, dask = _by_turns(folder, "loop", "dask")
    with tempfile.TemporaryDirectory() as folder:
        _write_long_job(Path(folder), ranks=1, again=16 if quick else 83)
        (size,) = (path.stat().st_size for path in Path(folder).iterdir())
        large = measured("fleet", "large", folder)
    return [
        *_beside_hta(ranks, ours, hta),
        Row(
            what="the same to tables, beside reading and grouping alone",
            ours=nanoseconds(ours["map_ns"]),
            peer=f"load_trace, groups {nanoseconds(plain['ns'])}",
            figure=ours["map_ns"] / plain["ns"],
            at_most=1.3,
        ),
        Row(
            what="traces of 90 MB to tables by a local Dask cluster, once it is up",
            ours=f"{nanoseconds(dask['ns'])} of {dask['cores']:.0f} cores",
            peer=f"a loop {nanoseconds(loop['ns'])} of one",
            figure=dask["ns"] * dask["cores"] / loop["ns"],
            at_most=1.15,
        ),
        Row(
            what=f"a trace of {size / 1e6:.0f} MB to tables: memory of the process, at its highest",
            ours=f"{large['kib'] / 1024:.0f} MiB, {nanoseconds(large['ns'])}",
            peer="none",
            figure=large["kib"] / 1024,
            at_most=400,
            unit="MiB",
        ),
        *_of_a_diff(compared),
        *_stragglers(),
    ]


def _by_turns(folder: str, *sides: str) -> list[dict[str, float]]:
    """Each side's fastest of five turns, because other load on a machine lasts for minutes."""
    turns = [[measured("fleet", side, folder) for side in sides] for _ in range(5)]
    return [min(found, key=itemgetter("ns")) for found in zip(*turns, strict=True)]


def _beside_hta(ranks: int, ours: dict[str, float], hta: dict[str, float]) -> list[Row]:
    return [
        Row(
            what=f"{ranks} ranks: overlap, idle time, collectives, stragglers",
            ours=nanoseconds(ours["ns"]),
            peer=f"HolisticTraceAnalysis {nanoseconds(hta['ns'])}",
            figure=hta["ns"] / ours["ns"],
            at_least=10,
        ),
        Row(
            what="memory for it, at its highest",
            ours=f"{ours['kib'] / 1024:.0f} MiB",
            peer=f"HolisticTraceAnalysis {hta['kib'] / 1024:.0f} MiB",
            figure=ours["kib"] / hta["kib"],
            at_most=1 / 3,
        ),
    ]


def _of_a_diff(compared: dict[str, float]) -> list[Row]:
    return [
        Row(
            what=f"a diff of 2 x {compared['ranks']:,.0f} ranks, in one thread",
            ours=nanoseconds(compared["ns"]),
            peer="none",
            figure=compared["ns"] / 1e9,
            at_most=10,
            unit="s",
        ),
        Row(
            what="memory of that process, at its highest",
            ours=f"{compared['kib'] / 1024:.0f} MiB",
            peer="none",
            figure=compared["kib"] / 1024,
            at_most=1024,
            unit="MiB",
        ),
    ]


def _stragglers() -> list[Row]:
    """The number of simulated jobs in which exactly the slower rank is named, or none if all are equal."""
    from pytest_opprof.fleet.stragglers import late_ranks  # noqa: PLC0415

    model, rows = _model(), []
    for slower, jobs, bound in ((0.0, 200, 200), (0.08, 40, 39), (0.02, 40, None)):
        wanted = [13] if slower else []
        named = [
            [one.rank for one in late_ranks(model.lateness(model.Plan(slower={13: 1 + slower}, seed=seed)))]
            for seed in range(jobs)
        ]
        right = named.count(wanted)
        rows.append(
            Row(
                what=f"simulated jobs of {_RANKS} ranks, one computes {slower:.0%} slower",
                ours=f"{right} of {jobs} name it alone" if slower else f"{right} of {jobs} name nobody",
                peer="none",
                figure=right,
                at_least=bound,
                unit=f"of {jobs}",
            )
        )
    return rows


def _write_job(folder: Path, ranks: int) -> None:
    model = _model()
    plan = model.Plan(ranks=ranks, slower={13 % ranks: 1.08})
    model.write_job(_EXAMPLES / "traces" / "nccl_rank.json.gz", folder, plan)


def _write_long_job(folder: Path, *, ranks: int, again: int = 16) -> None:
    """Write traces as long as real ones, by repeating the events of a generated one."""
    gap_us, next_ids = 1_000_000, 10**6
    _write_job(folder, ranks)
    for path in sorted(folder.iterdir()):
        trace = json.loads(path.read_text(encoding="utf-8"))
        events = trace.pop("traceEvents")
        timed = [event for event in events if event.get("ph") == "X"]
        span = max(event["ts"] + event["dur"] for event in timed) - min(event["ts"] for event in timed)
        with path.open("w", encoding="utf-8") as file:
            file.write(f'{json.dumps(trace)[:-1]}, "traceEvents": [')
            file.write(", ".join(map(json.dumps, events)))
            for more in range(1, again):
                for event in timed:
                    args = {
                        key: value + more * next_ids if key in _IDS and isinstance(value, int) else value
                        for key, value in event.get("args", {}).items()
                    }
                    moved = event["ts"] + more * (span + gap_us)
                    file.write(f", {json.dumps({**event, 'ts': moved, 'args': args})}")
            file.write("]}")


def _model() -> Any:
    """The module examples/fleet_job.py, which generates jobs of many ranks."""
    spec = importlib.util.spec_from_file_location("fleet_job", _EXAMPLES / "fleet_job.py")
    assert spec is not None
    assert spec.loader is not None
    model = importlib.util.module_from_spec(spec)
    sys.modules["fleet_job"] = model  # its dataclasses look it up
    spec.loader.exec_module(model)
    return model


def _processor_ns() -> int:
    """Of this process and its child processes, because HolisticTraceAnalysis reads in children."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time_ns() + round((children.ru_utime + children.ru_stime) * 1e9)


def _ours(folder: str) -> dict[str, float]:
    import duckdb  # noqa: F401, PLC0415  # imported before the clock starts, like the other side's libraries
    import fsspec.core  # noqa: F401, PLC0415
    import pyarrow.parquet  # noqa: PLC0415

    from pytest_opprof.fleet.ingest import ingest  # noqa: PLC0415  # one side only in each process
    from pytest_opprof.fleet.summary import summarize  # noqa: PLC0415
    from pytest_opprof.fleet.tables import windows_of  # noqa: PLC0415

    pyarrow.array([0])  # imports pandas, which HolisticTraceAnalysis has imported by then too
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


def _loop(folder: str) -> dict[str, float]:
    """The same function over the same batches as with Dask, one after the other."""
    with ThreadPoolExecutor(1) as executor:
        return {"ns": _ingested_ns(folder, executor)}


def _large(folder: str) -> dict[str, float]:
    """One file, read once, as a worker reads it."""
    from pytest_opprof.fleet.ingest import ingest  # noqa: PLC0415

    start = time.perf_counter_ns()
    with tempfile.TemporaryDirectory() as tables, ThreadPoolExecutor(1) as executor:
        ingest(folder, tables, job="bench", executor=executor)
    return {"ns": time.perf_counter_ns() - start, "kib": status_kib("VmHWM")}


def _dask(folder: str) -> dict[str, float]:
    """A process per core."""
    from pytest_opprof.fleet.engine import engine  # noqa: PLC0415

    cores = len(os.sched_getaffinity(0))
    with engine(workers=cores) as running:
        return {"ns": _ingested_ns(folder, running.executor), "cores": cores}


def _ingested_ns(folder: str, executor: Executor) -> int:
    """The fastest of two rounds, after one that pays for imports."""
    from pytest_opprof.fleet.ingest import ingest  # noqa: PLC0415

    took = []
    with tempfile.TemporaryDirectory() as tables:
        for _ in range(3):
            start = time.perf_counter_ns()
            ingest(folder, tables, job="bench", executor=executor)
            took.append(time.perf_counter_ns() - start)
    return min(took[1:])


def _compared(folder: str) -> dict[str, float]:
    """Compare two jobs made by repeating this one's ranks, in parts as an ingest would write them."""
    from pytest_opprof.fleet.difference import compare  # noqa: PLC0415
    from pytest_opprof.fleet.ingest import ingest  # noqa: PLC0415
    from pytest_opprof.fleet.tables import Window, windows_of  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as tables, ThreadPoolExecutor(1) as executor:
        files = ingest(folder, tables, job="bench", executor=executor)
        for job in ("base", "head"):
            _multiply(windows_of(tables, "bench")[0], Window(root=tables, job=job, window="0"), len(files))
        start = time.process_time_ns()
        found = compare(windows_of(tables, "base"), windows_of(tables, "head"))
        took = time.process_time_ns() - start
    assert not found.problems, found.problems
    return {"ns": took, "kib": status_kib("VmHWM"), "ranks": _MOST_RANKS}


def _multiply(source: Window, to: Window, ranks: int) -> None:
    """Write a job of `_MOST_RANKS` ranks by repeating those of another one."""
    import pyarrow.parquet  # noqa: PLC0415

    from pytest_opprof.fleet.rank_rows import COLUMNS, TABLES  # noqa: PLC0415

    files = source.manifest()
    tables = {
        table: [
            row
            for path in source.parts(table, (one.part for one in files))
            for row in pyarrow.parquet.read_table(path).to_pylist()
        ]
        for table in TABLES
    }
    written = []
    per_part = 16
    for first in range(0, _MOST_RANKS, per_part):
        part = f"part-{first:07d}.parquet"
        numbers = range(first, first + per_part)
        for table, rows in tables.items():
            of_rank = defaultdict(list)
            for row in rows:
                of_rank[row["rank"]].append(row)
            more = [
                tuple({**row, "rank": number, "file": number}[name] for name in COLUMNS[table])
                for number in numbers
                for row in of_rank[number % ranks]
            ]
            to.write(table, part, more)
        written += [
            replace(
                files[number % ranks],
                file=number,
                rank=number,
                part=part,
                world_size=_MOST_RANKS,
                path=f"{number}",
            )
            for number in numbers
        ]
    to.write_manifest(written)


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
    children_kib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return {"ns": _processor_ns() - start, "kib": status_kib("VmHWM") - before + children_kib}


if __name__ == "__main__":
    sides = {
        "ours": _ours,
        "plain": _plain,
        "hta": _hta,
        "loop": _loop,
        "large": _large,
        "dask": _dask,
        "compared": _compared,
    }
    print(json.dumps(sides[sys.argv[1]](sys.argv[2])))
