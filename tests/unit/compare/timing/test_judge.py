"""Verdicts on times: which changes are flagged, and each reason for no verdict."""

from dataclasses import replace
from fractions import Fraction

import pytest
from support.documents.ab_runs import MS, TEST, many_tests, near, one_test, side
from support.documents.judged_times import AGAIN, BASE, SAME, SLOWER, judged
from support.documents.strategies import simple_run

from pytest_opprof.compare.timing.comparison import Direction, TimeSettings
from pytest_opprof.compare.timing.judge import compare_times
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.errors import UsageError
from pytest_opprof.results.run import Environment, Run, TestResult


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


def test_possible_improvement_passes_unconfirmed() -> None:
    found = judged(side(SLOWER), side(BASE))
    assert found.verdict is Verdict.PASS
    assert found.reason.endswith("and not confirmed by fresh processes")


def test_small_change_is_no_regression() -> None:
    head = side(near(round(4.08 * MS), seed=3))
    assert judged(side(BASE), head).verdict is Verdict.PASS
    strict = TimeSettings(min_effect=Fraction(1, 100))
    assert judged(side(BASE), head, settings=strict).flagged is Direction.SLOWER


def test_change_below_the_bases_own_noise_is_no_regression() -> None:
    # two states of four processes each, unequally divided between the base's halves
    base = [4_000_000, 4_300_000, 4_300_001, 4_000_001, 4_000_002, 4_300_002, 4_300_003, 4_000_003]
    head = [time + 310_000 for time in base]
    found = judged(side(base), side(head), settings=TimeSettings(max_noise=Fraction(1, 2)))
    assert found.noise_ppm == pytest.approx(75_000, rel=0.01)


def test_noisy_base_is_inconclusive() -> None:
    base = [4 * MS, 6 * MS, 6 * MS + 1, 4 * MS + 1] * 2
    found = judged(side(base), side(base))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "its base differs from itself by 50.0 %, over the limit of 20.0 %" in found.reason


def test_base_differing_from_itself_stops_all_verdicts() -> None:
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


def test_test_of_one_side_is_new_or_missing() -> None:
    one, two = many_tests([BASE]), many_tests([BASE, BASE])
    assert [test.verdict for test in compare_times(one, two).tests] == [Verdict.NEW, Verdict.PASS]
    assert [test.verdict for test in compare_times(two, one).tests] == [Verdict.MISSING, Verdict.PASS]


def test_new_test_is_held_to_its_limits() -> None:
    def limited(wall_ns: int) -> TestResult:
        return replace(one_test(wall_ns), limits={"aten::addmm.count": 1})

    found = judged([simple_run() for _ in BASE], side(BASE, limited))
    assert found.verdict is Verdict.REGRESSED
    assert found.reason.startswith("aten::addmm.count is 2 in each step, but the limit is <= 1")


def test_side_without_processes_is_refused() -> None:
    with pytest.raises(UsageError, match="no process of the head finished"):
        compare_times(side(BASE), [])


def test_no_common_test_gives_a_result() -> None:
    found = compare_times([simple_run()], [simple_run()])
    assert found.tests == ()


def test_other_host_is_inconclusive() -> None:
    def on(runs: list[Run], model: str) -> list[Run]:
        return [replace(run, environment=Environment(fingerprint={"cpu_model": model})) for run in runs]

    found = judged(on(side(BASE), "A"), on(side(SAME), "B"))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.reason == "measured on more than one machine: CPU model A -> B"


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("is_later", [False, True])
def test_environment_that_changed_on_one_side_is_inconclusive(which: int, is_later: bool) -> None:
    """As after `--resume` with another interpreter, or an upgrade between the rounds."""
    old, new = (Environment(fingerprint={"python": python}) for python in ("3.11", "3.12"))
    first, again = (
        tuple([replace(run, environment=old) for run in runs] for runs in sides)
        for sides in ((side(BASE), side(SLOWER)), AGAIN)
    )
    changed = (again if is_later else first)[which]
    changed[7:] = [replace(run, environment=new) for run in changed[7:]]
    found = judged(*first, confirmation=again)
    assert found.verdict is Verdict.INCONCLUSIVE
    name = ("base", "head")[which]
    assert found.reason == f"the environment of the {name} changed meanwhile: Python 3.11 -> 3.12"


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("is_later", [False, True])
@pytest.mark.parametrize(
    ("field", "name"), [("threads", "threads of torch"), ("libraries", "installed libraries")]
)
def test_setting_that_changed_on_one_side_is_inconclusive(
    which: int, field: str, name: str, *, is_later: bool
) -> None:
    """As after `--resume` on fewer processors, or with another release of a library."""

    def with_setting(run: Run, value: str) -> Run:
        return replace(run, tests=tuple(replace(test, settings={field: value}) for test in run.tests))

    first, again = (
        tuple([with_setting(run, "4") for run in runs] for runs in sides)
        for sides in ((side(BASE), side(SLOWER)), AGAIN)
    )
    changed = (again if is_later else first)[which]
    changed[7:] = [with_setting(run, "2") for run in changed[7:]]
    found = judged(*first, confirmation=again)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert (
        found.reason == f"the environment of the {('base', 'head')[which]} changed meanwhile: {name} 4 -> 2"
    )


@pytest.mark.parametrize(
    ("field", "verdict"), [("threads", Verdict.REGRESSED), ("libraries", Verdict.INCONCLUSIVE)]
)
def test_setting_that_an_earlier_test_made_is_not_compared(field: str, verdict: Verdict) -> None:
    """The confirmation runs only the flagged test, so what others set is not there."""

    def runs(times: list[int], value: str, *others: TestResult) -> list[Run]:
        tests = [replace(one_test(time), settings={field: value}) for time in times]
        return [simple_run(*others, test, run_id=f"{at:x}") for at, test in enumerate(tests)]

    other = replace(one_test(4 * MS), node_id="tests/test_a.py::test_that_sets_it")
    again = near(4 * MS, seed=4), near(round(4.4 * MS), seed=5)
    found = judged(
        runs(BASE, "1", other),
        runs(SLOWER, "1", other),
        confirmation=(runs(again[0], "4"), runs(again[1], "4")),
    )
    assert found.verdict is verdict


def test_other_libraries_are_reported_and_judged() -> None:
    head = [
        replace(
            run, environment=Environment(fingerprint={"python": "3.11", "numpy": "2.1", "torch": "2.13.0"})
        )
        for run in side(SAME)
    ]
    found = compare_times(side(BASE), head)
    assert found.notes == ("not only the code differs: NumPy unknown -> 2.1",)
