"""Records for a long time in one process: does it grow, leak or slow down?

``python -m benchmarks.soak`` prints a line each minute, then a table of bounds, and exits with 1 if one is
missed. By default it opens 10,000 windows of 100,000 events and runs for at least 20 minutes.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import sys
import tempfile
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from benchmarks.table import Row, as_text
from pytest_opprof import record_function
from pytest_opprof.capture.collector import Collector
from pytest_opprof.capture.recording import Recording

_EVENT_BYTES: Final = 32
_BUDGET: Final = 32 << 20  # bytes per window
_THREADS: Final = 4  # started and ended in each window
_NAMES: Final = 1_000
_OVER_BUDGET_EVERY: Final = 100  # windows
_OVER_BUDGET: Final = 3 * _BUDGET // _EVENT_BYTES  # events: three times as many as fit
_WARM: Final = 0.1  # share of the readings; after them nothing may grow
_MOST_GROWTH: Final = 1.05
_MOST_SLOWER: Final = 1.25  # recorded over unrecorded event: the last tenth against the first
_UNRECORDED: Final = 5_000  # events before each window
_BUDGET_SHARE: Final = 1.05
_MINUTE: Final = 60.0
_BLOCK: Final = 512  # bytes: the unit of st_blocks


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What the process holds at one time.

    Attributes:
        rss: Resident memory in bytes.
        disk: Bytes of its session and spill files.
        descriptors: Open file descriptors.
        threads: Threads, as the system counts them.
        objects: Objects that Python's garbage collector tracks.
        files: Files in its session folder.
    """

    rss: int
    disk: int
    descriptors: int
    threads: int
    objects: int
    files: int


def _numbers() -> array[float]:
    """An array, because lists of floats for 25,000 windows would themselves make memory grow."""
    return array("d")


@dataclass(slots=True, kw_only=True)
class Soak:
    """A run and its measurements.

    Attributes:
        folder: The folder of the session file.
        windows: Windows closed so far.
        events: Events recorded so far.
        costs: Nanoseconds per event, for each window.
        unrecorded: The same just before each window, when nothing is recorded: this machine's speed then.
        readings: Taken between windows, at most about a thousand times.
        largest: Most bytes of events in a window that exceeds its budget.
        disk: Most bytes on disk while a window is open.
        lost: Events that were neither recorded nor counted as dropped.
    """

    folder: Path
    windows: int = 0
    events: int = 0
    costs: array[float] = field(default_factory=_numbers)
    unrecorded: array[float] = field(default_factory=_numbers)
    readings: list[Reading] = field(default_factory=list)
    largest: int = 0
    disk: int = 0
    lost: int = 0

    def window(self, events: int, *, is_over_budget: bool) -> None:
        """Record so many events, and some more on short-lived threads, and check the result."""
        collector = Collector.instance()
        unrecorded = _cost(_UNRECORDED)
        collector.start()
        cost = _cost(events)
        on_threads = [threading.Thread(target=_record, args=(100,)) for _ in range(_THREADS)]
        for thread in on_threads:
            thread.start()
        for thread in on_threads:
            thread.join()
        self.disk = max(self.disk, _bytes_in(self.folder))
        recording = collector.stop()
        self._take(recording, expected=events + 100 * _THREADS, is_over_budget=is_over_budget)
        if not is_over_budget:
            self.costs.append(cost)
            self.unrecorded.append(unrecorded)
        self.windows += 1

    def _take(self, recording: Recording, *, expected: int, is_over_budget: bool) -> None:
        stats = recording.stats
        self.lost += abs(expected - stats.events - stats.dropped)
        self.events += stats.events
        if is_over_budget:
            self.largest = max(self.largest, stats.events * _EVENT_BYTES)
        elif stats.dropped or sum(group.count for group in recording.groups()) != expected:
            self.lost += expected

    def read(self) -> Reading:
        """Note what the process holds between two windows."""
        gc.collect()
        reading = Reading(
            rss=int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"),
            disk=_bytes_in(self.folder),
            descriptors=_entries(Path("/proc/self/fd")),
            threads=_entries(Path("/proc/self/task")),
            objects=len(gc.get_objects()) - len(self.readings),  # each reading is one more object
            files=_entries(self.folder),
        )
        self.readings.append(reading)
        return reading


def _cost(events: int) -> float:
    began = time.perf_counter_ns()
    _record(events)
    return (time.perf_counter_ns() - began) / events


def _record(events: int) -> None:
    names = [f"range {number}" for number in range(_NAMES)]
    whole, rest = divmod(events, _NAMES)
    for _ in range(whole):
        for name in names:
            with record_function(name):
                pass
    for name in names[:rest]:
        with record_function(name):
            pass


def _entries(folder: Path) -> int:
    return sum(1 for _ in folder.iterdir())


