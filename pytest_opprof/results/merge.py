"""What a session saw of its tests, and how its run joins an earlier one that holds other tests."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from pytest_opprof.metrics import FINGERPRINT_FIELDS
from pytest_opprof.results.run import CarriedFrom, Environment, Run, TestResult

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What pytest collected.

    Attributes:
        node_ids: of every test with our marker that was collected, deselected ones included (canonical).
        whole_paths: files and folders, as node ids spell them, that were collected whole; ``.`` is all.
        unread_paths: what of them was left out after all: ignored, skipped as a whole, or broken.
    """

    node_ids: frozenset[str] = frozenset()
    whole_paths: frozenset[str] = frozenset()
    unread_paths: frozenset[str] = frozenset()

    def lacks(self, node_id: str) -> bool:
        """Whether a test is known to be no more: its file, or a folder above it, was collected without it."""
        file = PurePosixPath(node_id.partition("::")[0])
        places = {str(path) for path in (file, *file.parents)}
        if node_id in self.node_ids or places & self.unread_paths:
            return False
        return bool(places & self.whole_paths)


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """A run to be stored, and what to say about it.

    Attributes:
        run: the tests that ran, and those carried over.
        carried: how many tests come from the earlier run.
        notes: sentences for the user.
    """

    run: Run
    carried: int = 0
    notes: tuple[str, ...] = ()


def merged(previous: Run | None, run: Run, *, collected: Collected) -> Merged:
    """``run`` with the tests of ``previous`` that did not run this time and still exist.

    Only tests that passed and were measured are kept. Tests of another environment are left behind: a run has
    one fingerprint.
    """
    usable = tuple(test for test in run.tests if test.is_usable)
    run = replace(run, tests=usable)
    if previous is None:
        return Merged(run=run)
    ran = {test.node_id for test in usable}
    waiting = [
        test for test in previous.tests if test.node_id not in ran and not collected.lacks(test.node_id)
    ]
    if not waiting:
        return Merged(run=run)
    different = differences(previous.environment, run.environment, ignore_unknown=True)
    if different:
        what = ", ".join(different.values())
        note = (
            f"{_tests(len(waiting))} of {previous.title} left out: measured in another environment ({what})"
        )
        return Merged(run=run, notes=(note,))
    tests = (*usable, *(_carried(test, previous) for test in waiting))
    fields = {**previous.environment.fingerprint, **run.environment.fingerprint}
    environment = Environment(fingerprint=fields, details=run.environment.details)
    return Merged(
        run=replace(run, tests=tests, environment=environment),
        carried=len(waiting),
        notes=(f"{_tests(len(waiting))} that did not run kept from {previous.title}",),
    )


def joined(runs: Sequence[Run]) -> Run:
    """One run of several of the same commit: of each test what was measured last.

    Two saves at once, on machines that do not know of each other, leave one run each. The order of ``runs``
    makes no difference. Runs of another environment than the newest are left behind, as `merged` does.

    Args:
        runs: one at least.
    """
    newest, *others = sorted(runs, key=lambda run: (run.created, run.run_id), reverse=True)
    for other in others:
        if not differences(other.environment, newest.environment, ignore_unknown=True):
            measured = {test.node_id: _measured(test, other) for test in other.tests}
            stays = tuple(
                test
                for test in newest.tests
                if test.node_id not in measured or measured[test.node_id] <= _measured(test, newest)
            )
            newest = replace(newest, tests=stays)
        newest = merged(other, newest, collected=Collected()).run
    return newest


def _measured(test: TestResult, run: Run) -> datetime:
    return test.carried_from.created if test.carried_from else run.created


def differences(base: Environment, head: Environment, *, ignore_unknown: bool = False) -> dict[str, str]:
    """The fingerprint fields that differ, each with a reader's words: ``torch 2.12.0 -> 2.13.0``.

    Args:
        base: the earlier environment.
        head: this one.
        ignore_unknown: whether a field that only one side has is no difference.
    """
    found = {}
    for field, words in FINGERPRINT_FIELDS.items():
        before, after = base.fingerprint.get(field), head.fingerprint.get(field)
        if before == after or (ignore_unknown and (before is None or after is None)):
            continue
        found[field] = f"{words} {before or 'unknown'} -> {after or 'unknown'}"
    return found


def _carried(test: TestResult, previous: Run) -> TestResult:
    if test.carried_from is not None:
        return test
    origin = CarriedFrom(
        run_id=previous.run_id,
        created=previous.created,
        commit=previous.commit.short if previous.commit else None,
    )
    return replace(test, carried_from=origin)


def _tests(count: int) -> str:
    return "1 test" if count == 1 else f"{count} tests"
