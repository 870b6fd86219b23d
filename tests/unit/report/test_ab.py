"""The end of `opprof ab` as a user sees it."""

from dataclasses import replace

import pytest
from support.documents.ab_runs import MS, many_tests, near, one_test, side
from support.documents.strategies import simple_run

from pytest_opprof.compare.timing.judge import compare_times
from pytest_opprof.report.ab import ab_lines
from pytest_opprof.report.text import Line, Style, columns
from pytest_opprof.results.run import Commit, Outcome, Run

BASE, HEAD = Commit(id="1a2b3c4" + "0" * 33, dirty=False), Commit(id="5d6e7f8" + "0" * 33, dirty=True)
LOOP = near(8 * MS, seed=2)


def of(commit: Commit, runs: list[Run]) -> list[Run]:
    return [replace(run, commit=commit) for run in runs]


def slower_encoder(seed: int) -> tuple[list[Run], list[Run]]:
    base = of(BASE, many_tests([LOOP, near(round(4.1 * MS), seed=seed)]))
    return base, of(HEAD, many_tests([LOOP, near(round(4.42 * MS), seed=seed)]))


def texts(lines: list[Line]) -> list[str]:
    return [line.text for line in lines]


def test_regression_stands_first_with_its_cause() -> None:
    base, head = slower_encoder(1)
    found = compare_times(base, head, confirmation=slower_encoder(5))
    assert texts(ab_lines(found, width=200)) == [
        "test       base     head  change  verdict    cause",
        "test_1  4.08 ms  4.40 ms  +7.8 %  REGRESSED  aten::addmm +287 µs: same calls, slower",
        "test_0  7.97 ms  7.97 ms   0.0 %  PASS",
        "tests/test_a.py::test_1: REGRESSED: slower by 7.8 % in 12 processes a side (p = 3.7e-07), confirmed in "
        "12 more a side (+7.8 %, p = 3.7e-07)",
        "control (base against base): nothing flagged, noise floor 0.5 % (tests/test_a.py::test_1)",
        "1 regressed, 1 passed · 12 processes a side",
    ]
    assert ab_lines(found, width=200)[1].style is Style.BAD
    assert texts(ab_lines(found, width=200, verbosity=-1)) == ["1 regressed, 1 passed · 12 processes a side"]


def test_failed_control_is_reported() -> None:
    wild = [4 * MS, 5 * MS, 5 * MS + 1, 4 * MS + 1] * 3
    found = compare_times(side(wild), side(wild))
    lines = ab_lines(found, width=300)
    assert lines[-2].style is Style.WARN
    assert lines[-2].text == (
        "control (base against base): tests/test_a.py::test_x differs from itself, so times are not judged, "
        "noise floor 25.0 % (tests/test_a.py::test_x)"
    )


@pytest.mark.parametrize(
    ("processes", "tests", "said"),
    [
        (8, 1, "too few processes to flag a test, "),
        (9, 4, "too few processes to flag a test, "),
        (10, 1, "nothing flagged, "),
        (12, 4, "nothing flagged, "),
        (12, 5, "nothing flagged (at least 2 of 5 tests must differ), "),
    ],
)
def test_control_says_what_it_cannot_flag(processes: int, tests: int, said: str) -> None:
    runs = many_tests([LOOP[:processes]] * tests)
    control = texts(ab_lines(compare_times(runs, runs), width=200))[-2]
    assert control.startswith(f"control (base against base): {said}noise floor")
    # a base as different from itself as can be
    halves = sorted(LOOP[:processes])
    outer = [at for at in range(processes) if at % 4 in {0, 3}]
    order = dict(zip([*outer, *(at for at in range(processes) if at not in outer)], halves, strict=True))
    apart = [round(time * (1 if at in outer else 1.5)) for at, time in sorted(order.items())]
    needed = 2 if "2 of 5" in said else 1
    for differing in (needed - 1, needed):
        found = many_tests([apart] * differing + [LOOP[:processes]] * (tests - differing))
        flagged = compare_times(found, found).control.flagged
        assert bool(flagged) is (differing == needed and "too few" not in said)


def test_more_ops_are_shown_as_by_the_exact_gates() -> None:
    base = side(LOOP)
    head = side(LOOP, lambda wall_ns: one_test(wall_ns, count=4))
    shown = texts(ab_lines(compare_times(base, head), width=120))
    assert "aten::addmm +2" in shown[1]
    assert any(line.split() == ["aten::addmm", "2", "->", "4", "+2"] for line in shown)


def test_unrun_tests_say_why() -> None:
    failing = [simple_run(replace(run.tests[0], outcome=Outcome.FAILED)) for run in side(LOOP)]
    shown = texts(ab_lines(compare_times(failing, failing), width=200))
    assert shown[1].split("  ")[-2:] == [
        "not run",
        "the test failed in 12 of 12 processes of the base and in 12 of 12 processes of the head",
    ]
    assert shown[-2:] == [
        "control (base against base): no noise floor: fewer than two base processes",
        "1 failed · 12 processes a side",
    ]


def test_many_passed_tests_fold() -> None:
    times = [LOOP[:8]] * 30
    found = compare_times(many_tests(times), many_tests(times))
    shown = texts(ab_lines(found, width=100))
    assert "... and 10 more without a change (-v shows all)" in shown
    assert len(ab_lines(found, width=100, verbosity=1)) == len(shown) + 9


def test_lines_fit_the_terminal_and_are_escaped() -> None:
    name = "tests/test_a.py::test_" + "long" * 60 + "\x1b[31m\n"
    base = side(LOOP, lambda wall_ns: one_test(wall_ns, node_id=name))
    head = side(near(9 * MS, seed=3), lambda wall_ns: one_test(wall_ns, node_id=name, count=3))
    lines = ab_lines(compare_times(base, head), width=90)
    assert all(line.text.isprintable() for line in lines)
    assert all(columns(line.text) <= 90 for line in lines if "long" not in line.text)
    assert columns(lines[1].text) <= 90
