"""Times of an A/B to judge: equal sides, a slower head, and a confirmation in fresh processes."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

from support.documents.ab_runs import MS, TEST, near, side

from pytest_opprof.compare.timing.comparison import TestTimes, TimeSettings
from pytest_opprof.compare.timing.judge import compare_times
from pytest_opprof.results.run import Run, TestResult

LENIENT = TimeSettings(max_noise=Fraction(1))
BASE = near(4 * MS, seed=1)
SAME = near(4 * MS, seed=2)
SLOWER = near(round(4.4 * MS), seed=3)
AGAIN = (side(near(4 * MS, seed=4)), side(near(round(4.4 * MS), seed=5)))


def judged(base: list[Run], head: list[Run], **others: Any) -> TestTimes:
    found = compare_times(base, head, **others).test(TEST)
    assert found is not None
    return found


def with_test(run: Run, **changes: Any) -> Run:
    """The run with its only test changed."""
    return replace(run, tests=(replace(run.tests[0], **changes),))


def vars_of(test: TestResult) -> dict[str, Any]:
    return {name: getattr(test, name) for name in ("steps", "totals", "ops", "timing")}