def _bytes_in(folder: Path) -> int:
    return sum(path.stat().st_blocks * _BLOCK for path in folder.iterdir())


def soak(
    folder: Path,
    *,
    windows: int,
    events: int,
    seconds: float,
    tell: Callable[[Soak, Reading, float], None],
) -> Soak:
    """Open at least so many windows, for at least so many seconds.

    Args:
        folder: An empty folder for the session file.
        windows: Minimum number of windows.
        events: Events in each window.
        seconds: Minimum duration.
        tell: Called each minute and at the end, with the run, the last reading and the seconds so far.
    """
    run = Soak(folder=folder)
    began = told = time.monotonic()
    while run.windows < windows or time.monotonic() - began < seconds:
        is_over = run.windows % _OVER_BUDGET_EVERY == _OVER_BUDGET_EVERY // 2
        run.window(_OVER_BUDGET if is_over else events, is_over_budget=is_over)
        if run.windows % max(windows // 1000, 1) == 0:
            reading = run.read()
            if time.monotonic() - told >= _MINUTE:
                told = time.monotonic()
                tell(run, reading, told - began)
    tell(run, run.read(), time.monotonic() - began)
    return run


def rows(run: Soak) -> Iterator[Row]:
    """The run's figures and their bounds."""
    warm = max(int(len(run.readings) * _WARM), 1)
    first, later = run.readings[:warm], run.readings[warm:] or run.readings[-1:]
    for what, value in (
        ("memory", lambda reading: reading.rss),
        ("bytes on disk between windows", lambda reading: reading.disk),
        ("Python objects", lambda reading: reading.objects),
    ):
        before, after = max(map(value, first)), max(map(value, later))
        yield Row(
            what=f"{what}: the most after the first tenth, against the most before",
            ours=f"{after:,}",
            peer=f"{before:,}",
            figure=after / before,
            at_most=_MOST_GROWTH,
        )
    for what, value in (
        ("descriptors", lambda reading: reading.descriptors),
        ("threads", lambda reading: reading.threads),
        ("files", lambda reading: reading.files),
    ):
        yield _none(f"{what} more than at first", max(map(value, later)) - max(map(value, first)))
    yield _none("events neither recorded nor counted as dropped", run.lost)
    tenth = max(len(run.costs) // 10, 1)
    times = [cost / unrecorded for cost, unrecorded in zip(run.costs, run.unrecorded, strict=True)]
    before, after = statistics.median(times[:tenth]), statistics.median(times[-tenth:])
    yield Row(
        what="an event, as a multiple of an unrecorded one: the last tenth against the first",
        ours=f"{after:.2f} ({statistics.median(run.costs[-tenth:]):.0f} ns)",
        peer=f"{before:.2f} ({statistics.median(run.costs[:tenth]):.0f} ns)",
        figure=after / before,
        at_most=_MOST_SLOWER,
    )
    if run.largest:
        yield Row(
            what="events kept of a window with three times its budget, against the budget",
            ours=f"{run.largest:,} bytes",
            peer=f"{_BUDGET:,} bytes",
            figure=run.largest / _BUDGET,
            at_most=_BUDGET_SHARE,
        )


def _none(what: str, figure: float) -> Row:
    return Row(what=what, ours=f"{figure:g}", peer="", figure=figure, at_most=0, unit="")


def _tell(run: Soak, reading: Reading, seconds: float) -> None:
    cost = statistics.median(run.costs[-100:]) if run.costs else 0.0
    print(
        f"{seconds / _MINUTE:5.1f} min  {run.windows:6,} windows  {run.events:13,} events  {cost:4.0f} ns  "
        f"RSS {reading.rss >> 20:4} MiB  disk {run.disk >> 20:3} MiB  {reading.descriptors:3} descriptors  "
        f"{reading.threads:2} threads  {reading.objects:8,} objects",
        flush=True,
    )


def main() -> int:
    """Run the soak test and check its bounds."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--windows", type=int, default=10_000, metavar="N", help="minimum number of windows")
    parser.add_argument("--events", type=int, default=100_000, metavar="N", help="events in each window")
    parser.add_argument("--minutes", type=float, default=20.0, metavar="M", help="minimum duration")
    parser.add_argument("--markdown", action="store_true", help="print a Markdown table")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="opprof-soak-") as name:
        os.environ.update(OPPROF_DIR=name, OPPROF_MAX_BYTES=str(_BUDGET))
        run = soak(
            Path(name), windows=args.windows, events=args.events, seconds=args.minutes * _MINUTE, tell=_tell
        )
    found = list(rows(run))
    print(as_text(found, markdown=args.markdown))
    return int(not all(row.holds for row in found))


if __name__ == "__main__":
    sys.exit(main())
