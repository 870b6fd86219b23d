"""Recordings of calls, and queries on them."""

from __future__ import annotations

import gc
import re
import threading
from collections.abc import Callable

from pytest_opprof.capture.collector import Collector
from pytest_opprof.capture.recording import Recording

CALLS = frozenset({"ranges", "python"})


def recorded(run: Callable[[], object], *, sources: frozenset[str] = CALLS) -> Recording:
    """Record a function without a context manager, whose calls would be recorded too."""
    collector = Collector.instance()
    collector.open(sources=sources)
    gc.disable()  # callbacks of a collection are recorded, too
    try:
        collector.start()
        run()
        return collector.stop()
    finally:
        gc.enable()


def short(name: str) -> str:
    return re.sub(r".*\(\d+\): |<built-in (function|method) (\w+).*>", r"\2", name)


def rows(recording: Recording) -> list[int]:
    """The events of this thread: the test runner's other threads are recorded as well."""
    return [event for event in range(len(recording)) if recording.thread[event] == this_thread(recording)]


def this_thread(recording: Recording) -> int:
    mine = threading.get_native_id()
    return next((thread.index for thread in recording.threads if thread.os_tid == mine), -1)


def tree(recording: Recording, *, thread: int | None = None) -> list[str]:
    """Each call and range of a thread (this one by default), indented by a dot per caller."""
    thread = this_thread(recording) if thread is None else thread
    depths: list[int] = []
    lines = []
    for event in range(len(recording)):
        parent = recording.parent[event]
        depths.append(depths[parent] + 1 if parent >= 0 else 0)
        if recording.thread[event] == thread:
            lines.append("." * depths[-1] + short(recording.name(event)))
    return lines


def assert_balanced(recording: Recording) -> None:
    """Every call ended, within the one around it, and no time is counted twice."""
    for event in rows(recording):
        assert recording.duration_ns[event] >= 0, recording.name(event)
        assert 0 <= recording.self_ns[event] <= recording.duration_ns[event], recording.name(event)
        parent = recording.parent[event]
        if parent >= 0:
            assert recording.start_ns[parent] <= recording.start_ns[event]
            ends = [recording.start_ns[row] + recording.duration_ns[row] for row in (event, parent)]
            assert ends[0] <= ends[1]
