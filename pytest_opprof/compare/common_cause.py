"""Failing tests by cause: a line that runs more ops is one cause, however many tests run it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from pytest_opprof.compare.comparison import Change, Comparison, TestComparison
from pytest_opprof.compare.phrases import name_of
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.metrics import COUNT, Source

_Key: TypeAlias = "tuple[Hashable, ...]"
CAUSED = frozenset({Verdict.REGRESSED, Verdict.MISSING})
_OF_OPS = frozenset({Source.OPS, Source.WORK})


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """A change that a cause begins with, over all its tests."""

    change: Change  # the change, as the first test has it
    least: int  # the smallest rise of a step among the tests
    most: int  # the largest

    @property
    def place(self) -> str:
        """Its place, in the words of the change's cause, but without "new"."""
        return _place(self.change)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonCause:
    """What made tests fail."""

    number: int  # from 1 on: the cause of most tests first, then in the order of the comparison
    tests: tuple[TestComparison, ...]  # the tests, in the order of the comparison

    @property
    def is_missing(self) -> bool:
        """Whether the tests are MISSING."""
        return self.tests[0].verdict is Verdict.MISSING

    @property
    def beginnings(self) -> tuple[Beginning, ...]:
        """The changes it begins with, the clearest first; none if tests are MISSING or over a limit.

        Totals without a place, of any of the tests, come last.
        """
        found: dict[_Key, list[Change]] = defaultdict(list)
        for change in beginnings_of(self.tests[0]):
            if not _has_no_place(change):
                found[_key(change)].append(change)
        for test in self.tests:
            for change in filter(_has_no_place, beginnings_of(test)):
                found[_about(change)].append(change)
        return tuple(self._beginning(max(changes, key=self._regressed)) for changes in found.values())

    def _regressed(self, change: Change) -> int:
        """In how many of the tests."""
        return sum(_about(change) in map(_about, test.regressed) for test in self.tests)

    def _beginning(self, change: Change) -> Beginning:
        about = _about(change)
        same = [other for test in self.tests for other in test.changes if _about(other) == about]
        # A total that fails one test may vary in another one.
        rises = [other.rise for other in same if other.op or other.verdict is Verdict.REGRESSED]
        return Beginning(change=change, least=min(rises), most=max(rises))


def common_causes(comparison: Comparison) -> tuple[CommonCause, ...]:
    """The causes of a comparison's REGRESSED and MISSING tests; each of these tests has one.

    Tests share a cause if their regressions begin at the same places: at the same lines or, without a line,
    with the same ops under the same callers. Totals without a place come from the lines that did more. A test
    that fails for two reasons does not share the cause of a test that fails for one of them, because whoever
    accepts one has not seen the other.
    """
    groups: dict[_Key, list[TestComparison]] = defaultdict(list)
    for test in comparison.tests:
        if test.verdict in CAUSED:
            groups[_key_of(test)].append(test)
    ordered = sorted(groups.values(), key=len, reverse=True)  # stable
    return tuple(CommonCause(number=at, tests=tuple(tests)) for at, tests in enumerate(ordered, start=1))


def _about(change: Change) -> _Key:
    return name_of(change), change.metric, change.kind


def _key_of(test: TestComparison) -> _Key:
    if test.verdict is Verdict.MISSING:
        return ("missing", test.node_id.partition("::")[0])
    begun = beginnings_of(test)
    placed = [change for change in begun if not _has_no_place(change)]
    changes = frozenset(map(_key, placed or begun))
    limits = frozenset(limit.path for limit in test.broken_limits)
    return (changes, limits)


def _has_no_place(change: Change) -> bool:
    return change.op is None and change.line is None


def _key(change: Change) -> _Key:
    line = change.line
    if line is not None and (line.is_certain or line.is_edited or change.op is None):
        return (line.key, line.is_certain)
    # Without a place, only the same rise of a total can have the same cause.
    return (change.metric, change.rise) if change.op is None else (name_of(change), _place(change))


def _place(change: Change) -> str:
    text, is_new = change.cause, change.cause.partition(" ")[0] in {"new", "new,"}
    return text.removeprefix("new").lstrip(", ") if is_new else text


def without_twins(changes: Iterable[Change]) -> list[Change]:
    """The changes; of an op that came in place of another, and has a gate of its own, one alone."""
    known = list(changes)
    own = {change.op for change in known if change.rewrite is None and change.metric == COUNT.name}
    return [change for change in known if not (change.rewrite and change.op in own)]


def beginnings_of(test: TestComparison) -> list[Change]:
    """The ops that a test's regression begins with; else the first outermost that failed, or the totals.

    Ops that replaced as many others do not fail themselves. If their inputs are larger, the first of them
    with a line stands for the totals of ops.

    It reads only the changes, so a comparison stored without rows has the same causes.
    """
    begun = without_twins(change for change in test.changes if change.begins)
    ops = [change for change in test.regressed if change.op is not None]
    if begun or ops:
        failed = {change.op for change in ops}
        return begun or [change for change in ops if change.caller not in failed][:1] or ops[:1]
    is_of_ops = any(change.about.source in _OF_OPS for change in test.regressed)
    lined = (change for change in test.changes if change.op and change.line)
    risen = (change for change in lined if change.rise > 0 or change.rewrite)
    first = next(risen, None) if is_of_ops else None
    return [first] if first else list(test.regressed)
