"""Base and head as one trace: positions of events, their display times, and marks."""

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from pytest_opprof import load_trace
from pytest_opprof.errors import DocumentError, StoreError
from pytest_opprof.traces.difference import difference
from pytest_opprof.traces.kineto import TraceFile
from pytest_opprof.traces.merged import write_merged

Event = dict[str, Any]


def op(name: str, start_us: float, duration_us: float, **members: Any) -> Event:
    event = {"ph": "X", "cat": "cpu_op", "name": name, "pid": 7, "tid": 7, "ts": start_us, "dur": duration_us}
    return event | members


def step(number: int, start_us: float, duration_us: float) -> Event:
    return op(f"ProfilerStep#{number}", start_us, duration_us, cat="user_annotation")


def written(path: Path, events: Iterable[Event]) -> TraceFile:
    path.write_text(json.dumps({"traceEvents": list(events)}), encoding="utf-8")
    return load_trace(path)


def merged(folder: Path, base: Iterable[Event], head: Iterable[Event], *, name: str = "both.json") -> Any:
    """The merged trace's object."""
    sides = {"base": base, "head": head}
    before, after = (written(folder / f"{side}.json", events) for side, events in sides.items())
    write_merged(before, after, folder / name, found=difference(before.recording, after.recording))
    data = (folder / name).read_bytes()
    return json.loads(gzip.decompress(data) if name.endswith(".gz") else data)


def shown(trace: Any, side: str) -> list[Event]:
    """The shown events of a side, without naming events."""
    events = trace["traceEvents"]
    names = {
        event["pid"]: event["args"]["name"]
        for event in events
        if event["ph"] == "M" and event["name"] == "process_name"
    }
    return [event for event in events if event["ph"] != "M" and names[event["pid"]].startswith(side)]


def places(events: Iterable[Event]) -> dict[str, tuple[float, float]]:
    return {event["name"]: (event["ts"], event["dur"]) for event in events}


def test_each_step_is_beside_its_counterpart(tmp_path: Path) -> None:
    base = [step(0, 100, 10), op("a", 102, 3), step(1, 110, 10), op("b", 112, 3)]
    head = [op("early", 50, 5), step(0, 70, 30), op("a", 72, 20), step(1, 100, 10), op("b", 102, 3)]
    trace = merged(tmp_path, base, head)
    # The head's first step begins 20 µs after its first event, and takes 20 µs longer.
    assert places(shown(trace, "base")) == {
        "ProfilerStep#0": (20, 10),
        "a": (22, 3),
        "ProfilerStep#1": (50, 10),
        "b": (52, 3),
    }
    assert places(shown(trace, "head")) == {
        "early": (0, 5),  # outside steps, so in no step's count
        "ProfilerStep#0": (20, 30),
        "a": (22, 20),
        "ProfilerStep#1": (50, 10),
        "b": (52, 3),
    }


def test_event_around_two_steps_is_stretched(tmp_path: Path) -> None:
    kernel: Event = {"cat": "kernel", "pid": 0, "tid": 3}
    base = [
        op("around", 0, 40),
        step(0, 10, 10),
        op("late", 15, 10, **kernel),
        step(1, 20, 10),
        op("inner", 25, 2),
    ]
    head = [step(0, 10, 30), step(1, 40, 10)]
    found = places(shown(merged(tmp_path, base, head), "base"))
    # the base waits 20 µs; a kernel keeps its duration
    assert found == {
        "around": (0, 60),
        "ProfilerStep#0": (10, 10),
        "late [gone]": (15, 10),
        "ProfilerStep#1": (40, 10),
        "inner [gone]": (45, 2),
    }


def test_calls_are_marked_as_they_are_counted_whatever_their_line(tmp_path: Path) -> None:
    def calls(line: int, number: int) -> list[Event]:
        name = f"m.py({line}): forward"
        return [op(name, line + 2 * at, 1, cat="python_function") for at in range(number)]

    trace = merged(tmp_path, [*calls(10, 2), *calls(80, 1)], [*calls(10, 5), *calls(80, 1)])
    assert {event["name"] for side in ("base", "head") for event in shown(trace, side)} == {
        "m.py(10): forward [+3]",
        "m.py(80): forward [+3]",
    }


def test_ops_with_other_counts_are_marked(tmp_path: Path) -> None:
    base = [step(0, 0, 100), op("same", 1, 2), op("more", 5, 2), op("gone", 9, 2)]
    head = [step(0, 0, 100), op("same", 1, 2), op("more", 5, 2), op("more", 8, 4), op("new", 20, 2)]
    trace = merged(tmp_path, base, head)
    events = {event["name"]: event for event in [*shown(trace, "base"), *shown(trace, "head")]}
    assert set(events) == {"ProfilerStep#0", "same", "more [+1]", "gone [gone]", "new [new]"}
    assert events["same"].keys().isdisjoint({"cname", "args"})
    assert events["same"]["cat"] == "cpu_op"
    assert (events["more [+1]"]["cat"], events["more [+1]"]["cname"]) == ("cpu_op,opprof.more", "terrible")
    assert (events["gone [gone]"]["cat"], events["gone [gone]"]["cname"]) == ("cpu_op,opprof.gone", "good")
    assert events["more [+1]"]["args"]["opprof"] == {
        "base calls": 1,
        "head calls": 2,
        "base self CPU us": 2,
        "head self CPU us": 6,
        "change of calls": "+1",
    }


