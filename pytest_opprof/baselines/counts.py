"""Baselines to commit and review: ``<name>.counts.json`` has values that unchanged code has everywhere.

The file has no host, time or commit, and one number a line in a stable order. So two saves of unchanged code
are the same bytes, and a pull request's diff shows its rises.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote, unquote

from pytest_opprof.baselines.directory import listed, locked
from pytest_opprof.baselines.keys import LONG_AGO, REVIEWED, entry_of
from pytest_opprof.baselines.store import Change, Changed, Entry
from pytest_opprof.errors import UsageError
from pytest_opprof.kinds import OpKind
from pytest_opprof.metrics import ROW_METRICS, TOTALS, Family
from pytest_opprof.metrics.metric import of_watched_memory
from pytest_opprof.results.document import run_to_document
from pytest_opprof.results.files import read_bytes, run_from_bytes, shown, store_errors, write_bytes
from pytest_opprof.results.run import CaptureStats, Environment, OpRow, Run, TestResult, Timing

# Unique, because accepted.json may be in the same folder.
_SUFFIX = ".counts.json"
# People read and edit it too, and git merges lines, not words.
_INDENT = 1
_EXACT = frozenset(
    metric.name for metric in (*ROW_METRICS.values(), *TOTALS.values()) if metric.family is Family.EXACT
)
# The collector's statistics that a comparison reads; how much it recorded may vary.
_NOT_COMPARED = ("events", "threads", "unmatched_ends", "crash_recovery")


class CountsStore:
    """A file for each name, in a folder of the work tree."""

    hint = ""

    def __init__(self, folder: Path, *, uri: str) -> None:
        self.folder = folder
        self.uri = uri

    def names(self) -> tuple[str, ...]:
        """The files, as names."""
        return tuple(
            unquote(path.name.removesuffix(_SUFFIX))
            for path in listed(self.folder)
            if path.name.endswith(_SUFFIX) and not path.name.startswith(".") and path.is_file()
        )

    def entries(self, name: str) -> tuple[Entry, ...]:
        """The only run: the work tree's."""
        path = self._path(name)
        if not path.is_file():
            return ()
        return (entry_of(name, REVIEWED, created=LONG_AGO, place=shown(path), parts=(path.name,)),)

    def read(self, entry: Entry) -> tuple[bytes, ...]:
        """The file of an entry."""
        return tuple(read_bytes(self.folder / part) for part in entry.parts)

    def change(self, name: str, plan: Callable[[tuple[Entry, ...]], Change]) -> Changed:
        """Apply ``plan`` while no other process writes; it may put one run."""
        path = self._path(name)
        with store_errors(self.folder, "cannot be written"):
            self.folder.mkdir(parents=True, exist_ok=True)
        # The folder itself is locked: a lock file would have to be ignored, or committed.
        with locked(self.folder):
            change = plan(self.entries(name))
            for put in change.puts:
                write_bytes(path, reviewable(run_from_bytes(put.data, where=put.key), name=name))
            if change.drops and not change.puts:
                with store_errors(path, "cannot be removed"):
                    path.unlink(missing_ok=True)
        return Changed(places=tuple(shown(path) for _ in change.puts))

    def _path(self, name: str) -> Path:
        return self.folder / f"{quote(name, safe=' ')}{_SUFFIX}"


def reviewable(run: Run, *, name: str) -> bytes:
    """A run as a document that differs only if counts do; raises `UsageError` if it has none."""
    fields = _fields_of(run.tests)
    tests = tuple(
        _counts_of(test, fields=fields) for test in sorted(run.tests, key=lambda test: test.node_id)
    )
    if not any(test.totals for test in tests):
        raise UsageError(f"{name}: the run has no exact counts to store. Use another store")
    kept = Run(
        run_id=REVIEWED,
        created=LONG_AGO,
        opprof_version="",
        name=name,
        environment=Environment(fingerprint=_these(fields, run.environment.fingerprint)),
        tests=tests,
    )
    return json.dumps(run_to_document(kept), indent=_INDENT).encode("ascii") + b"\n"


def _fields_of(tests: Iterable[TestResult]) -> frozenset[str]:
    """The fields of an environment that the kept totals depend on; others may differ by host."""
    names = {name for test in tests for name in test.totals}
    fields = frozenset[str]().union(*(TOTALS[name].depends_on for name in names & _EXACT))
    # If NumPy's memory was not measured, counts do not depend on its build and CPU features.
    return of_watched_memory(fields, (source for test in tests for source in test.sources))


def _these(fields: frozenset[str], values: Mapping[str, str]) -> dict[str, str]:
    return {field: value for field, value in sorted(values.items()) if field in fields}


def _counts_of(test: TestResult, *, fields: frozenset[str]) -> TestResult:
    unchanged = CaptureStats()
    capture = replace(test.capture, **{field: getattr(unchanged, field) for field in _NOT_COMPARED})
    ops = (_count_of(row) for row in test.ops if not row.background and row.kind is not OpKind.CALL)
    return replace(
        test,
        capture=capture,
        activities=tuple(sorted(test.activities)),
        sources=tuple(sorted(test.sources)),
        unstable=tuple(sorted(test.unstable)),
        unheard={},
        settings=_these(fields, test.settings),
        compile_cache=tuple(sorted(test.compile_cache)),
        timing=Timing(),
        limits=dict(sorted(test.limits.items())),
        accepted={},  # the same save and commit remove its entries from accepted.json
        totals={name: test.totals[name] for name in sorted(test.totals) if name in _EXACT},
        functions={name: parts for name, parts in sorted(test.functions.items()) if name in _EXACT},
        ops=tuple(sorted(ops, key=lambda row: (row.name, row.kind))),
        calls={},
        lines={},
        callers={},
        tree=(),
        ranks={},
        carried_from=None,
    )


def _count_of(row: OpRow) -> OpRow:
    """A row without times and lines of code, which vary in unchanged code."""
    return replace(
        row,
        metrics={name: row.metrics[name] for name in sorted(row.metrics) if name in _EXACT},
        parent_op=None,
        source=None,
        places={},
        parts={},
    )
