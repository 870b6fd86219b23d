"""One step of a trace."""

import json
from pathlib import Path
from typing import Any

from pytest_opprof.traces.kineto import load_trace
from pytest_opprof.traces.step import Slice, SliceKind, first_step


def event(name: str, ts: float, dur: float, *, cat: str = "cpu_op", tid: int = 1) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur, "args": {}}


def written(folder: Path, *events: dict[str, Any]) -> Path:
    path = folder / "trace.json"
    path.write_text(json.dumps({"traceEvents": list(events)}), encoding="utf-8")
    return path


def two_steps(folder: Path) -> Path:
    return written(
        folder,
        event("ProfilerStep#3", 1_000, 100, cat="user_annotation"),
        event("aten::linear", 1_010, 50),
        event("aten::addmm", 1_020, 30),
        event("aten::relu", 1_070, 10),
        event("ProfilerStep#4", 1_100, 100, cat="user_annotation"),
        event("aten::mul", 1_110, 10),
    )


def test_the_first_step_has_its_own_events_alone(tmp_path: Path) -> None:
    step = first_step(load_trace(two_steps(tmp_path)), most=100)
    assert (step.number, step.duration_ns, step.left_out) == (3, 100_000, 0)
    assert [(one.name, one.depth) for one in step.slices] == [
        ("ProfilerStep#3", 0),
        ("aten::linear", 1),
        ("aten::addmm", 2),
        ("aten::relu", 1),
    ]
    assert step.slices[2] == Slice(
        lane=0, depth=2, name="aten::addmm", start_ns=20_000, duration_ns=30_000, kind=SliceKind.OP
    )


def test_where_there_is_no_room_the_shortest_are_left_out(tmp_path: Path) -> None:
    step = first_step(load_trace(two_steps(tmp_path)), most=2)
    assert [one.name for one in step.slices] == ["ProfilerStep#3", "aten::linear"]
    assert step.left_out == 2


def test_a_trace_without_steps_is_shown_whole(tmp_path: Path) -> None:
    path = written(tmp_path, event("aten::mul", 5, 2), event("aten::add", 9, 3, tid=2))
    step = first_step(load_trace(path), most=100)
    assert step.number is None
    assert step.duration_ns == 7_000
    assert len(step.lanes) == 2
    assert [(one.lane, one.start_ns) for one in step.slices] == [(0, 0), (1, 4_000)]


def test_what_ran_on_a_device_has_a_lane_of_its_own(tmp_path: Path) -> None:
    kernel = event("gemm", 1_060, 90, cat="kernel", tid=7) | {
        "pid": 0,
        "args": {"device": 0, "stream": 7, "correlation": 5},
    }
    launch = event("cudaLaunchKernel", 1_030, 5, cat="cuda_runtime") | {"args": {"correlation": 5}}
    path = written(
        tmp_path,
        event("ProfilerStep#0", 1_000, 100, cat="user_annotation"),
        event("aten::addmm", 1_010, 50),
        launch,
        kernel,
    )
    step = first_step(load_trace(path), most=100)
    assert step.lanes[1] == "device 0, stream 7"
    assert step.duration_ns == 150_000
    by_name = {one.name: one for one in step.slices}
    assert by_name["gemm"].kind is SliceKind.DEVICE
    assert by_name["cudaLaunchKernel"].kind is SliceKind.CALL


def test_a_trace_of_nothing_has_no_events(tmp_path: Path) -> None:
    step = first_step(load_trace(written(tmp_path)), most=100)
    assert (step.slices, step.lanes, step.duration_ns) == ((), (), 1)
