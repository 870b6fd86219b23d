"""Verdicts on times: what is flagged, what is confirmed, and each reason for no answer."""

import os
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.documents.ab_runs import MS, PROBE_NS, TEST, many_tests, near, one_test, side, timed_test
from support.documents.strategies import simple_run

from pytest_opprof.compare.timing.comparison import Direction, TestTimes, TimeComparison, TimeSettings
from pytest_opprof.compare.timing.judge import compare_times
from pytest_opprof.compare.timing.samples import readings_by_test, short_of_undisturbed
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.errors import UsageError
from pytest_opprof.metrics import WALL_TIME
from pytest_opprof.results.run import (
    Environment,
    Measurement,
    MeasurementStatus,
    Outcome,
    Run,
    TestResult,
    Timing,
)
from pytest_opprof.results.samples import Samples

LENIENT = TimeSettings(max_noise=Fraction(1))
EXAMPLES = 100 if os.environ.get("OPPROF_COUNTS") == "all" else 15
BASE = near(4 * MS, seed=1)
SAME = near(4 * MS, seed=2)
SLOWER = near(round(4.4 * MS), seed=3)
AGAIN = (side(near(4 * MS, seed=4)), side(near(round(4.4 * MS), seed=5)))


def judged(base: list[Run], head: list[Run], **others: Any) -> TestTimes:
    found = compare_times(base, head, **others).test(TEST)
    assert found is not None
    return found


def test_slower_head_is_regressed_once_confirmed() -> None:
    found = judged(side(BASE), side(SLOWER), confirmation=AGAIN)
    assert found.verdict is Verdict.REGRESSED
    assert found.reason.startswith("slower by 10.")
    assert "confirmed in 12 more a side" in found.reason
    assert found.cause.startswith("aten::addmm +3")
    assert found.cause.endswith("µs: same calls, slower")


def test_faster_head_is_improved_once_confirmed() -> None:
    base, head = AGAIN
    found = judged(side(SLOWER), side(BASE), confirmation=(head, base))
    assert found.verdict is Verdict.IMPROVED
    assert "same calls, faster" in found.cause


def test_equal_sides_pass() -> None:
    found = compare_times(side(BASE), side(SAME))
    assert found.counts == {Verdict.PASS: 1}
    assert found.flagged == ()
    assert found.control.noise_ppm is not None
    assert found.control.noise_ppm < 10_000


def test_flagged_test_is_inconclusive_until_confirmed() -> None:
    found = compare_times(side(BASE), side(SLOWER))
    assert found.flagged == (TEST,)
    test = found.tests[0]
    assert test.verdict is Verdict.INCONCLUSIVE
    assert test.flagged is Direction.SLOWER
    assert test.reason.endswith("and not confirmed by fresh processes")


def test_what_may_be_faster_passes_unconfirmed() -> None:
    found = judged(side(SLOWER), side(BASE))
    assert found.verdict is Verdict.PASS
    assert found.reason.endswith("and not confirmed by fresh processes")


def test_change_that_is_gone_in_fresh_processes_passes() -> None:
    again = (side(near(4 * MS, seed=6)), side(near(4 * MS, seed=7)))
    found = judged(side(BASE), side(SLOWER), confirmation=again)
    assert found.verdict is Verdict.PASS
    assert "and gone in 12 more a side" in found.reason


def test_confirmation_that_could_not_have_seen_it_is_inconclusive() -> None:
    # The halves of the fresh base differ by more than the change that is asked about.
    unquiet = [4_000_000, 4_800_000, 4_800_001, 4_000_001] * 3
    found = judged(side(BASE), side(SLOWER), confirmation=(side(unquiet), side(unquiet)))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "and not seen in 12 more a side (p = " in found.reason
    assert found.reason.endswith("whose base differs from itself by 20.0 %")


def disturbed(runs: list[Run], *at: int, probe_ns: int = 2 * PROBE_NS) -> list[Run]:
    """The same, where others slowed down all that these processes did, to twice the time."""
    timing = Timing(steps=3, planned=3, disturbed=3, probe_ns=probe_ns)
    return [
        with_test(run, **vars_of(one_test(8 * MS)) | {"timing": timing}) if each in at else run
        for each, run in enumerate(runs)
    ]


