"""Report deaths of processes as text."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pytest_opprof.recovery.deaths import Death, LastSeen, death_of
from pytest_opprof.recovery.sessions import left_by, remove

_MOST_THREADS: Final = 8
_MOST_FRAMES: Final = 12
_SECOND_NS: Final = 10**9


def told(death: Death, *, trace: Path | None) -> Iterator[str]:
    """Lines on a death: the test, what ran last on each thread, and where the trace is, if any."""
    began = datetime.fromtimestamp(death.file.opened_ns / _SECOND_NS, tz=UTC)
    who = f"process {death.file.pid}" if death.note is None else death.note.node_id
    worker = f"{death.note.worker}, " if death.note and death.note.worker else ""
    where = "died" if death.note is None else f"did not end: {worker}process {death.file.pid} died in it"
    yield f"{who} {where} (began {began:%Y-%m-%d %H:%M:%S} UTC)"
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
