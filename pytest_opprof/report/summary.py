"""A comparison for every report: the headline, the counts, and the rows of each test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pytest_opprof.compare.comparison import Comparison, TestComparison
from pytest_opprof.compare.sentences import ran
from pytest_opprof.compare.timing.comparison import TestTimes, TimeComparison
from pytest_opprof.compare.timing.verdicts import control_needs
from pytest_opprof.compare.verdicts import DEFAULT_FAIL_ON, Verdict, parse_fail_on
from pytest_opprof.kinds import OpKind
from pytest_opprof.metrics import TOTALS, Family
from pytest_opprof.report.rows import Row, change_rows, limit_rows, time_row
from pytest_opprof.results.names import STEP_NAME
from pytest_opprof.results.run import Outcome
from pytest_opprof.units import Unit, format_quantity
from pytest_opprof.wording import counted, listed

# A comparison document: the exact gates alone, or with the times of an A/B.
Judged: TypeAlias = Comparison | TimeComparison

# A document does not have its session's fail-on: a report calls failing what fails by default.
FAILING = parse_fail_on(DEFAULT_FAIL_ON).verdicts
# Their rows need no sentence.
QUIET = frozenset({Verdict.PASS, Verdict.NEW, None})
VERDICT_WORDS = {Verdict.ERROR: "in error", Verdict.PASS: "passed"}
_MOST_NAMES = 3
_FAILED = frozenset({Outcome.FAILED, Outcome.ERROR})


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentField:
    """A field of both sides' fingerprints; empty on a side that lacks it."""

    name: str
    base: str
    head: str

    @property
    def differs(self) -> bool:
        """Whether the sides have different values of it."""
        return self.base != self.head


@dataclass(frozen=True, slots=True, kw_only=True)
class TestSummary:
    """One test of a comparison."""

    __test__ = False  # not a test class for pytest to collect

    node_id: str
    verdict: Verdict | None  # of all its gates; None if it was only measured, or did not run
    reason: str
    rows: tuple[Row, ...]  # its time in an A/B, broken limits, ops, totals; at least one if it fails
    # Both sides, and the exact gates' results; None if an A/B has no counts of it.
    exact: TestComparison | None
    times: TestTimes | None = None  # its times; None except in an A/B

    @property
    def is_failing(self) -> bool:
        """Whether it fails a session by default."""
        return self.verdict in FAILING

    @property
    def failing_rows(self) -> tuple[Row, ...]:
        """The rows that fail it; none if it passes."""
        return tuple(row for row in self.rows if row.verdict in FAILING) if self.is_failing else ()

    @property
    def did_run(self) -> bool:
        """Whether it has a verdict, or at least a measurement."""
        return self.verdict is not None or (self.exact is not None and is_measured(self.exact))


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A comparison, test by test; failures first."""

    exact: Comparison  # the exact gates' results
    times: TimeComparison | None  # the A/B that it belongs to; None for a comparison without times
    tests: tuple[TestSummary, ...]

    @classmethod
    def of(cls, judged: Judged) -> Summary:
        """Collect the parts of each test."""
        if isinstance(judged, Comparison):
            return cls(
                exact=judged, times=None, tests=tuple(_summary(test, exact=test) for test in judged.tests)
            )
        exact = {test.node_id: test for test in judged.exact.tests}
        tests = tuple(_summary(test, exact=exact.get(test.node_id), times=test) for test in judged.tests)
        return cls(exact=judged.exact, times=judged, tests=tests)

    @property
    def counts(self) -> Counter[Verdict]:
        """How many tests got which verdict."""
        return (self.times or self.exact).counts

    @property
    def verdict(self) -> Verdict | None:
        """The headline's verdict: the worst of the tests'; None without any.

        A regression outranks a failed measurement, and new tests leave a PASS.
        """
        found = [verdict for verdict in Verdict if self.counts[verdict]]
        if Verdict.REGRESSED in found:
            return Verdict.REGRESSED
        if Verdict.PASS in found and found[0] is Verdict.NEW:
            return Verdict.PASS
        return found[0] if found else None

    @property
    def failed(self) -> int:
        """How many tests failed by themselves: see `failed_alone`."""
        return failed_alone(self.times or self.exact)

    @property
    def headline(self) -> str:
        """``REGRESSED: 2 of 41 tests``, only in our words; tests that failed by themselves are added."""
        return f"{self._judged}, {self.failed} failed" if self.failed else self._judged

    @property
    def _judged(self) -> str:
        ran = sum(test.did_run for test in self.tests)
        tests = counted(ran, "test")
        # In a run without a baseline, only limits can gate a test.
        is_alone = self.times is None and self.exact.base is None
        if self.verdict is None or (self.verdict is Verdict.PASS and is_alone):
            held = f", {self.counts[Verdict.PASS]} within limits" if self.verdict else ""
            return f"measured {tests}{held}" if ran else "no test was measured"
        many = self.counts[self.verdict]
        return f"{self.verdict.label}: {tests if many == ran else f'{many} of {tests}'}"

    @property
    def totals(self) -> str:
        """How many tests got which verdict, and what was lost: the last line on a terminal."""
        return exact_totals(self.exact) if self.times is None else time_totals(self.times)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about the whole."""
        if self.times is None:
            return (
                *self.exact.notes,
                *(naming(sentence, tests) for sentence, tests in uncompared(self.exact)),
            )
        return (*self.times.notes, f"control (base against base): {control_in_words(self.times)}")

    @property
    def environment(self) -> tuple[EnvironmentField, ...]:
        """Both sides' environments, differences first."""
        head = self.exact.head.environment.fingerprint
        base = self.exact.base.environment.fingerprint if self.exact.base else head
        fields = (
            EnvironmentField(name=name, base=base.get(name, ""), head=head.get(name, ""))
            for name in sorted({*base, *head})
        )
        return tuple(sorted(fields, key=lambda field: not field.differs))


