"""A process with losses or different work is reported for its side, and its times are not judged."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from support.documents.ab_runs import MS, one_test, side
from support.documents.judged_times import BASE, SAME, judged, vars_of, with_test

from pytest_opprof.compare.sessions import compare_runs
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.metrics import WALL_TIME
from pytest_opprof.results.run import Measurement, MeasurementStatus, Outcome, TestResult, Timing
from pytest_opprof.results.samples import Samples


def without_time(test: TestResult) -> dict[str, Any]:
    return {
        "totals": {name: value for name, value in test.totals.items() if name != WALL_TIME.name},
        "timing": Timing(reason="call 3 raised OSError"),
    }


def with_time(value: float) -> Callable[[TestResult], dict[str, Any]]:
    """Another fastest step, with a clock value that no annotation can forbid."""
    values: Any = (value, 5 * MS, 5 * MS)
    samples = Samples(steps=3, total=0, low=values[0], high=5 * MS, values=values)
    return lambda test: {"totals": {**test.totals, WALL_TIME.name: samples}}


def measured_as(status: MeasurementStatus) -> Callable[[TestResult], dict[str, Any]]:
    return lambda test: {"measurement": Measurement(status=status, reason="call 2 raised OSError")}


INCONCLUSIVE, ERROR = Verdict.INCONCLUSIVE, Verdict.ERROR


@pytest.mark.parametrize("which", ["base", "head"])
@pytest.mark.parametrize(
    ("change", "verdicts", "words"),
    [
        pytest.param(
            lambda test: (
                {"timing": replace(test.timing, steps=4, planned=4)}
                | {"totals": {**test.totals, WALL_TIME.name: Samples.of([4 * MS] * 4)}}
            ),
            (INCONCLUSIVE, INCONCLUSIVE),
            "base and head did different work: ",
            id="other-number-of-timed-steps",
        ),
        pytest.param(
            lambda test: vars_of(one_test(4 * MS, step=2)),
            (INCONCLUSIVE, INCONCLUSIVE),
            "2 profiled and 3 timed steps or 3 profiled and 3 timed steps in the",
            id="other-number-of-profiled-steps",
        ),
        pytest.param(
            without_time,
            (INCONCLUSIVE, INCONCLUSIVE),
            "base and head did different work: ",
            id="vanished-with-its-steps",
        ),
        pytest.param(
            lambda test: without_time(test) | {"timing": test.timing},
            (INCONCLUSIVE, INCONCLUSIVE),
            "no wall time in 1 of 12 processes of the ",
            id="vanished-metric",
        ),
        pytest.param(
            with_time(-1),
            (INCONCLUSIVE, INCONCLUSIVE),
            "a step took -1 ns in 1 of 12 processes",
            id="clock-went-backwards",
        ),
        pytest.param(
            with_time(0), (INCONCLUSIVE, INCONCLUSIVE), "a step took 0 ns in 1 of 12", id="clock-stood-still"
        ),
        pytest.param(
            with_time(float("nan")), (INCONCLUSIVE, INCONCLUSIVE), "a step took nan ns in 1 of 12", id="nan"
        ),
        pytest.param(
            lambda _: {"outcome": Outcome.FAILED},
            (INCONCLUSIVE, ERROR),
            "the test failed in 1 of 12 processes of the ",
            id="failed",
        ),
        pytest.param(
            lambda _: {"outcome": Outcome.SKIPPED},
            (INCONCLUSIVE, INCONCLUSIVE),
            "the test was skipped in 1 of 12 processes of the ",
            id="skipped",
        ),
        pytest.param(
            measured_as(MeasurementStatus.ERROR),
            (INCONCLUSIVE, ERROR),
            "no numbers in 1 of 12 processes",
            id="measurement-error",
        ),
        pytest.param(
            measured_as(MeasurementStatus.INCONCLUSIVE),
            (INCONCLUSIVE, INCONCLUSIVE),
            "call 2 raised OSError",
            id="measurement-inconclusive",
        ),
    ],
)
def test_one_bad_process_is_reported(
    which: str,
    change: Callable[[TestResult], dict[str, Any]],
    verdicts: tuple[Verdict | None, Verdict | None],
    words: str,
) -> None:
    sides = {"base": side(BASE), "head": side(SAME)}
    run = sides[which][4]
    sides[which][4] = with_test(run, **change(run.tests[0]))
    found = judged(sides["base"], sides["head"])
    assert found.verdict is dict(zip(("base", "head"), verdicts, strict=True))[which]
    assert words in found.reason


def test_one_failure_in_the_base_hides_no_rise_of_a_count() -> None:
    base = side(BASE)
    base[4] = with_test(base[4], outcome=Outcome.FAILED)
    found = judged(base, side(SAME, lambda ns: one_test(ns, count=3)))
    assert found.verdict is Verdict.REGRESSED
    assert "the test failed in 1 of 12 processes of the base" in found.reason


@pytest.mark.parametrize(
    ("which", "outcome"), [("base", Outcome.FAILED), ("base", Outcome.SKIPPED), ("head", Outcome.SKIPPED)]
)
def test_test_without_a_passed_process_of_a_side_is_not_run(which: str, outcome: Outcome) -> None:
    sides = {"base": side(BASE), "head": side(SAME)}
    sides[which] = [with_test(run, outcome=outcome) for run in sides[which]]
    assert judged(sides["base"], sides["head"]).verdict is None


LEFT_ALONE = Measurement(status=MeasurementStatus.NOT_RUN, reason="cannot be repeated: call 2 raised OSError")


@pytest.mark.parametrize(
    ("which", "verdict"),
    [(("base", "head"), None), (("base",), Verdict.NEW), (("head",), Verdict.ERROR)],
)
def test_test_that_cannot_be_repeated_is_judged_as_in_a_session(
    which: tuple[str, ...], verdict: Verdict | None
) -> None:
    sides = {"base": side(BASE), "head": side(SAME)}
    for name in which:
        sides[name] = [with_test(run, measurement=LEFT_ALONE) for run in sides[name]]
    found = judged(sides["base"], sides["head"])
    assert found.verdict is verdict
    assert "cannot be repeated: call 2 raised OSError" in found.reason
    base, head = sides["base"][0], sides["head"][0]
    session = compare_runs(base, head, created=head.created, opprof_version=head.opprof_version)
    assert session.tests[0].verdict is verdict


def test_one_process_that_left_a_test_alone_is_reported() -> None:
    head = side(SAME)
    head[4] = with_test(head[4], measurement=LEFT_ALONE)
    assert judged(side(BASE), head).verdict is Verdict.INCONCLUSIVE


def test_test_that_fails_on_both_sides_is_not_run() -> None:
    failed = [with_test(run, outcome=Outcome.FAILED) for run in side(BASE)]
    found = judged(failed, failed)
    assert (found.verdict, found.reason) == (
        None,
        "the test failed in 12 of 12 processes of the base and in 12 of 12 processes of the head",
    )
