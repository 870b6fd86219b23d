"""The tests that a session saw, and how its run joins an earlier run with other tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import PurePosixPath

from pytest_opprof.metrics import FINGERPRINT_FIELDS, TOTALS, Family
from pytest_opprof.metrics.fingerprint import SETTINGS
from pytest_opprof.results.run import CarriedFrom, Environment, Run, TestResult
from pytest_opprof.wording import counted, listed

# The fields that a run's counts depend on. Fields that tests may set are in each test, as at its end
# (`TestResult.settings`); but a run's compile flags decide which baseline it is compared with
# (`baselines.environment_match`).
_OF_COUNTS = frozenset[str]().union(
    *(metric.depends_on for metric in TOTALS.values() if metric.family is not Family.TIME)
) - (SETTINGS - {"compile"})
_MOST_NAMES = 3
# A run that used devices has both.
_DRIVER, _DEVICES = "gpu_driver", "gpu_model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What pytest collected."""

    # Of every collected test with our marker, including deselected ones (canonical).
    node_ids: frozenset[str] = frozenset()
    # Files and folders, spelled as in node ids, that were collected entirely; ``.`` is all.
    whole_paths: frozenset[str] = frozenset()
    # Their parts that were left out: ignored, skipped entirely, or broken.
    unread_paths: frozenset[str] = frozenset()

    def lacks(self, node_id: str) -> bool:
        """Whether a test is gone: its file, or a folder above it, was collected without it."""
        places = _places(node_id)
        if node_id in self.node_ids or places & self.unread_paths:
            return False
        return bool(places & self.whole_paths)

    def leaves_out(self, node_id: str) -> bool:
        """Whether a test's file should be collected, but was skipped, ignored or broken."""
        places = _places(node_id)
        return bool(places & self.unread_paths and places & self.whole_paths)