def _summary(
    test: TestComparison | TestTimes, *, exact: TestComparison | None, times: TestTimes | None = None
) -> TestSummary:
    rows = [time_row(times)] if times is not None and times.times is not None else []
    if exact is not None:
        rows += [*limit_rows(exact), *change_rows(exact)]
    if test.verdict not in QUIET and all(row.verdict is not test.verdict for row in rows):
        # They do not say why.
        rows.insert(0, Row(test=test.node_id, why=test.reason, verdict=test.verdict))
    return TestSummary(
        node_id=test.node_id,
        verdict=test.verdict,
        reason=test.reason,
        rows=tuple(rows),
        exact=exact,
        times=times,
    )


def is_measured(test: TestComparison) -> bool:
    """Whether a test ran and has numbers."""
    return test.head is not None and ran(test.head)


def failed_alone(judged: Judged) -> int:
    """How many tests failed by themselves, or in a fixture, so that nothing of them was compared."""
    exact = judged if isinstance(judged, Comparison) else judged.exact
    failed = {test.node_id for test in exact.tests if test.head is not None and test.head.outcome in _FAILED}
    return sum(test.verdict is None and test.node_id in failed for test in judged.tests)


def uncompared(comparison: Comparison) -> list[tuple[str, list[TestComparison]]]:
    """The tests that no gate checks: a sentence on each kind, and its tests."""
    idle = [test for test in comparison.tests if is_measured(test) and _is_idle(test)]
    left = [test for test in comparison.tests if test.head is not None and test.head.is_left_alone]
    left = [test for test in left if test.verdict is None]
    kinds = (("ran no op or range", idle), ("cannot be repeated", left))
    return [
        (f"{counted(len(tests), 'test')} {what}: nothing is compared", tests)
        for what, tests in kinds
        if tests
    ]


def naming(sentence: str, tests: Sequence[TestComparison]) -> str:
    """The sentence with the names of its tests, the first few."""
    return f"{sentence} ({listed([test.node_id for test in tests], most=_MOST_NAMES)})"


