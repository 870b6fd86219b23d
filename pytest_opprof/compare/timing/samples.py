"""Processes' measurements of one test, and why its times cannot be compared, if so."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_opprof.compare.timing.comparison import Sides, TimeSettings
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.metrics import WALL_TIME
from pytest_opprof.results.run import MeasurementStatus, Outcome, Run, TestResult

_MOST_TOLD = 3
# Probes of one speed differ by a few parts in a thousand; a neighbour slows them down by a tenth and more.
_ONE_SPEED = 1.04
# The least undisturbed share of a test's processes for which more are worth their time.
_WORTH_MORE = 1 / 3
_FAILED = frozenset({Outcome.FAILED, Outcome.ERROR})


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """One test in each process that had it, in the order in which they ran."""

    base: tuple[TestResult, ...]
    head: tuple[TestResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a test's times are not compared; the verdict is None if that is not a fault."""

    verdict: Verdict | None
    reason: str


def readings_by_test(base: Sequence[Run], head: Sequence[Run]) -> Mapping[str, Readings]:
    """The tests of all processes, the head's first, in the order in which they ran."""
    before, after = _by_node_id(base), _by_node_id(head)
    return {
        node_id: Readings(base=tuple(before.get(node_id, ())), head=tuple(after.get(node_id, ())))
        for node_id in (*after, *(node_id for node_id in before if node_id not in after))
    }


def wall_times(test: Readings, *, settings: TimeSettings) -> Sides | Refusal:
    """The fastest step of each counted process, or why there is nothing to compare."""
    for objection in (
        _not_on_both_sides,
        _not_passed,
        _left_alone,
        _not_measured,
        _other_workload,
        _not_timed,
    ):
        if refusal := objection(test):
            return refusal
    counted = undisturbed(test, settings=settings)
    base_ns, head_ns = (
        tuple(each.totals[WALL_TIME.name].low for each in side) for side in (counted.base, counted.head)
    )
    return Sides(base_ns=base_ns, head_ns=head_ns)


def timed(tests: Mapping[str, Readings], *, settings: TimeSettings) -> dict[str, Sides]:
    """The times of the tests with comparable times."""
    found = {node_id: wall_times(test, settings=settings) for node_id, test in tests.items()}
    return {node_id: sides for node_id, sides in found.items() if isinstance(sides, Sides)}


def undisturbed(test: Readings, *, settings: TimeSettings) -> Readings:
    """The test without the processes that met a slower or faster machine than the others.

    The fastest speed is taken at which enough of both sides' processes were timed; without one, all
    processes. The choice depends only on the machine's speed around the steps, not on their times.
    """
    level = _level(test, least=(settings.least_processes,) * 2)
    if level is None:
        return test
    base, head = (_at(level, side) for side in (test.base, test.head))
    return Readings(base=base, head=head)


def short_of_undisturbed(tests: Mapping[str, Readings], *, wanted: int) -> tuple[str, ...]:
    """The tests that need and deserve more processes of one speed on a side than they have.

    A test with mostly disturbed processes may disturb itself, and more would not help.
    """
    found = []
    for node_id, test in tests.items():
        sides = test.base, test.head
        level = _level(test, least=(*(math.ceil(_WORTH_MORE * len(side)) for side in sides),))
        if level is not None and any(len(_at(level, side)) < wanted for side in sides):
            found.append(node_id)
    return tuple(found)


def disturbances(tests: Mapping[str, Readings], *, settings: TimeSettings) -> Iterator[str]:
    """Notes on disturbed processes: those left out, and those that had to be judged."""
    told: dict[bool, list[str]] = {True: [], False: []}
    for node_id, test in tests.items():
        processes = (*test.base, *test.head)
        fastest = min(each.timing.probe_ns for each in processes)
        level = _level(test, least=(settings.least_processes,) * 2)
        is_left_out = level is not None
        others = len(processes) - len(_at(level or fastest, processes))
        if fastest and others:
            told[is_left_out].append(f"{others} of {len(processes)} processes of {node_id}")
    for is_left_out, words in told.items():
        more = f" and of {len(words) - _MOST_TOLD} more tests" if len(words) > _MOST_TOLD else ""
        what = "these are left out" if is_left_out else "too many to leave out"
        if words:
            yield f"the machine was disturbed in {', '.join(words[:_MOST_TOLD])}{more}: {what}"


def _level(test: Readings, *, least: tuple[int, ...]) -> int | None:
    """The fastest speed at which so many processes of each side were timed: the probe's least time.

    None if there is no such speed, or speeds are unknown.
    """
    speeds = {each.timing.probe_ns for each in (*test.base, *test.head)}
    if 0 in speeds:
        return None
    wanted = tuple(zip((test.base, test.head), least, strict=True))
    enough = (
        level for level in sorted(speeds) if all(len(_at(level, side)) >= count for side, count in wanted)
    )
    return next(enough, None)


