"""Traces of Kineto and of ourselves, and the databases of nvprof and of Nsight Systems."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Final

from fuzz.databases import write_database
from fuzz.target import Target, put, refusals_end_here

from pytest_opprof.analysis.evaluation import BasicEvaluation
from pytest_opprof.events.event_list import EventList
from pytest_opprof.report.trace_tables import difference_lines, step_lines, trace_title
from pytest_opprof.results.files import read_run, write_run
from pytest_opprof.results.trace_run import run_from_trace
from pytest_opprof.traces.difference import difference
from pytest_opprof.traces.kineto import TraceFile, load_trace
from pytest_opprof.traces.merged import write_merged
from pytest_opprof.traces.nsys import load_nsys
from pytest_opprof.traces.nvprof import load_nvprof
from pytest_opprof.traces.speedscope import export_speedscope

_MOST_EVENTS: Final = 100_000
_MOST_BYTES: Final = 1 << 26
_KINETO: Final = (
    *(
        "cpu_op",
        "user_annotation",
        "kernel",
        "cuda_runtime",
        "cuda_driver",
        "gpu_memcpy",
        "cpu_instant_event",
    ),
    *("python_function", "X", "i", "b", "e", "s", "f", "M", "[memory]", "ProfilerStep#1", "thread_name"),
    *(
        "Input Dims",
        "Input type",
        "External id",
        "correlation",
        "Sequence number",
        "Fwd thread id",
        "finished",
    ),
    *("Call stack", "Module Hierarchy", "C++ stack", "Bytes", "Addr", "grid", "block", "[[2, 3], []]"),
)
_CUPTI: Final = (
    *("StringTable", "CUPTI_ACTIVITY_KIND_MARKER", "CUPTI_ACTIVITY_KIND_RUNTIME", "StringIds", "NVTX_EVENTS"),
    *(
        "CUPTI_ACTIVITY_KIND_KERNEL",
        "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL",
        "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
        "cudaLaunchKernel_v7000",
        "_ZN2at6native4gemmEv",
        "_Z1f1aIiiE",
    ),
)


def use_events(events: EventList) -> None:
    """Use events as users do."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for by_shapes, stack in ((False, 0), (True, 3)):
            events.key_averages(by_shapes, stack).table(row_limit=-1)
            events.key_averages(by_shapes, stack, compat="torch").table(sort_by="count")
    events.total_average()
    for event in events:
        assert event.cpu_time_total_ns >= 0
        assert repr(event)


def _use_trace(trace: TraceFile, folder: Path) -> None:
    use_events(trace.events())
    trace_title(trace)
    with refusals_end_here():
        step_lines(trace, width=100)
    with refusals_end_here():
        trace.events().export_stacks(folder / "stacks.txt", "self_cpu_time_total")
    export_speedscope(trace.recording, folder / "speedscope.json")
    with refusals_end_here():
        trace.metadata.get("deviceProperties")
        made = run_from_trace(trace)
        write_run(folder / "run.json", made)
        assert read_run(folder / "run.json") == made
    with refusals_end_here():
        evaluation = BasicEvaluation(trace)
        evaluation.get_optimizable_events(2, print_enable=False)


def _read_trace(data: bytes, folder: Path) -> None:
    path, again = put(folder, "trace.json", data), folder / "again.json"
    trace = load_trace(path, max_events=_MOST_EVENTS, max_bytes=_MOST_BYTES)
    _use_trace(trace, folder)
    trace.export_chrome_trace(again)
    written = load_trace(again)
    assert len(written.recording) == len(trace.recording)
    found = difference(trace.recording, written.recording)
    list(difference_lines(found, rows=10, width=100))
    write_merged(trace, written, folder / "merged.json", found=found)
    load_trace(folder / "merged.json")


def _read_nvprof(data: bytes, folder: Path) -> None:
    path = folder / "nvprof.sqlite"
    if write_database(path, data):
        use_events(load_nvprof(path))


def _read_nsys(data: bytes, folder: Path) -> None:
    path = folder / "nsys.sqlite"
    if write_database(path, data):
        use_events(load_nsys(path))


TARGETS: Final = (
    Target(name="trace", read=_read_trace, words=_KINETO),
    Target(name="nvprof", read=_read_nvprof, words=_CUPTI),
    Target(name="nsys", read=_read_nsys, words=_CUPTI),
)
