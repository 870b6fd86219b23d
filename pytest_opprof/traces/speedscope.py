"""Recordings as speedscope files (https://www.speedscope.app/file-format-schema.json)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any, Final

from pytest_opprof.capture.trace_file import write_text
from pytest_opprof.events.kineto_recording import RecordingView
from pytest_opprof.kinds import FLAG_ASYNC, FLAG_CREDITED

_SCHEMA: Final = "https://www.speedscope.app/file-format-schema.json"


def export_speedscope(recording: RecordingView, path: str | os.PathLike[str], *, name: str = "") -> None:
    """Write the ops, ranges and calls of each host thread as a speedscope file that shows this name.

    Times are integer nanoseconds from the window's start. Events that ended on another thread or out of order
    do not fit a flame graph and are left out. Events still open at the window's end end there.
    """
    write_text(path, _pieces(recording, name=name))


def _pieces(recording: RecordingView, *, name: str) -> Iterator[str]:
    frames: dict[str, int] = {}
    yield f'{{"$schema": {json.dumps(_SCHEMA)}, "exporter": "pytest-opprof", "name": {json.dumps(name)}'
    yield ', "activeProfileIndex": 0, "profiles": ['
    separator = ""
    for thread in recording.threads:
        if thread.device_type == 0:
            head = {
                "type": "evented",
                "name": f"thread {thread.os_tid} ({thread.name})",
                "unit": "nanoseconds",
                "startValue": 0,
                "endValue": recording.trace_end_ns,
            }
            yield f'{separator}{json.dumps(head)[:-1]}, "events": ['
            for number, event in enumerate(_Thread(recording, frames).events(thread.index)):
                yield f"{',' if number else ''}\n{json.dumps(event)}"
            yield "]}"
            separator = ",\n"
    shared = [{"name": frame} for frame in frames]
    yield f'], "shared": {{"frames": {json.dumps(shared)}}}}}\n'


class _Thread:
    """The nested begins and ends of one thread. `frames` numbers the names met so far."""

    def __init__(self, recording: RecordingView, frames: dict[str, int]) -> None:
        self._recording = recording
        self._frames = frames
        self._is_open: list[tuple[int, int, int]] = []  # row (-1: a call from before the window), frame, end
        self._at = 0

    def events(self, thread: int) -> Iterator[dict[str, Any]]:
        recording = self._recording
        for call in recording.open_calls:
            if call.thread == thread:
                end_ns = recording.trace_end_ns if call.end_ns < 0 else call.end_ns
                yield self._begin(-1, call.name, 0, end_ns)
        for row, on in enumerate(recording.thread):
            if on != thread or recording.flags[row] & (FLAG_ASYNC | FLAG_CREDITED):
                continue
            start_ns, parent = recording.start_ns[row], recording.parent[row]
            while self._is_open and self._is_over(parent, start_ns):
                yield self._end()
            duration_ns = recording.duration_ns[row]
            end_ns = recording.trace_end_ns if duration_ns < 0 else start_ns + duration_ns
            yield self._begin(row, recording.name(row), start_ns, end_ns)
        while self._is_open:
            yield self._end()

    def _is_over(self, parent: int, start_ns: int) -> bool:
        """Whether the last open event does not contain an event of this parent and start."""
        row, _, end_ns = self._is_open[-1]
        return row != parent or (row < 0 and end_ns <= start_ns)

    def _begin(self, row: int, name: str, start_ns: int, end_ns: int) -> dict[str, Any]:
        frame = self._frames.setdefault(name, len(self._frames))
        self._is_open.append((row, frame, end_ns))
        return self._event("O", frame, start_ns)

    def _end(self) -> dict[str, Any]:
        _, frame, end_ns = self._is_open.pop()
        return self._event("C", frame, end_ns)

    def _event(self, kind: str, frame: int, at_ns: int) -> dict[str, Any]:
        # A range may outlive the call from before the window that it began in, which then ends with it.
        self._at = max(self._at, at_ns)
        return {"type": kind, "frame": frame, "at": self._at}
