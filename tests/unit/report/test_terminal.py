"""A session's output."""

from dataclasses import replace

import pytest
from hypothesis import given
from support.documents.compared import MAIN, cloning, compared, named
from support.documents.strategies import cuda_test, runs, simple_run, simple_test

from pytest_opprof.report.markdown import markdown_comment
from pytest_opprof.report.summary import Summary
from pytest_opprof.report.terminal import (
    comparison_lines,
    header_lines,
    result_title,
    run_title,
    summary_lines,
)
from pytest_opprof.report.text import Line, Style
from pytest_opprof.results.run import (
    CaptureStats,
    Measurement,
    MeasurementStatus,
    Outcome,
    Run,
    TestResult,
    Timing,
)
from pytest_opprof.results.samples import Samples


def texts(lines: list[Line]) -> list[str]:
    return [line.text for line in lines]


SUMMARY = """\
1 cause, 1 test regressed against main@1a2b3c4

cause 1, 1 test: aten::clone +2 a step, called by the test
    test_step  25 ops (+4)

1 regressed · nothing dropped"""


def test_summary_has_one_row_and_one_last_line() -> None:
    assert "\n".join(texts(summary_lines(cloning(), width=100))) == SUMMARY


def test_quiet_summary_names_what_changed() -> None:
    assert texts(summary_lines(cloning(), width=100, verbosity=-1)) == [
        "cause 1, 1 test: aten::clone +2 a step, called by the test: test_step",
        "1 regressed · nothing dropped",
    ]
    base = simple_run(named("test_a", {"aten::mul": 3}), named("test_b", {"aten::mul": 2}), name="main")
    head = simple_run(named("test_a", {"aten::mul": 1}), named("test_b", {"aten::add": 2}))
    told = texts(summary_lines(compared(base, head), width=100, verbosity=-1))
    assert told[:-1] == [
        "1 changed: test_b (aten::add new, +2, aten::mul -2)",
        "1 improved: test_a (aten::mul -2)",
    ]
    assert texts(summary_lines(cloning(), width=100, verbosity=-2)) == ["1 regressed · nothing dropped"]


def test_tests_that_ran_nothing_are_a_warning() -> None:
    idle = simple_run(
        named("test_a", {}), named("test_b", {}), named("test_c", {"aten::mul": 1}), name="main"
    )
    comparison = compared(idle, idle)
    for verbosity in (-1, 0, 1):
        *_, warning, _ = [
            line
            for line in summary_lines(comparison, width=100, verbosity=verbosity)
            if not line.text.startswith("    ")
        ]
        told = " (tests/test_model.py::test_a, tests/test_model.py::test_b)" if verbosity < 1 else ""
        assert warning == Line(f"2 tests ran no op or range: nothing is compared{told}", Style.WARN)
    verbose = texts(summary_lines(comparison, width=100, verbosity=1))
    assert verbose[-3:-1] == ["    tests/test_model.py::test_a", "    tests/test_model.py::test_b"]
    # tests that ran something before have changed; it is not an oversight
    before = simple_run(named("test_a", {"aten::mul": 1}), name="main")
    after = texts(summary_lines(compared(before, simple_run(named("test_a", {}))), width=100))
    assert not any("nothing is compared" in line for line in after)


def test_header_names_the_missing_tests() -> None:
    lines = header_lines(
        version="0.1",
        capturing="torch 2.13.0 ops, ranges",
        baseline="main@1a2b3c4 (merge-base, 2 days old)",
        store="dir:.opprof",
        missing=["no CUDA capture"],
    )
    assert lines[0] == (
        "opprof 0.1: torch 2.13.0 ops, ranges · baseline main@1a2b3c4 (merge-base, 2 days old)"
        " · store dir:.opprof"
    )
    assert lines[1:] == ["opprof: no CUDA capture"]
    assert header_lines(version="0.1", capturing="ranges", baseline=None, store=None) == [
        "opprof 0.1: ranges"
    ]