def _is_idle(test: TestComparison) -> bool:
    head = test.head
    if head is None or not head.steps or test.verdict not in QUIET:
        return False
    ran = any(row.kind is not OpKind.CALL and row.name != STEP_NAME for row in head.ops)
    # A nonzero total, such as memory, is compared.
    counted = (metric for name, value in head.totals.items() if value.high and (metric := TOTALS.get(name)))
    return not ran and all(metric.family is Family.TIME for metric in counted)


def counts_in_words(counts: Counter[Verdict]) -> list[str]:
    """How many tests got which verdict, the worst first: ``1 regressed``, ``3 passed``."""
    return [
        f"{counts[verdict]} {VERDICT_WORDS.get(verdict, verdict.value)}"
        for verdict in Verdict
        if counts[verdict]
    ]


def exact_totals(comparison: Comparison) -> str:
    """``1 regressed, 3 passed · nothing dropped``."""
    words = counts_in_words(comparison.counts)
    if measured := sum(test.verdict is None and is_measured(test) for test in comparison.tests):
        words.append(f"{measured} measured")
    parts = [", ".join(words) or "nothing measured", _losses(comparison)]
    failed = failed_alone(comparison)
    if failed:
        parts.append(f"{counted(failed, 'test')} failed, not compared")
    if comparison.not_run > failed:
        parts.append(f"{counted(comparison.not_run - failed, 'other test')} not run")
    return " · ".join(parts)


def time_totals(comparison: TimeComparison) -> str:
    """``1 regressed, 3 passed · 12 processes a side``."""
    words = counts_in_words(comparison.counts)
    failed = failed_alone(comparison)
    if failed:
        words.append(f"{failed} failed")
    if not_run := sum(test.verdict is None for test in comparison.tests) - failed:
        words.append(f"{not_run} not run")
    base, head = comparison.base_processes, comparison.head_processes
    sides = f"{base} processes a side" if base == head else f"{base} and {head} processes"
    return f"{', '.join(words) or 'no test was measured'} · {sides}"


def control_in_words(comparison: TimeComparison) -> str:
    """An A/B's comparison of the base with itself: ``nothing flagged, noise floor 1.9 %``."""
    control = comparison.control
    if control.noise_ppm is None:
        return "no noise floor: fewer than two base processes"
    floor = f"noise floor {format_quantity(control.noise_ppm, unit=Unit.PPM)} ({control.noisiest})"
    more = ", ..." if len(control.flagged) > _MOST_NAMES else ""
    flagged = ", ".join(control.flagged[:_MOST_NAMES]) + more
    found = f"{flagged} differs from itself, so times are not judged" if flagged else _unflagged(comparison)
    return f"{found}, {floor}"


def _unflagged(comparison: TimeComparison) -> str:
    """A control that flags nothing, and what it could not have flagged."""
    timed = [test.times for test in comparison.tests if test.times is not None]
    needs = control_needs(timed)
    if needs > len(timed):
        return "too few processes to flag a test"
    return "nothing flagged" + (f" (at least {needs} of {len(timed)} tests must differ)" if needs > 1 else "")


def _losses(comparison: Comparison) -> str:
    captures = [test.head.capture for test in comparison.tests if test.head is not None]
    dropped = sum(capture.dropped for capture in captures)
    truncated = sum(capture.truncated for capture in captures)
    sampled = sum(capture.is_sampled for capture in captures)
    torn = sum(bool(capture.device_gap) for capture in captures)
    nameless = sum(capture.names_overflowed > 0 for capture in captures)
    omitted = sum(test.head.ops_omitted > 0 for test in comparison.tests if test.head is not None)
    told = [f"{counted(dropped, 'event')} dropped"] if dropped else [] if truncated else ["nothing dropped"]
    if truncated:
        told.append(f"{counted(truncated, 'recording')} cut off")
    of_tests = {
        "with incomplete device records": torn,
        "with too many names": nameless,
        "with rows left out": omitted,
        "sampled": sampled,
    }
    told += [f"{counted(many, 'test')} {what}" for what, many in of_tests.items() if many]
    return ", ".join(told)
