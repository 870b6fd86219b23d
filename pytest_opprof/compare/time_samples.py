"""What processes measured of one test, and why its times cannot be compared where they cannot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_opprof.compare.time_comparison import Sides
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.metrics import WALL_TIME
from pytest_opprof.results.run import MeasurementStatus, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_opprof.compare.time_comparison import TimeSettings
    from pytest_opprof.results.run import Run, TestResult

_MOST_TOLD = 3
_FAILED = frozenset({Outcome.FAILED, Outcome.ERROR})


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """One test in each process that had it, in the order in which they ran."""

    base: tuple[TestResult, ...]
    head: tuple[TestResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a test's times are not compared; the verdict is None where that is nobody's fault."""

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
    """The fastest step of each process that counts, or why there is nothing to compare."""
    for objection in (_not_on_both_sides, _not_passed, _not_measured, _other_workload, _not_timed):
        if refusal := objection(test):
            return refusal
    counted = undisturbed(test, settings=settings)
    base_ns, head_ns = (
        tuple(each.totals[WALL_TIME.name].low for each in side) for side in (counted.base, counted.head)
    )
    return Sides(base_ns=base_ns, head_ns=head_ns)


def undisturbed(test: Readings, *, settings: TimeSettings) -> Readings:
    """The test without the processes that others disturbed all the time, where enough are left of both sides.

    What is left out does not depend on what was measured, only on how fast the machine was around it.
    """
    base, head = (
        tuple(each for each in side if not each.timing.was_disturbed) for side in (test.base, test.head)
    )
    if min(len(base), len(head)) < settings.least_processes:
        return test
    return Readings(base=base, head=head)


def disturbances(tests: Mapping[str, Readings], *, settings: TimeSettings) -> Iterator[str]:
    """What to say of the processes that others disturbed: those left out, and those that had to be judged."""
    told: dict[bool, list[str]] = {True: [], False: []}
    for node_id, test in tests.items():
        processes = [*test.base, *test.head]
        disturbed = sum(each.timing.was_disturbed for each in processes)
        if disturbed:
            is_left_out = undisturbed(test, settings=settings) is not test
            told[is_left_out].append(f"{disturbed} of {len(processes)} processes of {node_id}")
    for is_left_out, words in told.items():
        more = f" and of {len(words) - _MOST_TOLD} tests more" if len(words) > _MOST_TOLD else ""
        what = "these are left out" if is_left_out else "too many to leave them out"
        if words:
            yield f"the machine was disturbed in {', '.join(words[:_MOST_TOLD])}{more}: {what}"


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
    """A head that broke a test is at fault; a base on which it fails has no time to compare with."""
    bad = {
        name: [each for each in side if each.outcome in _FAILED]
        for name, side in (("head", test.head), ("base", test.base))
    }
    if bad["head"] and not bad["base"]:
        reason = f"the test failed in {_of(bad['head'], test.head)} of the head, and in none of the base"
        return Refusal(verdict=Verdict.ERROR, reason=reason)
    if bad["base"]:
        also = f" and in {_of(bad['head'], test.head)} of the head" if bad["head"] else ""
        reason = f"the test failed in {_of(bad['base'], test.base)} of the base{also}"
        return Refusal(verdict=None, reason=reason)
    for name, side in (("base", test.base), ("head", test.head)):
        skipped = [each for each in side if each.outcome is Outcome.SKIPPED]
        if skipped:
            reason = f"the test was skipped in {_of(skipped, side)} of the {name}"
            return Refusal(verdict=None, reason=reason)
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
    """Equal code takes equal steps: other numbers of them are other work, whatever it took."""
    before, after = ({(each.steps, each.timing.planned) for each in side} for side in (test.base, test.head))
    if before == after and len(before) == 1:
        return None
    told = f"{_steps(before)} in the base, {_steps(after)} in the head"
    return Refusal(verdict=Verdict.INCONCLUSIVE, reason=f"the sides did other work: {told}")


def _not_timed(test: Readings) -> Refusal | None:
    for name, side in (("head", test.head), ("base", test.base)):
        missing = [each for each in side if WALL_TIME.name not in each.totals]
        if missing:
            why = missing[0].timing.reason or "its processes timed no steps"
            reason = f"no wall time in {_of(missing, side)} of the {name}: {why}"
            return Refusal(verdict=Verdict.INCONCLUSIVE, reason=reason)
        # Also refuses what is no number at all.
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