def test_failures_come_first_and_passes_fold() -> None:
    names = {"test_a": 1, "test_b": 2, "test_c": 3}
    base = simple_run(*(named(name, {"aten::mul": count}) for name, count in names.items()), name="main")
    head = simple_run(
        named("test_a", {"aten::mul": 1}),
        named("test_b", {"aten::mul": 1}),
        named("test_c", {"aten::mul": 4}),
        named("test_d", {"aten::mul": 4}),
    )
    lines = texts(summary_lines(compared(base, head), width=100))
    assert lines[:-1] == [
        "1 cause, 1 test regressed against main",
        "",
        "cause 1, 1 test: aten::mul +1 a step",
        "    test_c  4 ops (+1)",
        "",
        "1 improved: test_b (aten::mul -1)",
    ]
    assert lines[-1] == "1 regressed, 1 improved, 1 new, 1 passed · nothing dropped"
    verbose = texts(summary_lines(compared(base, head), width=100, verbosity=1))
    assert [line.split()[:2] for line in verbose[1:5]] == [
        ["test_c", "REGRESSED"],
        ["test_b", "IMPROVED"],
        ["test_d", "NEW"],
        ["test_a", "PASS"],
    ]


def test_fusion_shows_both_directions() -> None:
    base = simple_run(named("test_a", {"aten::mul": 10}))
    head = simple_run(named("test_a", {"aten::addcmul": 1}))
    told, _ = texts(summary_lines(compared(base, head), width=100))
    assert told == "1 changed: test_a (aten::addcmul new, +1, aten::mul -10)"


def test_reasons_are_whole_sentences() -> None:
    reason = "cannot be repeated: call 2 raised FileExistsError. " + "Build the state inside the test. " * 3
    broken = Measurement(status=MeasurementStatus.ERROR, reason=reason)
    head = simple_run(named("test_a", {"aten::mul": 1}, measurement=broken))
    lines = texts(summary_lines(compared(None, head), width=80))
    assert max(map(len, lines)) <= 80
    told = " ".join(line.strip() for line in lines[:-1])
    assert told == f"tests/test_model.py::test_a: ERROR: {reason}".strip()


def test_times_only_baseline_shows_time_differences() -> None:
    def times(*durations_ns: int) -> TestResult:
        timing = Timing(steps=len(durations_ns))
        return TestResult(
            node_id="test_a.py::a", timing=timing, totals={"wall_time": Samples.of(durations_ns)}
        )

    told = texts(
        summary_lines(compared(simple_run(times(3_000, 2_000)), simple_run(times(4_000, 5_000))), width=200)
    )
    assert told[-2:] == [
        "test_a.py::a: wall time 2.0 µs -> 4.0 µs (fastest of 2 steps; not gated)",
        "1 measured · nothing dropped",
    ]
    head = simple_run(simple_test({"aten::mul": 1}, node_id="test_a.py::a"))
    told = texts(summary_lines(compared(simple_run(times(2_000)), head), width=200))
    assert told[-2].endswith("has only its times, which are shown but not gated")


def test_same_names_keep_their_files() -> None:
    twins = [simple_test({"aten::mul": 1}, node_id=f"{file}.py::test_x") for file in "ab"]
    lines = texts(summary_lines(compared(None, simple_run(*twins)), width=100))
    assert [line.split()[0] for line in lines[1:3]] == ["a.py::test_x", "b.py::test_x"]


def test_many_measured_tests_are_cut_short() -> None:
    head = simple_run(*(named(f"test_{i}", {"aten::mul": 1}) for i in range(30)))
    lines = texts(summary_lines(compared(None, head), width=100))
    assert lines[-2:] == ["... and 10 more measured (-v shows all)", "30 measured · nothing dropped"]
    assert len(texts(summary_lines(compared(None, head), width=100, verbosity=1))) == 32


