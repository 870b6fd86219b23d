"""Chrome traces of measured tests: requested ones, those of saved tests, and of regressions."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pytest_opprof.baselines.archive import Archive, open_store
from pytest_opprof.baselines.traces import (
    PROJECT_TRACES,
    SUFFIX,
    SavedTraces,
    pair_words,
    project_pairs,
    traces_of,
)
from pytest_opprof.capture.recording import Recording
from pytest_opprof.compare.comparison import TestComparison
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.errors import OpprofError, StoreError, UsageError
from pytest_opprof.plugin.marker import ProfileRequest
from pytest_opprof.plugin.options import Options
from pytest_opprof.plugin.workers import Exchange
from pytest_opprof.results.names import trace_stem
from pytest_opprof.results.run import Run, TestResult
from pytest_opprof.units import format_bytes, parse_bytes

# Per cycle; 26 MB. A larger trace would have hundreds of megabytes, too much for viewers.
_KEPT_EVENTS: Final = 400_000


def write_traces(folder: Path, node_id: str, recordings: Sequence[Recording]) -> list[Path]:
    """Write a trace of each cycle of a test; raises `StoreError` if one cannot be written.

    A file is ``test_encoder_step-9f3c0a61e2d4.json.gz``, with the cycle's number if there are several.
    """
    stem = trace_stem(node_id)
    paths = []
    for number, recording in enumerate(recordings):
        cycle = f".cycle{number}" if len(recordings) > 1 else ""
        path = folder / f"{stem}{cycle}{SUFFIX}"
        _write(recording, path)
        paths.append(path)
    return paths


def _too_many(recording: Recording) -> str:
    events = f"{recording.stats.events:,} events"
    return f"no trace of {events} was stored: they were summed up. To write all: --opprof-traces=DIR"


def _write(recording: Recording, path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        recording.write_chrome_trace(path)
    except OSError as error:
        raise StoreError(f"the trace {path} cannot be written: {error}") from error


class SessionTraces:
    """Writes a session's recordings to files; of several cycles, the last.

    A file that cannot be written raises `StoreError`, and a budget that is not a size `UsageError`. Staged
    traces are in the folder of the `exchange`.
    """

    def __init__(self, *, root: Path, options: Options, exchange: Exchange) -> None:
        self._root = root
        self._options = options
        try:
            self._budget = parse_bytes(options.trace_budget)
        except UsageError as error:
            raise UsageError(f"--opprof-trace-budget: {error}") from error
        self._pairs = project_pairs(root, budget=self._budget, named=options.traces)
        self._staging = exchange.folder / "traces"
        self._staged_bytes = 0

    def kept_events(self, request: ProfileRequest) -> int:
        """How many events of a cycle are kept before it is only summed up; 0 for all."""
        return 0 if self._options.traces or request.trace or request.steps_itself else _KEPT_EVENTS

    def asked_for(self, test: TestResult, recordings: Sequence[Recording], *, by_marker: bool) -> list[Path]:
        """Write a test's requested traces; gives the files."""
        folder = self._options.traces or (self._root / PROJECT_TRACES if by_marker else None)
        return write_traces(folder, test.node_id, recordings) if folder else []

    def stage(self, test: TestResult, recordings: Sequence[Recording]) -> str:
        """Write the trace of a test that will be saved; gives why it was not, if one was to be kept."""
        if not (self._options.save and self._budget and recordings):
            return ""
        if self._staged_bytes > self._budget:
            return (
                "traces of later tests were not stored: earlier ones used up the "
                f"{format_bytes(self._budget)} of opprof_trace_budget"
            )
        if recordings[-1].is_summed:
            return _too_many(recordings[-1])
        if not self._staging.parent.exists():
            return "no traces were stored: no folder for temporary files can be written. Set TMPDIR"
        path = self._staging / f"{trace_stem(test.node_id)}{SUFFIX}"
        _write(recordings[-1], path)
        self._staged_bytes += path.stat().st_size
        return ""

    def keep(self, archive: Archive, run: Run) -> tuple[str, ...]:
        """Move a saved run's staged traces beside it; gives sentences on missing ones."""
        if not self._staging.exists():
            return ()
        saved = traces_of(archive, root=self._root, budget=self._budget)
        paths = {test.node_id: self._staging / f"{trace_stem(test.node_id)}{SUFFIX}" for test in run.tests}
        return saved.keep({node_id: path for node_id, path in paths.items() if path.exists()}, run)

    def show(self, found: TestComparison, recordings: Sequence[Recording], *, base: Run | None) -> str:
        """Keep base's and head's traces of a regressed test, or drop earlier ones of a test that is not.

        Gives their paths and the command that shows them, or why there are none; may be empty.
        """
        if base is None:
            return ""
        is_wanted = found.verdict is Verdict.REGRESSED and self._budget and recordings
        if not is_wanted or recordings[-1].is_summed:
            self._pairs.drop(found.node_id)
            return _too_many(recordings[-1]) if is_wanted else ""
        before = base.test(found.node_id)
        theirs = self._saved.of(before, base) if before and self._saved else None
        ours = self._staging / f"{trace_stem(found.node_id)}.head{SUFFIX}"
        _write(recordings[-1], ours)
        refused = self._pairs.put(found.node_id, base=theirs, head=ours)
        missing = f"no trace of {base.title} is kept here"
        tests = (test.node_id for test in base.tests)
        return refused or pair_words(found.node_id, self._pairs, missing=missing, tests=tests)

    @functools.cached_property
    def _saved(self) -> SavedTraces | None:
        """The traces of stored runs; None if the store cannot be opened."""
        try:
            store = open_store(self._options.store, root=self._root)
        except OpprofError:  # the session reports it
            return None
        return traces_of(store, root=self._root, budget=self._budget)
