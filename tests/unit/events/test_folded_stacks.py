"""The cost of stacks: each call and event is read a few times, however deep it is."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_opprof.events import user_frames
from pytest_opprof.events.event_list import EventList
from pytest_opprof.events.folded_stacks import folded_lines
from pytest_opprof.events.kineto_recording import RecordingView
from pytest_opprof.events.user_frames import places_of_ops
from pytest_opprof.traces.kineto import load_trace

MOST_READS = 12  # reads of an event's parent, in all uses of its stack


class CountedReads(Sequence[int]):
    """A column that counts its reads."""

    def __init__(self, column: Sequence[int]) -> None:
        self._column = column
        self.reads = 0

    def __getitem__(self, row: Any) -> Any:
        self.reads += 1
        return self._column[row]

    def __len__(self) -> int:
        return len(self._column)


class CountedRecording:
    """A recording that counts the reads of its parents."""

    def __init__(self, recording: RecordingView) -> None:
        self._recording = recording
        self.parent = CountedReads(recording.parent)
        # one backward op somewhere, so that each event is checked for being inside one
        self.scope = [*recording.scope[:-1], 1]
        self.step = [0] * len(recording)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._recording, name)

    def __len__(self) -> int:
        return len(self._recording)


def nested(calls: int, ranges: int, leaves: int) -> Iterator[dict[str, Any]]:
    """Calls in calls, ranges in the innermost, and ops in the innermost range."""
    deep = calls + ranges
    end = 4 * deep + 2 * leaves
    for at in range(deep):
        kind = "python_function" if at < calls else "user_annotation"
        name = f"deep.py({at}): down" if at < calls else "range"
        yield {"ph": "X", "cat": kind, "name": name, "ts": at, "dur": end - 2 * at, "pid": 1, "tid": 1}
    for at in range(leaves):
        start = deep + 2 * at
        yield {"ph": "X", "cat": "cpu_op", "name": "leaf", "ts": start, "dur": 1, "pid": 1, "tid": 1}


def recording_of(tmp_path: Path, **shape: int) -> Any:  # for mypy, it passes as a recording
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": list(nested(**shape))}))
    return CountedRecording(load_trace(path).recording)


@pytest.mark.parametrize("shape", [{"calls": 1_500, "ranges": 1}, {"calls": 1, "ranges": 1_500}], ids=str)
def test_deep_events_are_looked_at_a_few_times(tmp_path: Path, shape: dict[str, int]) -> None:
    recording = recording_of(tmp_path, leaves=1_500, **shape)
    lines = list(folded_lines(EventList([recording]), "self_cpu_time_total", compat=None))
    assert len(lines) == shape["calls"]
    assert lines[-1].count(";") == lines[-1].count("down") - 1 == shape["calls"] - 1
    assert recording.parent.reads <= MOST_READS * len(recording)


def test_places_of_deep_ops_are_looked_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None of these calls is in a user's file, so each op would search all of them."""
    looked_at: list[object] = []
    monkeypatch.setattr(user_frames, "_place", lambda *frame: looked_at.append(frame))
    recording = recording_of(tmp_path, calls=1_500, ranges=0, leaves=1_500)
    assert places_of_ops(recording) == {}
    assert len(looked_at) == 1_500


def test_stacks_that_branch_are_written_whole(tmp_path: Path) -> None:
    """A line reuses from the one before it only the calls that both have."""
    spans = [("f", 0, 100), ("g", 1, 10), ("h", 2, 3), ("g", 12, 10), ("i", 30, 10), ("h", 31, 3)]
    path = tmp_path / "trace.json"
    events = [
        {"ph": "X", "cat": "python_function", "name": name, "ts": start, "dur": length, "pid": 1, "tid": 1}
        for name, start, length in spans
    ]
    path.write_text(json.dumps({"traceEvents": events}))
    lines = list(folded_lines(load_trace(path).events(), "self_cpu_time_total", compat=None))
    assert lines == ["f 70000\n", "f;g 17000\n", "f;g;h 3000\n", "f;i 7000\n", "f;i;h 3000\n"]


def test_assigned_stack_is_written(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": list(nested(calls=2, ranges=0, leaves=1))}))
    *calls, leaf = load_trace(path).events()
    leaf.stack = ["inner", "outer"]
    assert list(folded_lines([leaf], "self_cpu_time_total", compat=None)) == ["outer;inner 1000\n"]
    assert len(calls) == 2