def test_losses_and_tests_not_run_are_counted() -> None:
    lossy = CaptureStats(dropped=5, truncated=True)
    skipped = named(
        "test_b", {}, outcome=Outcome.SKIPPED, measurement=Measurement(status=MeasurementStatus.NOT_RUN)
    )
    head = simple_run(named("test_a", {"aten::mul": 1}, capture=lossy), skipped)
    lines = texts(summary_lines(compared(None, head), width=100))
    assert lines[-1] == "1 measured · 5 events dropped, 1 recording cut off · 1 other test not run"


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.ERROR])
def test_tests_that_failed_by_themselves_are_counted(outcome: Outcome) -> None:
    not_run = Measurement(status=MeasurementStatus.NOT_RUN)
    judged = named("test_a", {"aten::mul": 1})
    failed = [named(f"test_{i}", {}, outcome=outcome, measurement=not_run) for i in range(3)]
    skipped = named("test_b", {}, outcome=Outcome.SKIPPED, measurement=not_run)
    comparison = compared(simple_run(judged), simple_run(judged, *failed, skipped))
    (*_, last) = summary_lines(comparison, width=100)
    told = "1 passed · nothing dropped · 3 tests failed, not compared · 1 other test not run"
    assert (last.text, last.style) == (told, Style.WARN)
    assert Summary.of(comparison).headline == "PASS: 1 test, 3 failed"
    assert told in markdown_comment(comparison)
    (*_, last) = summary_lines(compared(simple_run(judged), simple_run(judged, failed[0])), width=100)
    assert last.text == "1 passed · nothing dropped · 1 test failed, not compared"


def test_samples_are_counted() -> None:
    sampled = CaptureStats(sampled_ppm=10_000)
    head = simple_run(named("test_a", {"aten::mul": 1}, capture=sampled), named("test_b", {"aten::mul": 1}))
    lines = texts(summary_lines(compared(None, head), width=100))
    assert lines[-1] == "2 measured · nothing dropped, 1 test sampled"


def test_names_and_rows_that_found_no_room_are_counted() -> None:
    nameless = named("test_a", {"aten::mul": 1}, capture=CaptureStats(names_overflowed=9))
    head = simple_run(nameless, replace(named("test_b", {"aten::mul": 1}), ops_omitted=4))
    lines = texts(summary_lines(compared(None, head), width=100))
    assert lines[-1] == "2 measured · nothing dropped, 1 test with too many names, 1 test with rows left out"


def test_empty_session_has_one_line() -> None:
    assert texts(summary_lines(compared(None, simple_run()), width=80)) == [
        "nothing measured · nothing dropped"
    ]


def test_recorded_kernels_have_a_column() -> None:
    head = cuda_test({"aten::mm": {"kernels": 3, "launches": 3}})
    torn = replace(
        cuda_test({"aten::mm": {}}), node_id="b.py::test_y", capture=CaptureStats(unmatched_launches=1)
    )
    lines = texts(summary_lines(compared(None, simple_run(head, torn)), width=100))
    assert lines[0].split()[:4] == ["test", "verdict", "ops", "kernels"]
    assert lines[1].split()[2:4] == ["1", "3"]
    assert lines[-1] == "2 measured · nothing dropped, 1 test with incomplete device records"


def test_ranges_have_a_column_without_ops() -> None:
    head = simple_run(named("test_a", {"load": 2}))
    assert texts(summary_lines(compared(None, head), width=100))[:2] == [
        "test    verdict   ops  ranges  self CPU  worst change",
        "test_a  measured  0    2       2.0 µs",
    ]


def test_titles_name_the_source_of_numbers() -> None:
    test = named("test_a", {"aten::mul": 1})
    assert run_title(simple_run(test, name="main", commit=MAIN)).text == (
        "main@1a2b3c4: measured 2026-01-02 00:00 UTC, 1 of 1 tests"
    )
    broken = replace(test, steps=1, measurement=Measurement(status=MeasurementStatus.ERROR, reason="why"))
    assert result_title(broken).text == "tests/test_model.py::test_a (1 step, error: why)"


def test_comparison_without_changes_is_short() -> None:
    run = simple_run(named("test_a", {"aten::mul": 1}), name="main")
    assert texts(comparison_lines(compared(run, run), width=80)) == [
        "main -> main",
        "",
        "1 passed · nothing dropped",
    ]


def test_regression_is_styled_as_bad() -> None:
    lines = summary_lines(cloning(), width=80)
    bad = [line.text for line in lines if line.style is Style.BAD]
    assert bad == [
        "cause 1, 1 test: aten::clone +2 a step, called by the test",
        "1 regressed · nothing dropped",
    ]


@pytest.mark.slow
@given(runs(), runs())
def test_terminal_output_is_escaped(base: Run, head: Run) -> None:
    for line in comparison_lines(compared(base, head), width=80, verbosity=1):
        assert line.text.isprintable()
