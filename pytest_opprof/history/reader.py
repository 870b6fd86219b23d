"""Read a log: what each test measured, run by run.

A test's results are packed in integers of 64 bits: run, counts, number of values, values. So 5,000,000
results take about 160 MiB, and those of one test are found at once.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pytest_opprof.history.entries import DefinitionEntry, RunEntry, read_entries
from pytest_opprof.history.log import HistoryLog
from pytest_opprof.history.record import Counts, RunHead
from pytest_opprof.results.files import shown
from pytest_opprof.results.members import gc_paused
from pytest_opprof.results.run import Environment

_HEADER: Final = 3  # of a result: run, counts, number of values


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What one run measured of one test."""

    run: RunHead
    environment: Environment
    counts: Counts
    measured: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Results:
    """A test's results, oldest commit first; kept by column, because there may be 100,000."""

    head_of: Callable[[int], tuple[RunHead, Environment]]  # gives a result's run by its index
    counts: Sequence[Counts]
    measured: Sequence[Sequence[int]]  # the varying values of each

    def __len__(self) -> int:
        return len(self.counts)

    def __iter__(self) -> Iterator[Result]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, at: int) -> Result:
        run, environment = self.head_of(at)
        return Result(
            run=run, environment=environment, counts=self.counts[at], measured=tuple(self.measured[at])
        )


class HistoryReader:
    """The content of a log, whose folder need not exist, read once."""

    def __init__(self, log: HistoryLog) -> None:
        self._folder = log.folder
        self._damaged: list[tuple[str, int]] = []
        self._lost = 0
        self._runs: list[tuple[RunHead, Environment]] = []
        self._indices: dict[str, int] = {}
        self._saved_as: defaultdict[str, set[int]] = defaultdict(set)
        self._environments: dict[str, Environment] = {}
        self._counts: list[Counts] = []
        self._series: defaultdict[str, array[int]] = defaultdict(lambda: array("q"))
        # By the digest of a test's counts: the array for its results, and the counts' index.
        self._targets: dict[str, tuple[array[int], int]] = {}
        # Another segment may have what a run's own one lost: its definitions, or the whole run.
        self._incomplete: list[RunEntry] = []
        # The garbage collector would look at millions of short-lived lists again and again.
        with log.shared(), gc_paused():
            for segment in log.segments():
                self._take(segment)
            for entry in self._incomplete:
                self._add(entry)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what was skipped."""
        found = [
            f"{shown(self._folder / name)}: damaged lines skipped: {count}" for name, count in self._damaged
        ]
        if self._lost:
            found.append(f"results skipped, because the lines that define them are lost: {self._lost}")
        return tuple(found)

    def tests(self) -> list[str]:
        """The node ids of all tests, in alphabetical order."""
        return sorted(self._series)

    def run_ids(self) -> set[str]:
        """The ids of all runs."""
        return set(self._indices)

    def results(self, node_id: str, *, name: str | None = None) -> Results:
        """A test's results in all runs, or in those that were saved under a name, oldest commit first."""
        packed = self._series.get(node_id, array("q"))
        # If a run has a test twice, which our writer never does, the last one counts.
        latest, at = {}, 0
        while at < len(packed):
            run, counted, length = packed[at : at + _HEADER]
            latest[run] = (self._counts[counted], packed[at + _HEADER : at + _HEADER + length])
            at += _HEADER + length
        runs = [run for run in latest if name is None or run in self._saved_as.get(name, ())]
        runs.sort(key=lambda run: self._runs[run][0].order)
        heads = [self._runs[run] for run in runs]
        if name is not None:
            heads = [(replace(head, name=name), environment) for head, environment in heads]
        return Results(
            heads.__getitem__,
            [latest[run][0] for run in runs],
            [latest[run][1] for run in runs],
        )

    def _take(self, segment: Path) -> None:
        known = self._targets.keys() | self._environments.keys()
        chunk = read_entries(segment, known=known)
        if damaged := chunk.damaged + chunk.is_torn:
            self._damaged.append((segment.name, damaged))
        # Definitions first, because the lines of a damaged segment may be in any order.
        for entry in chunk.entries:
            if isinstance(entry, DefinitionEntry):
                self._define(entry)
        for entry in chunk.entries:
            if isinstance(entry, RunEntry):
                if entry.environment in self._environments and entry.tests.keys() <= self._targets.keys():
                    self._add(entry)
                else:
                    self._incomplete.append(entry)

    def _define(self, entry: DefinitionEntry) -> None:
        digest = entry.definition.digest
        if entry.counts is None:
            self._environments[digest] = Environment(fingerprint=entry.fingerprint)
        elif digest not in self._targets:
            self._targets[digest] = self._series[entry.counts.node_id], len(self._counts)
            self._counts.append(entry.counts)

    def _add(self, entry: RunEntry) -> None:
        if entry.head.run_id not in self._indices:
            self._add_new(entry)
        self._name(entry.head)

    def _add_new(self, entry: RunEntry) -> None:
        environment = self._environments.get(entry.environment)
        if environment is None:
            self._lost += len(entry.tests)
            return
        self._indices[entry.head.run_id] = len(self._runs)
        run, targets = len(self._runs), self._targets
        self._runs.append((entry.head, environment))
        # Only this loop runs millions of times.
        for digest, values in entry.tests.items():
            if digest in targets:
                data, counts = targets[digest]
                data.extend((run, counts, len(values), *values))
            else:
                self._lost += 1

    def _name(self, head: RunHead) -> None:
        """Note what a run was saved as: it is in the log once for each name, and before it had one."""
        if head.name is None or head.run_id not in self._indices:
            return
        at = self._indices[head.run_id]
        self._saved_as[head.name].add(at)
        known, environment = self._runs[at]
        if known.name is None:
            self._runs[at] = replace(known, name=head.name), environment
