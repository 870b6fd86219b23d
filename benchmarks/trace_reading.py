"""Compares reading a Kineto trace of 100 MB into key averages with HolisticTraceAnalysis."""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from benchmarks.child import least
from benchmarks.memory import memory_so_far_kib, status_kib
from benchmarks.table import Row, nanoseconds

_BYTES: Final = 100_000_000
_PROCESSES: Final = 3
# Bytes of one event in the columns of a result (native/include/opprof_result.h, op_columns).
_COLUMN_BYTES: Final = 4 * 8 + 7 * 4 + 2 + 3


def rows(*, quick: bool) -> list[Row]:
    """Each side's least processor time and memory over some processes; the sides take turns."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rank_0.json"
        write_trace(path, size=_BYTES // 4 if quick else _BYTES)
        ours, hta = least("trace_reading", ("ours", "hta"), str(path), rounds=1 if quick else _PROCESSES)
        size = path.stat().st_size
    columns = ours["events"] * _COLUMN_BYTES
    return [
        Row(
            what=f"a trace of {size / 1e6:.0f} MB ({ours['events']:,.0f} events) into key averages",
            ours=nanoseconds(ours["ns"]),
            peer=f"HolisticTraceAnalysis {nanoseconds(hta['ns'])}",
            figure=hta["ns"] / ours["ns"],
            at_least=10,
        ),
        Row(
            what="memory for it, at its highest, beside its columns",
            ours=f"{ours['kib'] / 1024:.0f} MiB",
            peer=f"columns {columns / 2**20:.0f} MiB, HolisticTraceAnalysis {hta['kib'] / 1024:.0f} MiB",
            figure=ours["kib"] * 1024 / columns,
            at_most=3,
        ),
    ]


def write_trace(path: Path, *, size: int) -> None:
    """Write a trace like that of a training on one GPU, of at least so many bytes."""
    with path.open("w", encoding="utf-8") as file:
        file.write('{"schemaVersion": 1, "deviceProperties": [], "distributedInfo": {"rank": 0},\n')
        file.write('"displayTimeUnit": "ms", "baseTimeNanoseconds": 1735632360000000000, "traceEvents": [\n')
        for step in itertools.count():
            for event in _step(step):
                file.write(json.dumps(event) + ",\n")
            if file.tell() >= size:
                break
        file.write('{"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 0}]}\n')


# A few long steps, because HolisticTraceAnalysis goes through all events once per step.
_LAYERS: Final = 5_000
_STEP_US: Final = 5_000_000


def _step(step: int) -> Iterator[dict[str, object]]:
    start_us = 4_203_669_603_000 + step * _STEP_US
    numbers = itertools.count(step * _LAYERS * 8 + 1)
    place = {"pid": 597913, "tid": 597913}
    args = {"External id": next(numbers), "Record function id": 0, "Ev Idx": step}
    name = f"ProfilerStep#{step}"
    yield _event("user_annotation", name, start_us, _STEP_US - 1.5, place=place, args=args)
    for layer in range(_LAYERS):
        at_us = start_us + 10 + layer * 900
        yield from _layer(at_us, layer, numbers, place)


def _layer(
    at_us: float, layer: int, numbers: Iterator[int], place: dict[str, int]
) -> Iterator[dict[str, object]]:
    last = 0
    for depth, name in enumerate(("aten::linear", "aten::addmm", f"aten::op{layer % 40}")):
        last = next(numbers)
        args = {
            "External id": last,
            "Record function id": 0,
            "Sequence number": last,
            "Fwd thread id": 0,
            "Ev Idx": last,
        }
        began_us, took_us = round(at_us + depth + 0.123, 3), round(600 - 100.25 * depth, 3)
        yield _event("cpu_op", name, began_us, took_us, place=place, args=args)
    call = {"External id": last, "cbid": 211, "correlation": last}
    yield _event("cuda_runtime", "cudaLaunchKernel", at_us + 20.5, 9.25, place=place, args=call)
    yield {"ph": "s", "id": last, **place, "ts": at_us + 20.5, "cat": "ac2g", "name": "ac2g"}
    kernel = {
        "External id": last,
        "queued": 0,
        "device": 0,
        "context": 1,
        "stream": 7,
        "correlation": last,
        "registers per thread": 32,
        "shared memory": 0,
        "blocks per SM": 0.592593,
        "warps per SM": 2.37037,
        "grid": [64, 1, 1],
        "block": [128, 1, 1],
        "est. achieved occupancy %": 4,
    }
    name, stream = f"void at::native::kernel_{layer % 20}<float, 4>(int, float)", {"pid": 0, "tid": 7}
    yield _event("kernel", name, at_us + 50.75, 700.5, place=stream, args=kernel)
    flow = {"ph": "f", "id": last, **stream, "ts": at_us + 50.75}
    yield {**flow, "cat": "ac2g", "name": "ac2g", "bp": "e"}


def _event(
    category: str, name: str, at_us: float, took_us: float, *, place: dict[str, int], args: dict[str, Any]
) -> dict[str, object]:
    return {"ph": "X", "cat": category, "name": name, **place, "ts": at_us, "dur": took_us, "args": args}


def _ours(path: str) -> dict[str, float]:
    from pytest_opprof import load_trace  # noqa: PLC0415  # one side only in each process

    before = memory_so_far_kib()
    start = time.process_time_ns()
    trace = load_trace(path)
    averages = trace.key_averages()
    took = time.process_time_ns() - start
    assert sum(row.count for row in averages) == len(trace.recording)
    return {"ns": took, "kib": status_kib("VmHWM") - before, "events": len(trace.recording)}


def _hta(path: str) -> dict[str, float]:
    from hta.common.trace import parse_trace_file  # noqa: PLC0415  # one side only in each process

    before = memory_so_far_kib()
    start = time.process_time_ns()
    _, frame, symbols = parse_trace_file(path)
    names = frame["name"].map(dict(enumerate(symbols.get_sym_table())))
    averages = frame.groupby(names)["dur"].agg(["count", "sum"])
    took = time.process_time_ns() - start
    assert averages["count"].sum() == len(frame)
    return {"ns": took, "kib": status_kib("VmHWM") - before, "events": len(frame)}


if __name__ == "__main__":
    print(json.dumps({"ours": _ours, "hta": _hta}[sys.argv[1]](sys.argv[2])))
