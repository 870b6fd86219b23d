"""Import older runs into a history: run files, and folders of them such as a directory store."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_opprof.baselines.accepted import ACCEPTED
from pytest_opprof.baselines.folder import STATE
from pytest_opprof.baselines.git import Git
from pytest_opprof.baselines.keys import OTHER_FOLDERS
from pytest_opprof.errors import DocumentError, StoreError
from pytest_opprof.history.log import SUFFIX, HistoryLog
from pytest_opprof.history.parquet import ToldRun, times_of
from pytest_opprof.history.record import RunRecord, record_of
from pytest_opprof.results.files import read_run, shown
from pytest_opprof.results.run import CarriedFrom, Run, TestResult

_SUFFIXES = (".json", ".json.gz")
_NO_RUNS = OTHER_FOLDERS | {STATE, ACCEPTED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The runs that were found."""

    records: tuple[RunRecord, ...]  # records of the runs that the history lacks, oldest first
    known: frozenset[str]  # the ids of the runs that it already has
    runs: tuple[Run, ...]  # the runs of the records, in the same order
    notes: tuple[str, ...] = ()  # a sentence for each file without a run


def find_runs(paths: Iterable[Path], *, known: Collection[str], git: Git) -> Found:
    """Read the runs in files and below folders; DocumentError if a file that is named is not a run."""
    notes: list[str] = []
    runs: dict[str, Run] = {}
    passed_over = set()
    for path in paths:
        for run in _runs(path, notes):
            if run.run_id in known:
                passed_over.add(run.run_id)
            elif run.run_id not in runs or runs[run.run_id].name is None:
                runs[run.run_id] = run
    for shard in [shard for run in runs.values() for shard in _other_shards(run)]:
        if shard.run_id not in known:
            runs.setdefault(shard.run_id, shard)
    ordered = sorted(runs.values(), key=lambda run: run.created)
    records = tuple(
        record_of(run, committed=git.committed(run.commit.id) if run.commit else None) for run in ordered
    )
    return Found(records=records, known=frozenset(passed_over), notes=tuple(notes), runs=tuple(ordered))


def _other_shards(run: Run) -> Iterator[Run]:
    """The other runs of its commit that are in a stored run, as when each shard of a CI saved its own."""
    carried: dict[CarriedFrom, list[TestResult]] = {}
    for test in run.tests:
        if run.commit and test.carried_from and test.carried_from.commit == run.commit.short:
            carried.setdefault(test.carried_from, []).append(replace(test, carried_from=None))
    for origin, tests in carried.items():
        yield replace(run, run_id=origin.run_id, created=origin.created, tests=tuple(tests))


def find_for_tables(
    paths: Sequence[Path], *, known: Collection[str], git: Git
) -> tuple[list[ToldRun], int, tuple[str, ...]]:
    """Find runs for the tables: in run files, which have the times of ops, and else in logs.

    The answer: the runs that the tables lack, how many they have already, sentences on files without a run.
    """
    found = find_runs(paths, known=known, git=git)
    both = zip(found.records, found.runs, strict=True)
    told = {run.run_id: ToldRun(record=record, times=times_of(run, record)) for record, run in both}
    passed_over = set(found.known)
    folders = {file.parent for path in paths if path.is_dir() for file in path.rglob(f"*{SUFFIX}")}
    for folder in sorted(folders):
        for record in HistoryLog(folder).records():
            if record.head.run_id not in known:
                told.setdefault(record.head.run_id, ToldRun(record=record))
            else:
                passed_over.add(record.head.run_id)
    return list(told.values()), len(passed_over), found.notes


def _runs(path: Path, notes: list[str]) -> Iterator[Run]:
    if not path.is_dir():
        yield read_run(path)
        return
    try:
        files = sorted(
            each
            for each in path.rglob("*")
            if each.name.endswith(_SUFFIXES) and _NO_RUNS.isdisjoint(each.relative_to(path).parts)
        )
    except OSError as error:
        raise StoreError(f"{shown(path)}: the folder cannot be searched ({error.strerror})") from error
    for file in files:
        try:
            yield read_run(file)
        except (DocumentError, StoreError) as error:
            notes.append(str(error))
