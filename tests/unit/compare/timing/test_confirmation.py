"""Results of fresh processes: confirmed, gone, unsure, or a second look at a hidden change."""

import re
from fractions import Fraction

import pytest
from support.documents.ab_runs import MS, many_tests, near, one_test, side
from support.documents.judged_times import AGAIN, BASE, LENIENT, SAME, SLOWER, judged, with_test
from support.documents.strategies import simple_run

from pytest_opprof.compare.timing.comparison import TestTimes, TimeSettings
from pytest_opprof.compare.timing.judge import compare_times
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.results.run import Outcome, Run


def test_change_that_is_gone_in_fresh_processes_passes() -> None:
    again = (side(near(4 * MS, seed=6)), side(near(4 * MS, seed=7)))
    found = judged(side(BASE), side(SLOWER), confirmation=again)
    assert found.verdict is Verdict.PASS
    assert "and gone in 12 more a side" in found.reason


def test_confirmation_that_could_not_have_seen_it_is_inconclusive() -> None:
    # the halves of the fresh base differ by more than the change in question
    unquiet = [4_000_000, 4_800_000, 4_800_001, 4_000_001] * 3
    found = judged(side(BASE), side(SLOWER), confirmation=(side(unquiet), side(unquiet)))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "and not seen in 12 more a side (0.0 %, p = " in found.reason
    assert found.reason.endswith("whose base differs from itself by 20.0 %")


@pytest.mark.parametrize("factor", [1.02, 0.98])
def test_confirmed_change_below_the_minimal_effect_passes(factor: float) -> None:
    first = near(round((2 * factor - 1) * 4 * MS), seed=3)
    again = (side(near(4 * MS, seed=4)), side(near(round(factor * 4 * MS), seed=5)))
    found = judged(side(BASE), side(first), confirmation=again)
    assert found.flagged
    assert found.verdict is Verdict.PASS
    assert re.search(
        r", but below --min-effect in 12 more a side \([+-]\d\.\d %, p = 3.7e-07\)", found.reason
    )
    strict = TimeSettings(min_effect=Fraction(1, 100))
    found = judged(side(BASE), side(first), confirmation=again, settings=strict)
    assert found.verdict is (Verdict.REGRESSED if factor > 1 else Verdict.IMPROVED)
    assert re.search(r", confirmed in 12 more a side \([+-]\d\.\d %, p = ", found.reason)


def slowed(times: list[int], *at: int, by: float = 1.5) -> list[int]:
    """The same times, but the machine slowed some processes down unnoticed."""
    return [round(time * by) if each in at else time for each, time in enumerate(times)]


FIRST = "tests/test_a.py::test_0"


def hidden(of: int) -> tuple[list[Run], list[Run]]:
    """Fourteen tests, the first of them slower by a fifth.

    Five processes of each side ran while the machine was slow.
    """
    at = (0, 1, 4, 5, 8)
    later = slowed(near(round(4.8 * MS), seed=12), *at)
    return (
        many_tests([slowed(BASE, *at)] * of + [BASE] * (14 - of)),
        many_tests([later] * of + [SAME] * (14 - of)),
    )


def second_look(base: list[int], head: list[int], *, of: int = 1) -> TestTimes:
    """The comparison of the first test after these fresh processes."""
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
    """Equal code has such processes too, and chance decides which side has more of them."""
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
    assert (test.verdict, test.reason[-13:]) == (Verdict.INCONCLUSIVE, ": not certain")


def test_two_looks_that_say_nothing_together_pass() -> None:
    noisy = [near(round(middle * MS), seed=seed, spread=0.3) for seed, middle in ((5, 4), (105, 4.2))]
    test = judged(
        side(noisy[0]), side(noisy[1]), confirmation=(side(noisy[0]), side(noisy[1])), settings=LENIENT
    )
    assert test.verdict is Verdict.PASS
    assert test.reason.endswith("within noise")


def test_unsure_change_needs_stronger_evidence_among_many_tests() -> None:
    """One p in a hundred is below 0.01 by chance, and there are as many questions as tests."""
    base, head = near(4 * MS, seed=6, spread=0.03), near(round(4.15 * MS), seed=106, spread=0.03)
    verdicts = [second_look(base, head, of=of).verdict for of in (1, 2)]
    assert verdicts == [Verdict.REGRESSED, Verdict.INCONCLUSIVE]


def test_unsure_confirmation_is_inconclusive() -> None:
    wide = near(round(4.3 * MS), seed=101, spread=0.15)
    again = (side(near(4 * MS, seed=1, spread=0.15)), side(wide))
    found = judged(side(BASE), side(SLOWER), confirmation=again)
    assert (found.verdict, "not certain in" in found.reason) == (Verdict.INCONCLUSIVE, True)


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