def test_processes_that_others_disturbed_are_left_out() -> None:
    base, head = disturbed(side(BASE), 1, 2, 7, 11), disturbed(side(SLOWER), 0)
    again = (disturbed(AGAIN[0], 3), AGAIN[1])
    found = compare_times(base, head, confirmation=again)
    (test,) = found.tests
    assert test.verdict is Verdict.REGRESSED
    assert test.reason.startswith("slower by 10.")
    assert "in 8 and 11 processes" in test.reason
    assert "confirmed in 11 and 12 more" in test.reason
    assert test.times is not None
    assert test.times.base_ns == tuple(ns for at, ns in enumerate(BASE) if at not in {1, 2, 7, 11})
    assert all(op.base_ns < 4 * MS for op in test.ops), "nor do their ops count"
    assert found.notes == (f"the machine was disturbed in 5 of 24 processes of {TEST}: these are left out",)


def test_where_too_few_would_be_left_all_are_judged() -> None:
    found = compare_times(disturbed(side(BASE), 0, 1, 2, 3, 4), side(BASE))
    assert found.tests[0].times is not None
    assert len(found.tests[0].times.base_ns) == 12
    assert found.notes == (
        f"the machine was disturbed in 5 of 24 processes of {TEST}: too many to leave them out",
    )


def test_many_disturbed_tests_are_told_in_one_sentence() -> None:
    runs = many_tests([BASE] * 5)
    timing = Timing(steps=3, planned=3, disturbed=1, probe_ns=2 * PROBE_NS)
    runs[0] = replace(runs[0], tests=tuple(replace(test, timing=timing) for test in runs[0].tests))
    (note,) = compare_times(runs, many_tests([SAME] * 5)).notes
    assert note.count("1 of 24 processes of tests/test_a.py::test_") == 3
    assert note.endswith(" and of 2 tests more: these are left out")


def test_a_machine_that_was_slower_at_first_is_judged_at_its_speed_then() -> None:
    """Whatever was taken for its usual speed: eight of each side were timed at the faster one."""
    base, head = disturbed(side(BASE), 0, 1, 2, 3), disturbed(side(SLOWER), 0, 1, 2, 3)
    (test,) = compare_times(base, head).tests
    assert test.times is not None
    assert test.times.base_ns == tuple(BASE[4:])
    assert test.flagged is Direction.SLOWER


