"""The last comparison of a project, kept for commands such as ``opprof accept``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pytest_opprof.baselines.folder import project_writing, state_file
from pytest_opprof.baselines.git import Git
from pytest_opprof.compare.comparison import Comparison, TestComparison
from pytest_opprof.compare.document import read_comparison, write_comparison
from pytest_opprof.errors import StoreError, UsageError
from pytest_opprof.results.files import shown
from pytest_opprof.results.run import TestResult

_LAST = "last.json"


def keep_last(folder: Path, comparison: Comparison) -> None:
    """Replace the kept comparison: every test, with its changes.

    Rows, call trees and lines are left out of tests that did not fail, and of all if the file would be too
    large.
    """
    path, brief = state_file(folder, _LAST), replace(comparison, tests=tuple(map(_brief, comparison.tests)))
    tests = zip(comparison.tests, brief.tests, strict=True)
    telling = tuple(test if test.regressed or test.broken_limits else short for test, short in tests)
    with project_writing(folder):
        try:
            write_comparison(path, replace(comparison, tests=telling))
        except StoreError:
            write_comparison(path, brief)


def last_comparison(folder: Path) -> Comparison:
    """What `keep_last` kept."""
    path = state_file(folder, _LAST)
    if not path.exists():
        msg = f"{shown(path)}: nothing was compared here yet. Run the tests: pytest --opprof-baseline=NAME"
        raise UsageError(msg)
    return read_comparison(path)


def refuse_stale(comparison: Comparison, folder: Path) -> None:
    """Check that a comparison's commit is checked out: another commit's rises are not accepted here.

    Changes that were measured before they were committed are the same code.
    """
    measured, repository = comparison.head.commit, Git(folder)
    here = repository.commit_of("HEAD")
    if measured is None or here is None or measured.id == here:
        return
    if not (measured.dirty and repository.commit_of("HEAD^") == measured.id):
        raise UsageError(
            f"the last comparison is of {measured.short}, and {here[:7]} is checked out. Run the tests "
            "again, or name a comparison file: --comparison FILE"
        )


def _brief(test: TestComparison) -> TestComparison:
    return replace(test, base=_without_rows(test.base), head=_without_rows(test.head))


def _without_rows(side: TestResult | None) -> TestResult | None:
    if side is None:
        return None
    return replace(side, ops=(), tree=(), functions={}, calls={}, lines={}, callers={})
