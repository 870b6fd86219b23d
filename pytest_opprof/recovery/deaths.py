"""A process that died while it ran a test: what each of its threads was running, as values and as text."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from pytest_opprof.baselines.keys import CRASHES
from pytest_opprof.baselines.traces import ignored_by_git
from pytest_opprof.capture.session_files import recovered
from pytest_opprof.errors import CaptureBusyError, CollectorError, RecoveryError, StoreError
from pytest_opprof.recovery.sessions import Note, left_by, remove
from pytest_opprof.results.names import trace_stem
from pytest_opprof.units import NS_IN_S

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_opprof.capture.recording import Recording
    from pytest_opprof.capture.session_files import SessionFile

_OPEN: Final = re.compile(rb"\xff{8}")  # a duration of -1
_DURATION_BYTES: Final = 8
_MOST_THREADS: Final = 8
_MOST_FRAMES: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class LastSeen:
    """What one thread was running, or ran last, when its process died."""

    thread: str  # the thread, by the system's number
    stack: tuple[str, ...]  # the open ranges and ops, innermost first
    last: str  # the event that began last; if some are open, the innermost of them or one inside it


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """A process that died."""

    file: SessionFile
    note: Note | None  # what it wrote on its test; None for a process that ran no tests
    threads: tuple[LastSeen, ...] = ()  # its threads, those with open events first
    recording: Recording | None = None  # its recording; None without a readable one
    problem: str = ""  # why there is no recording; empty if there is one

    @property
    def test(self) -> str:
        """The test that ran, or else the process."""
        return self.note.node_id if self.note else f"process {self.file.pid}"


def death_of(file: SessionFile) -> Death:
    """Read what a dead process left; a problem with the recording is reported, because the death matters."""
    note = Note.of(file.note)
    if not file.was_recording:
        return Death(file=file, note=note, problem="nothing was being recorded")
    try:
        recording = recovered(file.path)
    except (RecoveryError, CollectorError, CaptureBusyError) as error:
        return Death(file=file, note=note, problem=f"the recording cannot be read: {error}")
    threads = sorted(_threads(recording, pid=file.pid), key=lambda thread: not thread.stack)
    return Death(file=file, note=note, threads=tuple(threads), recording=recording)


def _threads(recording: Recording, *, pid: int) -> Iterator[LastSeen]:
    opened: dict[int, list[str]] = {}
    # A search through bytes is fast: a few of many millions of events may be open.
    for match in _OPEN.finditer(recording.duration_ns.cast("B")):
        event = match.start() // _DURATION_BYTES
        opened.setdefault(recording.thread[event], []).append(recording.name(event))
    for thread in recording.threads:
        after = bisect_right(recording.thread, thread.index)
        if after == bisect_left(recording.thread, thread.index):
            continue
        yield LastSeen(
            # Only a living process can be asked for its threads' names.
            thread="main thread" if thread.os_tid == pid else f"thread {thread.os_tid}",
            stack=tuple(reversed(opened.get(thread.index, []))),
            last=recording.name(after - 1),
        )


def write_trace(death: Death, folder: Path) -> Path | None:
    """Write the Chrome trace of a death's recording, ``test_step-9f3c-4711.json.gz``; None without one.

    Raises `StoreError` if it cannot be written.
    """
    if death.recording is None:
        return None
    path = folder / f"{trace_stem(death.test)}-{death.file.pid}.json.gz"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        death.recording.write_chrome_trace(path)
    except OSError as error:
        raise StoreError(f"the trace {path} cannot be written: {error}") from error
    return path


def keep_trace(death: Death, project: Path) -> Path | None:
    """Write the trace to ``crashes`` in a project's ``.opprof``, where git ignores it; see `write_trace`."""
    folder = project / CRASHES
    if death.recording is not None:
        ignored_by_git(folder)
    return write_trace(death, folder)


def told(death: Death, *, trace: Path | None) -> Iterator[str]:
    """Lines on a death: the test, what ran last on each thread, and where the trace is, if any."""
    began = datetime.fromtimestamp(death.file.opened_ns / NS_IN_S, tz=UTC)
    worker = f"{death.note.worker}, " if death.note and death.note.worker else ""
    where = "died" if death.note is None else f"did not end: {worker}process {death.file.pid} died in it"
    yield f"{death.test} {where} (began {began:%Y-%m-%d %H:%M:%S} UTC)"
    if death.recording is None:
        yield f"    {death.problem}"
        return
    for thread in death.threads[:_MOST_THREADS]:
        yield f"    {_of_thread(thread)}"
    more = len(death.threads) - _MOST_THREADS
    if more > 0:
        yield f"    and {more} more threads"
    stats = death.recording.stats
    lacks = ""
    if stats.dropped:
        which = "older ones were forgotten" if death.file.keeps_last else "more had no room"
        lacks = f", at least {stats.dropped:,} {which}"
    yield f"    {stats.events:,} events{lacks}" + (f"; trace: {trace}" if trace else "")


def last_words(pid: int) -> list[str]:
    """Lines on what a dead process of ours was running; its session files are removed."""
    lines: list[str] = []
    for file in left_by(pid):
        death = death_of(file)
        if death.note or death.recording:
            lines += told(death, trace=None)
        remove(file)
    return lines


def _of_thread(thread: LastSeen) -> str:
    if not thread.stack:
        return f"{thread.thread}: in nothing; last: {thread.last}"
    stack = " < ".join(thread.stack[:_MOST_FRAMES])
    more = f" < {len(thread.stack) - _MOST_FRAMES} more" if len(thread.stack) > _MOST_FRAMES else ""
    inside = "" if thread.last == thread.stack[0] else f" (last inside: {thread.last})"
    return f"{thread.thread}: {stack}{more}{inside}"