def test_a_few_faster_processes_are_left_out() -> None:
    """A boosted clock is not what most processes met."""
    base = disturbed(side(BASE), 5, 6, probe_ns=PROBE_NS * 3 // 4)
    found = compare_times(base, side(SAME))
    assert found.tests[0].times is not None
    assert len(found.tests[0].times.base_ns) == 10
    assert "disturbed in 2 of 24 processes" in found.notes[0]


@pytest.mark.parametrize(("percent", "left"), [(4, 12), (5, 11)])
def test_five_percent_more_are_another_speed(percent: int, left: int) -> None:
    base = disturbed(side(BASE), 3, probe_ns=PROBE_NS * (100 + percent) // 100)
    (test,) = compare_times(base, side(SAME)).tests
    assert test.times is not None
    assert len(test.times.base_ns) == left


def test_speeds_that_nobody_asked_for_leave_nothing_out() -> None:
    base = [with_test(run, timing=replace(run.tests[0].timing, probe_ns=0)) for run in side(BASE)]
    found = compare_times(base, disturbed(side(SAME), 3))
    assert found.tests[0].times is not None
    assert (len(found.tests[0].times.head_ns), found.notes) == (12, ())


def wanting(base: list[Run], head: list[Run], *, wanted: int = 12) -> tuple[str, ...]:
    return short_of_undisturbed(readings_by_test(base, head), wanted=wanted)


def test_tests_that_met_a_disturbed_machine_want_more_processes() -> None:
    assert wanting(side(BASE), side(SAME)) == ()
    assert wanting(disturbed(side(BASE), 3), side(SAME)) == (TEST,)
    assert wanting(disturbed(side(BASE), 3), side(SAME), wanted=11) == ()


def test_a_test_of_many_speeds_wants_no_more_processes() -> None:
    """Who disturbs itself would go on to do so."""
    base = side(BASE)
    for at in range(9):
        base = disturbed(base, at, probe_ns=PROBE_NS * (3 + at) // 2)
    assert wanting(base, side(SAME)) == ()


def test_further_steps_on_a_busy_machine_are_no_other_work() -> None:
    longer = one_test(4 * MS)
    wall = Samples.of([4 * MS] * 20)
    runs = side(BASE)
    runs[2] = with_test(
        runs[2],
        timing=Timing(steps=20, planned=3, disturbed=9, probe_ns=PROBE_NS),
        totals={**longer.totals, WALL_TIME.name: wall},
    )
    assert judged(runs, side(SAME)).verdict is Verdict.PASS


def slowed(times: list[int], *at: int, by: float = 1.5) -> list[int]:
    """The same, where the machine slowed some processes down and nobody noticed."""
    return [round(time * by) if each in at else time for each, time in enumerate(times)]


FIRST = "tests/test_a.py::test_0"


def hidden(of: int) -> tuple[list[Run], list[Run]]:
    """Fourteen tests, of which the first are slower by a fifth; five processes of each side met a slow machine."""
    at = (0, 1, 4, 5, 8)
    later = slowed(near(round(4.8 * MS), seed=12), *at)
    return (
        many_tests([slowed(BASE, *at)] * of + [BASE] * (14 - of)),
        many_tests([later] * of + [SAME] * (14 - of)),
    )


def second_look(base: list[int], head: list[int], *, of: int = 1) -> TestTimes:
    """What is said of the first of them after these fresh processes."""
    again = many_tests([base] * of), many_tests([head] * of)
    found = compare_times(*hidden(of), confirmation=again, settings=LENIENT).test(FIRST)
    assert found is not None
    return found


def test_a_change_that_processes_hide_gets_a_second_look() -> None:
    found = compare_times(*hidden(1), settings=LENIENT)
    assert found.flagged == (FIRST,)
    assert found.counts == {Verdict.INCONCLUSIVE: 1, Verdict.PASS: 13}
    test = second_look(near(4 * MS, seed=13), near(round(4.8 * MS), seed=14))
    assert test.verdict is Verdict.REGRESSED
    assert test.reason.startswith("slower by ")
    assert "(p = 0.035)" in test.reason
    assert "confirmed in 12 more a side" in test.reason


def test_processes_in_a_slow_state_hide_no_change() -> None:
    """Equal code has such processes too, and chance decides on which side there are more of them."""
    base, head = slowed(BASE, 0, 1, 4, 5, 8), slowed(SLOWER, 3)
    found = judged(side(base), side(head), confirmation=AGAIN, settings=LENIENT)
    assert found.verdict is Verdict.REGRESSED
    assert found.reason.startswith("slower by 10.")


def test_more_processes_in_a_slow_state_are_no_regression() -> None:
    found = judged(side(slowed(BASE, 1)), side(slowed(SAME, 2, 3, 5, 6, 9)))
    assert (found.verdict, found.flagged) == (Verdict.PASS, None)


def test_a_second_look_that_sees_nothing_passes() -> None:
    test = second_look(near(4 * MS, seed=13), near(4 * MS, seed=14))
    assert (test.verdict, "and gone in 12 more a side" in test.reason) == (Verdict.PASS, True)


def test_two_looks_that_are_unsure_together_are_inconclusive() -> None:
    test = second_look(near(4 * MS, seed=1, spread=0.15), near(round(4.3 * MS), seed=101, spread=0.15))
    assert (test.verdict, test.reason[-14:]) == (Verdict.INCONCLUSIVE, ", and not sure")


def test_two_looks_that_say_nothing_together_pass() -> None:
    noisy = [near(round(middle * MS), seed=seed, spread=0.3) for seed, middle in ((5, 4), (105, 4.2))]
    test = judged(
        side(noisy[0]), side(noisy[1]), confirmation=(side(noisy[0]), side(noisy[1])), settings=LENIENT
    )
    assert test.verdict is Verdict.PASS
    assert test.reason.endswith("not told apart from noise")


def test_what_was_never_sure_must_be_beyond_doubt_among_many() -> None:
    """One p of a hundred is below 0.01 by chance, and here are as many questions as tests."""
    base, head = near(4 * MS, seed=6, spread=0.03), near(round(4.15 * MS), seed=106, spread=0.03)
    verdicts = [second_look(base, head, of=of).verdict for of in (1, 2)]
    assert verdicts == [Verdict.REGRESSED, Verdict.INCONCLUSIVE]


def test_unsure_confirmation_is_inconclusive() -> None:
    wide = near(round(4.3 * MS), seed=101, spread=0.15)
    again = (side(near(4 * MS, seed=1, spread=0.15)), side(wide))
    found = judged(side(BASE), side(SLOWER), confirmation=again)
    assert (found.verdict, "not sure in" in found.reason) == (Verdict.INCONCLUSIVE, True)


def test_confirmation_without_the_test_is_inconclusive() -> None:
    other = simple_run(one_test(4 * MS, node_id="tests/test_a.py::test_y"))
    found = judged(side(BASE), side(SLOWER), confirmation=([other], [other]))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.reason.endswith("not confirmed: no fresh process ran it")


def test_confirmation_of_too_few_processes_is_inconclusive() -> None:
    found = judged(side(BASE), side(SLOWER), confirmation=(AGAIN[0][:4], AGAIN[1][:4]))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.reason.endswith("that needs n >= 5 fresh processes a side")


def test_confirmation_that_failed_is_inconclusive() -> None:
    failing = [with_test(run, outcome=Outcome.FAILED) for run in AGAIN[1]]
    found = judged(side(BASE), side(SLOWER), confirmation=(AGAIN[0], failing))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "not confirmed: the test failed in 12 of 12 processes of the head" in found.reason


def test_small_change_is_no_regression() -> None:
    head = side(near(round(4.08 * MS), seed=3))
    assert judged(side(BASE), head).verdict is Verdict.PASS
    strict = TimeSettings(min_effect=Fraction(1, 100))
    assert judged(side(BASE), head, settings=strict).flagged is Direction.SLOWER


def test_change_below_the_bases_own_noise_is_no_regression() -> None:
    # Two states, four processes each: the halves of the base meet them unequally.
    base = [4_000_000, 4_300_000, 4_300_001, 4_000_001, 4_000_002, 4_300_002, 4_300_003, 4_000_003]
    head = [time + 310_000 for time in base]
    found = judged(side(base), side(head), settings=TimeSettings(max_noise=Fraction(1, 2)))
    assert found.noise_ppm == pytest.approx(75_000, rel=0.01)


def test_noisy_base_is_inconclusive() -> None:
    base = [4 * MS, 6 * MS, 6 * MS + 1, 4 * MS + 1] * 2
    found = judged(side(base), side(base))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "its base differs from itself by 50.0 %, and 20.0 % is the most" in found.reason


def test_base_that_differs_from_itself_stops_all() -> None:
    wrong = [4 * MS, 5 * MS, 5 * MS + 1, 4 * MS + 1] * 3
    found = compare_times(many_tests([BASE, wrong]), many_tests([SLOWER, wrong]))
    assert found.control.flagged == ("tests/test_a.py::test_1",)
    assert found.counts == {Verdict.INCONCLUSIVE: 2}
    assert found.flagged == ()
    assert found.tests[0].reason.startswith("the base differs from itself in tests/test_a.py::test_1")


def test_drift_meets_both_halves_of_the_control() -> None:
    drifting = [round(4 * MS * (1 + 0.02 * at)) for at in range(12)]
    found = compare_times(side(drifting), side(drifting))
    assert found.control.flagged == ()
    assert found.control.noise_ppm is not None
    assert found.control.noise_ppm < 30_000


def test_too_few_processes_are_refused() -> None:
    found = judged(side(BASE[:7]), side(SLOWER))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.reason == "needs n >= 8 processes a side: 7 measured the base, 12 the head"


def test_many_tests_need_more_processes() -> None:
    times = [BASE[:4]] * 10
    found = compare_times(many_tests(times), many_tests(times), settings=TimeSettings(least_processes=3))
    assert found.counts == {Verdict.INCONCLUSIVE: 10}
    assert found.tests[0].reason.startswith("needs n >= 5 processes a side for 10 tests")


def with_test(run: Run, **changes: Any) -> Run:
    """The run with its only test changed."""
    return replace(run, tests=(replace(run.tests[0], **changes),))


def without_time(test: TestResult) -> dict[str, Any]:
    return {
        "totals": {name: value for name, value in test.totals.items() if name != WALL_TIME.name},
        "timing": Timing(reason="call 3 raised OSError"),
    }


def with_time(value: float) -> Callable[[TestResult], dict[str, Any]]:
    """Another fastest step; a clock gives what no annotation can forbid."""
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
            "the sides did other work: ",
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
            "the sides did other work: ",
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
            (None, ERROR),
            "the test failed in 1 of 12 processes of the ",
            id="failed",
        ),
        pytest.param(
            lambda _: {"outcome": Outcome.SKIPPED}, (None, None), "the test was skipped", id="skipped"
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
def test_one_bad_process_is_said(
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


def vars_of(test: TestResult) -> dict[str, Any]:
    return {name: getattr(test, name) for name in ("steps", "totals", "ops", "timing")}


def test_test_that_fails_on_both_sides_is_not_run() -> None:
    failed = [with_test(run, outcome=Outcome.FAILED) for run in side(BASE)]
    found = judged(failed, failed)
    assert (found.verdict, found.reason) == (
        None,
        "the test failed in 12 of 12 processes of the base and in 12 of 12 processes of the head",
    )


def test_test_of_one_side_is_new_or_missing() -> None:
    one, two = many_tests([BASE]), many_tests([BASE, BASE])
    assert [test.verdict for test in compare_times(one, two).tests] == [Verdict.NEW, Verdict.PASS]
    assert [test.verdict for test in compare_times(two, one).tests] == [Verdict.MISSING, Verdict.PASS]


def test_new_test_is_held_to_its_limits() -> None:
    def limited(wall_ns: int) -> TestResult:
        return replace(one_test(wall_ns), limits={"aten::addmm.count": 1})

    found = judged([simple_run() for _ in BASE], side(BASE, limited))
    assert found.verdict is Verdict.REGRESSED
    assert found.reason.startswith("aten::addmm.count is 2 in each step, and <= 1 is allowed")


def test_side_without_processes_is_refused() -> None:
    with pytest.raises(UsageError, match="no process of the head finished"):
        compare_times(side(BASE), [])


def test_no_common_test_is_an_answer() -> None:
    found = compare_times([simple_run()], [simple_run()])
    assert found.tests == ()


def test_other_host_is_inconclusive() -> None:
    def on(runs: list[Run], model: str) -> list[Run]:
        return [replace(run, environment=Environment(fingerprint={"cpu_model": model})) for run in runs]

    found = judged(on(side(BASE), "A"), on(side(SAME), "B"))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.reason == "measured on more than one machine: CPU model A -> B"


def test_other_libraries_are_said_and_judged() -> None:
    head = [
        replace(
            run, environment=Environment(fingerprint={"python": "3.11", "numpy": "2.1", "torch": "2.13.0"})
        )
        for run in side(SAME)
    ]
    found = compare_times(side(BASE), head)
    assert found.notes == ("not the code alone: NumPy unknown -> 2.1",)


def test_more_calls_are_named_as_the_cause() -> None:
    def more(wall_ns: int) -> TestResult:
        return one_test(wall_ns, count=3)

    found = compare_times(side(BASE), side(SLOWER, more))
    test = found.tests[0]
    assert test.verdict is Verdict.REGRESSED, "the exact gate needs no confirmation"
    assert test.reason.startswith("1 more op in each step than")
    assert "certified in 12 processes" in test.reason
    assert test.cause.endswith("µs: more calls, 2 -> 3")


def test_more_ops_regress_where_times_do_not() -> None:
    found = judged(side(BASE), side(SAME, lambda wall_ns: one_test(wall_ns, count=3)))
    assert found.verdict is Verdict.REGRESSED
    assert found.cause.startswith("aten::addmm +1")


def test_count_that_one_process_sees_otherwise_gates_nothing() -> None:
    base = side(BASE)
    base[3] = side([BASE[3]], lambda wall_ns: one_test(wall_ns, count=3))[0]
    assert judged(base, side(SAME)).verdict is Verdict.PASS


def test_spread_over_many_ops_is_said() -> None:
    def spread(wall_ns: int) -> TestResult:
        return timed_test([wall_ns] * 3, ops={f"op_{at}": (1, wall_ns // 20) for at in range(20)})

    noisy = near(round(4.4 * MS), seed=3, spread=0.01)
    found = judged(side(BASE, spread), side(noisy, spread))
    assert found.cause.startswith("op_")
    assert found.cause.count("same calls, slower") == 2


def test_largest_part_is_named_where_nothing_is_significant() -> None:
    def runs(wall_ns: int, op_ns: list[int]) -> list[Run]:
        tests = (timed_test([wall_ns] * 3, ops={"aten::mm": (1, each)}, node_id=TEST) for each in op_ns)
        return [simple_run(test) for test in tests]

    base = runs(8 * MS, [1 * MS] * 4 + [9 * MS] * 8)
    head = runs(12 * MS, [MS // 2] * 2 + [5 * MS] * 10)
    found = judged(base, head)
    assert found.cause == "mostly aten::mm +4.00 ms: same calls, slower (by itself not told apart from noise)"


def test_rounds_together_tell_an_op_from_noise() -> None:
    def runs(wall_ns: int, op_ns: list[int]) -> list[Run]:
        tests = (timed_test([wall_ns] * 3, ops={"aten::mm": (1, each)}, node_id=TEST) for each in op_ns)
        return [simple_run(test) for test in tests]

    base = [MS + at * at * MS // 100 for at in range(12)]
    sides = runs(8 * MS, base), runs(12 * MS, [time + MS // 4 for time in base])
    alone, together = (judged(*sides, confirmation=again).ops for again in (None, sides))
    assert [op.is_significant for op in (*alone, *together)] == [False, True]


def test_no_op_is_named_where_none_stands_out() -> None:
    def other(wall_ns: int) -> TestResult:
        return timed_test([wall_ns] * 3, ops={"aten::mm": (1, MS)}, node_id=TEST)

    assert judged(side(BASE, other), side(SLOWER, other)).cause == "no single op stands out"


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.integers(0, 2**32), st.floats(0.8, 1.25))
def test_swapping_sides_turns_regressed_into_improved(seed: int, factor: float) -> None:
    source = random.Random(seed)  # noqa: S311 - numbers to test with
    base, head, base_again, head_again = (
        side(near(round(middle), seed=source.getrandbits(32), spread=0.01))
        for middle in (4 * MS, 4 * MS * factor) * 2
    )
    there = compare_times(base, head, confirmation=(base_again, head_again))
    back = compare_times(head, base, confirmation=(head_again, base_again))
    # The control is the base's alone: a noisier base is a higher floor.
    assume(all(quiet(each) for each in (there, back)))
    mirrored = {
        Verdict.REGRESSED: {Verdict.IMPROVED},
        Verdict.IMPROVED: {Verdict.REGRESSED},
        Verdict.PASS: {Verdict.PASS, Verdict.INCONCLUSIVE},
        Verdict.INCONCLUSIVE: {Verdict.PASS},
    }
    assert there.tests[0].verdict is not None
    assert back.tests[0].verdict in mirrored[there.tests[0].verdict]


def quiet(found: TimeComparison) -> bool:
    return not found.control.flagged and (found.control.noise_ppm or 0) <= 30_000


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    st.lists(st.lists(st.integers(1 * MS, round(1.1 * MS)), min_size=8, max_size=8), min_size=1, max_size=6)
)
def test_side_against_itself_passes(times: list[list[int]]) -> None:
    found = compare_times(many_tests(times), many_tests(times))
    assert found.flagged == ()
    assert set(found.counts) <= {Verdict.PASS} or found.control.flagged


def test_equal_code_is_called_other_no_more_often_than_promised() -> None:
    trials = 200 if os.environ.get("OPPROF_COUNTS") == "all" else 40
    source = random.Random(20)  # noqa: S311 - numbers to test with

    def processes() -> list[Run]:
        # Skewed, as processes are: most near the floor, some far above it.
        return many_tests([[round(MS * (1 + source.expovariate(12))) for _ in range(12)] for _ in range(5)])

    called: Counter[Verdict] = Counter()
    for _ in range(trials):
        rounds = (processes(), processes()), (processes(), processes())
        called.update(set(compare_times(*rounds[0], confirmation=rounds[1]).counts))
    # What was never sure is confirmed in 1 of 100 by chance; what was, in 1 of 100 of at most 10.
    assert called[Verdict.REGRESSED] + called[Verdict.IMPROVED] <= (8 if trials == 200 else 3)
    # Two rounds that are both unsure, and say the same: 1 of 20 of those that seemed slower twice.
    assert called[Verdict.INCONCLUSIVE] <= trials // 8