def _at(level: int, processes: Iterable[TestResult]) -> tuple[TestResult, ...]:
    """The processes that were timed at a speed."""
    return tuple(each for each in processes if level <= each.timing.probe_ns <= level * _ONE_SPEED)


def _by_node_id(runs: Iterable[Run]) -> dict[str, list[TestResult]]:
    found: dict[str, list[TestResult]] = {}
    for run in runs:
        for test in run.tests:
            found.setdefault(test.node_id, []).append(test)
    return found


def _not_on_both_sides(test: Readings) -> Refusal | None:
    if not test.base:
        return Refusal(verdict=Verdict.NEW, reason="the base does not have it")
    if not test.head:
        return Refusal(verdict=Verdict.MISSING, reason="the base has it, and the head does not")
    return None


def _not_passed(test: Readings) -> Refusal | None:
    """A test that fails on the head alone is an error. If a whole side has no times, it is not judged.

    A test that failed or was skipped in only some processes of the base, or was skipped in only some of the
    head, is INCONCLUSIVE.
    """
    in_base, in_head = ([each for each in side if each.outcome in _FAILED] for side in (test.base, test.head))
    of_head = f"in {_of(in_head, test.head)} of the head"
    if in_head and not in_base:
        return Refusal(verdict=Verdict.ERROR, reason=f"the test failed {of_head}, and in none of the base")
    if in_base:
        reason = f"the test failed in {_of(in_base, test.base)} of the base"
        return _flaky(in_base, test.base, f"{reason} and {of_head}" if in_head else reason)
    for name, side in (("base", test.base), ("head", test.head)):
        if skipped := [each for each in side if each.outcome is Outcome.SKIPPED]:
            return _flaky(skipped, side, f"the test was skipped in {_of(skipped, side)} of the {name}")
    return None


def _flaky(some: Sequence[TestResult], side: Sequence[TestResult], reason: str) -> Refusal:
    return Refusal(verdict=Verdict.INCONCLUSIVE if len(some) < len(side) else None, reason=reason)


def _left_alone(test: Readings) -> Refusal | None:
    """A test that cannot be repeated has the verdict that a session gives it.

    That is none if no side was measured, NEW if only the head was, and ERROR if only the base was.
    """
    for name, side, other, verdict in (
        ("head", test.head, test.base, Verdict.ERROR),
        ("base", test.base, test.head, Verdict.NEW),
    ):
        if all(each.is_left_alone for each in side):
            reason = f"no numbers in {_of(side, side)} of the {name}: {side[0].measurement.reason}"
            return Refusal(verdict=verdict if any(each.is_usable for each in other) else None, reason=reason)
    return None


def _not_measured(test: Readings) -> Refusal | None:
    for name, side in (("head", test.head), ("base", test.base)):
        for status in (MeasurementStatus.ERROR, MeasurementStatus.INCONCLUSIVE, MeasurementStatus.NOT_RUN):
            bad = [each for each in side if each.measurement.status is status]
            if not bad:
                continue
            is_error = status is MeasurementStatus.ERROR and side is test.head
            reason = f"no numbers in {_of(bad, side)} of the {name}: {bad[0].measurement.reason}"
            return Refusal(verdict=Verdict.ERROR if is_error else Verdict.INCONCLUSIVE, reason=reason)
    return None


def _other_workload(test: Readings) -> Refusal | None:
    """Equal code takes equally many steps: another number is other work, whatever its time."""
    before, after = ({(each.steps, each.timing.planned) for each in side} for side in (test.base, test.head))
    if before == after and len(before) == 1:
        return None
    told = f"{_steps(before)} in the base, {_steps(after)} in the head"
    return Refusal(verdict=Verdict.INCONCLUSIVE, reason=f"base and head did different work: {told}")


def _not_timed(test: Readings) -> Refusal | None:
    for name, side in (("head", test.head), ("base", test.base)):
        missing = [each for each in side if WALL_TIME.name not in each.totals]
        if missing:
            why = missing[0].timing.reason or "its processes timed no steps"
            reason = f"no wall time in {_of(missing, side)} of the {name}: {why}"
            return Refusal(verdict=Verdict.INCONCLUSIVE, reason=reason)
        # Also refuses what is not a number at all.
        wrong = [each for each in side if not each.totals[WALL_TIME.name].low > 0]
        if wrong:
            value = wrong[0].totals[WALL_TIME.name].low
            reason = (
                f"a step took {value} ns in {_of(wrong, side)} of the {name}: "
                "the clock went backwards or stood still"
            )
            return Refusal(verdict=Verdict.INCONCLUSIVE, reason=reason)
    return None


def _of(some: Sequence[TestResult], side: Sequence[TestResult]) -> str:
    return f"{len(some)} of {len(side)} processes"


def _steps(found: Iterable[tuple[int, int]]) -> str:
    return " or ".join(f"{active} profiled and {timed} timed steps" for active, timed in sorted(found))