def _places(node_id: str) -> set[str]:
    """A test's file, and the folders above it."""
    file = PurePosixPath(node_id.partition("::")[0])
    return {str(path) for path in (file, *file.parents)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """A run to be stored, with notes."""

    run: Run  # the tests that ran, and those carried over
    notes: tuple[str, ...] = ()


def merged(previous: Run | None, run: Run, *, collected: Collected) -> Merged:
    """``run`` with the tests of ``previous`` that did not run this time and still exist.

    Only tests that passed and were measured are kept. Tests of another environment are dropped, because a run
    has one fingerprint. But fields that only times depend on may differ, and are then unknown. A result with
    only times never replaces one with counts, because gates need those.
    """
    usable = tuple(test for test in run.tests if test.is_usable)
    run = replace(run, tests=usable)
    if previous is None:
        return Merged(run=run)
    ran = {test.node_id: test for test in usable}
    certain = {test.node_id for test in previous.tests if _outranks(test, ran.get(test.node_id))}
    exist = [test for test in previous.tests if test.node_id in ran or not collected.lacks(test.node_id)]
    kept = [test for test in exist if test.node_id in certain or test.node_id not in ran]
    names = {test.node_id for test in exist}
    gone = [test.node_id for test in previous.tests if test.node_id not in names]
    what = f"{counted(len(gone), 'test')} of {previous.title} dropped, no longer collected"
    notes = [f"{what}: {listed(gone, most=_MOST_NAMES)}"] if gone else []
    if not kept:
        return Merged(run=run, notes=tuple(notes))
    both = shared(previous.environment, run.environment)
    if both.blocking:
        one = _one_of_them(previous, run, left=kept, exist=exist, what=", ".join(both.blocking))
        return replace(one, notes=(*notes, *one.notes))
    own = tuple(test for test in usable if test.node_id not in certain)
    if len(kept) > len(certain):
        notes.append(
            f"{counted(len(kept) - len(certain), 'test')} that did not run kept from {previous.title}"
        )
    if certain:
        what = f"{counted(len(certain), 'test')} kept from {previous.title} with the counts"
        notes.append(f"{what}: this run has no counts of them, so its times are left out")
    if not own:
        return Merged(run=_with_tests_of(previous, run, kept), notes=tuple(notes))
    return Merged(
        run=replace(
            run,
            tests=(*own, *(_carried(test, previous) for test in kept)),
            environment=Environment(fingerprint=both.fingerprint, details=run.environment.details),
        ),
        notes=(*notes, *both.left_out),
    )


def _one_of_them(
    previous: Run, run: Run, *, left: Sequence[TestResult], exist: Sequence[TestResult], what: str
) -> Merged:
    """One of two runs whose counts cannot be joined: the later, unless it has no counts."""
    if _any_counts(run.tests) or not _any_counts(left):
        note = left_behind(previous, [test.node_id for test in left], what=what)
        return Merged(run=run, notes=(note,))
    why = f"they have only times, and were measured in another environment ({what})"
    notes = (
        f"{counted(len(exist), 'test')} kept from {previous.title} with the counts",
        f"{counted(len(run.tests), 'test')} of this run left out: {why}",
    )
    return Merged(run=_with_tests_of(previous, run, exist), notes=notes)


def left_behind(previous: Run, node_ids: Sequence[str], *, what: str) -> str:
    """A sentence on tests of another environment that did not run; ``what`` differs."""
    names = listed(node_ids, most=_MOST_NAMES)
    many = counted(len(node_ids), "test")
    return f"{many} of {previous.title} left out, measured in another environment ({what}): {names}"


def _with_tests_of(previous: Run, run: Run, tests: Iterable[TestResult]) -> Run:
    """``run`` with tests of ``previous`` in place of its own, and so with their environment."""
    carried = tuple(_carried(test, previous) for test in tests)
    return replace(run, tests=carried, environment=previous.environment)


def joined(runs: Sequence[Run]) -> Run:
    """Join runs of one commit, one at least: each test's last measurement counts.

    Two simultaneous saves on separate machines leave one run each. The order of ``runs`` makes no difference.
    Environments, and tests with only times, are treated as in `merged`.
    """
    newest, *others = sorted(runs, key=lambda run: (run.created, run.run_id), reverse=True)
    for other in others:
        if not shared(other.environment, newest.environment).blocking:
            measured = {test.node_id: test for test in other.tests}
            stays = tuple(
                test
                for test in newest.tests
                if test.node_id not in measured
                or _outranks(test, measured[test.node_id])
                or _measured(measured[test.node_id], other) <= _measured(test, newest)
            )
            newest = replace(newest, tests=stays)
        newest = merged(other, newest, collected=Collected()).run
    return newest


def _has_counts(test: TestResult) -> bool:
    return test.is_usable and test.steps > 0


def _any_counts(tests: Iterable[TestResult]) -> bool:
    return any(_has_counts(test) for test in tests)


def _outranks(test: TestResult, other: TestResult | None) -> bool:
    """Whether only the first of two results of a test has counts."""
    return other is not None and _has_counts(test) and not _has_counts(other)


def _measured(test: TestResult, run: Run) -> datetime:
    return test.carried_from.created if test.carried_from else run.created


def differences(base: Environment, head: Environment, *, ignore_unknown: bool = False) -> dict[str, str]:
    """The differing fingerprint fields in words: ``torch 2.12.0 -> 2.13.0``; also those of one side alone."""
    found = {}
    for field, words in FINGERPRINT_FIELDS.items():
        before, after = base.fingerprint.get(field), head.fingerprint.get(field)
        if before == after or (ignore_unknown and (before is None or after is None)):
            continue
        found[field] = f"{words} {before or 'unknown'} -> {after or 'unknown'}"
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """The fingerprint of tests from two environments."""

    # The fields of either; those that counts do not depend on only if known to agree.
    fingerprint: Mapping[str, str]
    # Differences that counts depend on, in words; then no run may have tests from both.
    blocking: tuple[str, ...]
    left_out: tuple[str, ...]  # sentences on differences that only times depend on


def shared(base: Environment, head: Environment) -> Shared:
    """What two environments have in common.

    A field that only one has is not a difference. But every new run knows the fields that only times depend
    on: if one is missing, it was left out before, and stays unknown.
    """
    different = differences(base, head, ignore_unknown=True)
    of_times = different.keys() - _OF_COUNTS - SETTINGS
    known = {**base.fingerprint, **head.fingerprint}
    return Shared(
        fingerprint={
            field: value
            for field, value in known.items()
            if field not in different and (field in _OF_COUNTS or _is_of_both(field, base, head))
        },
        blocking=tuple(words for field, words in different.items() if field in _OF_COUNTS),
        left_out=tuple(
            f"times cannot be compared: the environments differ ({words})"
            for field, words in different.items()
            if field in of_times
        ),
    )


def _is_of_both(field: str, *environments: Environment) -> bool:
    return all(
        field in one.fingerprint or (field == _DRIVER and _DEVICES not in one.fingerprint)
        for one in environments
    )


def _carried(test: TestResult, previous: Run) -> TestResult:
    if test.carried_from is not None:
        return test
    origin = CarriedFrom(
        run_id=previous.run_id,
        created=previous.created,
        commit=previous.commit.short if previous.commit else None,
    )
    return replace(test, carried_from=origin)