def test_the_differences_are_listed(tmp_path: Path) -> None:
    base = [step(0, 0, 100), op("slower", 1, 2), op("more", 5, 2)]
    head = [step(0, 0, 100), op("slower", 1, 4), op("more", 5, 2), op("more", 8, 4), op("same", 20, 2)]
    listed = shown(merged(tmp_path, [*base, op("same", 20, 2)], head), "differences")
    assert [event["name"] for event in listed] == ["more: 1 -> 2 calls", "slower: 2.0 µs -> 4.0 µs"]
    assert listed[0]["ts"] + listed[0]["dur"] < listed[1]["ts"]


def test_long_list_says_what_it_omits(tmp_path: Path) -> None:
    trace = merged(tmp_path, [op("same", 0, 1)], [op(f"op {number}", number, 1) for number in range(120)])
    assert len(shown(trace, "differences")) == 100
    assert {"name": "ops, and 21 more"} in [event.get("args") for event in trace["traceEvents"]]


def test_op_annotation_and_kernel_of_one_name_are_separate(tmp_path: Path) -> None:
    base = [op("x", 0, 10), op("x", 20, 10, cat="user_annotation"), op("x", 20, 5, cat="kernel", pid=0)]
    trace = merged(tmp_path, base, [*base, op("x", 40, 10)])
    assert {event["cat"]: event["name"] for event in shown(trace, "head")} == {
        "cpu_op,opprof.more": "x [+1]",
        "user_annotation": "x",
        "kernel": "x",
    }


def test_devices_are_processes_and_arrows_lead_there(tmp_path: Path) -> None:
    launch = {"cat": "cuda_runtime", "args": {"correlation": 5}}
    kernel = {"cat": "kernel", "pid": 0, "tid": 3, "args": {"correlation": 5}}
    side = [op("cudaLaunchKernel", 1, 2, **launch), op("gemm", 5, 9, **kernel)]
    trace = merged(tmp_path, side, side)
    named = {
        event["args"]["name"]
        for event in trace["traceEvents"]
        if event["ph"] == "M" and "name" in event["args"]
    }
    assert {"base: CUDA 0", "head: CUDA 0", "stream 3", "thread 7"} <= named
    for name in ("base", "head"):
        arrows = [event for event in shown(trace, name) if event["cat"] == "ac2g"]
        assert [(event["ph"], event["ts"]) for event in arrows] == [("s", 0), ("f", 4)]
        assert len({event["id"] for event in arrows}) == 1
    assert len({event["id"] for event in trace["traceEvents"] if event.get("cat") == "ac2g"}) == 2


def test_threads_of_the_sides_are_never_one(tmp_path: Path) -> None:
    side = [op("a", 0, 1), op("b", 0, 1, tid=8), op("c", 0, 1, cat="kernel", pid=7, tid=8)]
    events = merged(tmp_path, side, side)["traceEvents"]
    assert len({(event["pid"], event["tid"]) for event in events if event["ph"] == "X"}) == 6
    assert len({event["tid"] for event in events if event["ph"] == "X"}) == 6


def test_asynchronous_events_of_the_sides_are_apart(tmp_path: Path) -> None:
    begun = {"ph": "b", "cat": "user_annotation", "name": "r", "pid": 7, "tid": 7, "ts": 1, "id": 1}
    side = [op("a", 0, 9), begun, begun | {"ph": "e", "ts": 5}, begun | {"name": "open", "id": 2}]
    trace = merged(tmp_path, side, side)
    pairs = [
        (event["ph"], event["name"], event["id"])
        for event in trace["traceEvents"]
        if event["ph"] in {"b", "e"}
    ]
    assert len(pairs) == 8  # open events end with their trace
    assert len({number for _, _, number in pairs}) == 4


def test_instants_stay_instants(tmp_path: Path) -> None:
    mark = {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 7, "tid": 7, "ts": 2}
    trace = merged(tmp_path, [op("a", 0, 9), mark], [op("a", 0, 9), mark])
    assert [event["s"] for event in trace["traceEvents"] if event["ph"] == "i"] == ["t", "t"]


def test_any_name_is_written_as_utf8(tmp_path: Path) -> None:
    name = 'quo"te\\ \x00 \ud800 日本'
    trace = merged(tmp_path, [op("a", 0, 1)], [op(name, 0, 1), op("a", 2, 1)], name="both.json.gz")
    assert r"\ud800" in shown(trace, "differences")[0]["name"]
    assert any(event["name"].endswith("日本 [new]") for event in shown(trace, "head"))
    json.dumps(trace, ensure_ascii=False).encode()


def test_merged_trace_can_be_read(tmp_path: Path) -> None:
    side = [step(0, 0, 50), op("a", 1, 4, args={"Input Dims": [[2]]})]
    merged(tmp_path, side, [*side, op("b", 10, 1)])
    again = load_trace(tmp_path / "both.json")
    assert {row.key: row.count for row in again.key_averages()} == {"ProfilerStep*": 2, "a": 2}
    assert again.metadata["opprof_base"].endswith("base.json")


def test_empty_trace_can_be_a_side(tmp_path: Path) -> None:
    trace = merged(tmp_path, [], [op("a", 0, 1)])
    assert shown(trace, "base") == []
    assert places(shown(trace, "head")) == {"a [new]": (0, 1)}


def test_impossible_times_are_refused(tmp_path: Path) -> None:
    far = 2e15
    base, head = [step(0, 0, 1), step(1, far, 1), step(2, far + 9, 1)], [step(0, 0, 1), step(1, 9, 1)]
    with pytest.raises(DocumentError, match="too far apart"):
        merged(tmp_path, base, [*head, step(2, far, 1)])


def test_unwritable_path_is_reported(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"the merged trace cannot be written: .*missing"):
        merged(tmp_path, [op("a", 0, 1)], [], name="missing/both.json")
