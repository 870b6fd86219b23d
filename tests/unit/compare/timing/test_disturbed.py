"""Processes on a disturbed machine: which are left out, and when more are wanted."""

from dataclasses import replace

import pytest
from support.documents.ab_runs import MS, PROBE_NS, TEST, many_tests, one_test, side
from support.documents.judged_times import AGAIN, BASE, SAME, SLOWER, judged, vars_of, with_test

from pytest_opprof.compare.timing.comparison import Direction
from pytest_opprof.compare.timing.judge import compare_times
from pytest_opprof.compare.timing.samples import readings_by_test, short_of_undisturbed
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.metrics import WALL_TIME
from pytest_opprof.results.run import Run, Timing
from pytest_opprof.results.samples import Samples


def disturbed(runs: list[Run], *at: int, probe_ns: int = 2 * PROBE_NS) -> list[Run]:
    """The same, but others slowed these processes down to twice the time."""
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
        f"the machine was disturbed in 5 of 24 processes of {TEST}: too many to leave out",
    )


def test_many_disturbed_tests_are_one_sentence() -> None:
    runs = many_tests([BASE] * 5)
    timing = Timing(steps=3, planned=3, disturbed=1, probe_ns=2 * PROBE_NS)
    runs[0] = replace(runs[0], tests=tuple(replace(test, timing=timing) for test in runs[0].tests))
    (note,) = compare_times(runs, many_tests([SAME] * 5)).notes
    assert note.count("1 of 24 processes of tests/test_a.py::test_") == 3
    assert note.endswith(" and of 2 more tests: these are left out")


def test_initially_slower_machine_is_judged_at_its_speed() -> None:
    """Whatever its usual speed was taken to be: eight of each side ran at the faster one."""
    base, head = disturbed(side(BASE), 0, 1, 2, 3), disturbed(side(SLOWER), 0, 1, 2, 3)
    (test,) = compare_times(base, head).tests
    assert test.times is not None
    assert test.times.base_ns == tuple(BASE[4:])
    assert test.flagged is Direction.SLOWER


def test_a_few_faster_processes_are_left_out() -> None:
    """Most processes did not have the boosted clock."""
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


def test_unmeasured_speed_leaves_nothing_out() -> None:
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
    """A test that disturbs itself would continue to do so."""
    base = side(BASE)
    for at in range(9):
        base = disturbed(base, at, probe_ns=PROBE_NS * (3 + at) // 2)
    assert wanting(base, side(SAME)) == ()


def test_extra_steps_on_a_busy_machine_are_the_same_work() -> None:
    longer = one_test(4 * MS)
    wall = Samples.of([4 * MS] * 20)
    runs = side(BASE)
    runs[2] = with_test(
        runs[2],
        timing=Timing(steps=20, planned=3, disturbed=9, probe_ns=PROBE_NS),
        totals={**longer.totals, WALL_TIME.name: wall},
    )
    assert judged(runs, side(SAME)).verdict is Verdict.PASS
