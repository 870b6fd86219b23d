"""Comparisons of whole runs, and their file."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from support.documents.strategies import runs, simple_run, simple_test

from pytest_opprof.compare.comparison import Comparison
from pytest_opprof.compare.document import (
    comparison_from_document,
    comparison_to_document,
    read_comparison,
    write_comparison,
)
from pytest_opprof.compare.gates import parse_gate_options
from pytest_opprof.compare.sessions import Policy, compare_runs
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.errors import DocumentError
from pytest_opprof.results.merge import Collected
from pytest_opprof.results.run import Measurement, MeasurementStatus, Outcome, Run, TestResult, Timing
from pytest_opprof.results.samples import Samples
from pytest_opprof.results.schema import Contract, validate

NOW = datetime(2026, 1, 3, tzinfo=UTC)


def compared(base: Run | None, head: Run, **others: Any) -> Comparison:
    return compare_runs(base, head, created=NOW, opprof_version="0.1.0", **others)


def named(name: str, count: int = 1, **others: Any) -> TestResult:
    return simple_test({"aten::mul": count}, node_id=f"tests/test_a.py::{name}", **others)


@pytest.mark.slow
@given(runs(), runs())
def test_comparisons_survive_the_document(base: Run, head: Run) -> None:
    comparison = compared(base, head)
    document = json.loads(json.dumps(comparison_to_document(comparison)))
    validate(document, Contract.COMPARISON, where="x.json")
    assert comparison_from_document(document, where="x.json") == comparison


@given(runs())
def test_a_run_against_itself_never_regresses(run: Run) -> None:
    found = compared(run, run)
    for test in found.tests:
        broken = any(limit.verdict is Verdict.REGRESSED for limit in test.limits)
        assert (test.verdict is Verdict.REGRESSED) is broken
        assert test.verdict not in {Verdict.IMPROVED, Verdict.CHANGED, Verdict.MISSING}


def test_failures_come_first() -> None:
    base = simple_run(named("a"), named("b"), named("c"))
    head = simple_run(named("a"), named("d"), named("b", 2), named("c"))
    found = compared(base, head)
    assert [(test.node_id[-1], test.verdict) for test in found.tests] == [
        ("b", Verdict.REGRESSED),
        ("d", Verdict.NEW),
        ("a", Verdict.PASS),
        ("c", Verdict.PASS),
    ]
    assert found.counts[Verdict.PASS] == 2


def test_only_wholly_collected_files_have_missing_tests() -> None:
    base, head = simple_run(named("a"), named("gone")), simple_run(named("a"))
    collected = Collected(
        node_ids=frozenset({"tests/test_a.py::a"}), whole_paths=frozenset({"tests/test_a.py"})
    )
    found = compared(base, head, collected=collected)
    assert found.tests[0].verdict is Verdict.MISSING
    assert found.not_run == 0
    deselected = compared(base, head)
    assert deselected.not_run == 1
    assert len(deselected.tests) == 1


def test_skipped_and_failed_tests_are_not_run() -> None:
    base = simple_run(named("a"), named("b"))
    not_run = Measurement(status=MeasurementStatus.NOT_RUN)
    head = simple_run(
        named("a", outcome=Outcome.SKIPPED, measurement=not_run),
        named("b", outcome=Outcome.FAILED, measurement=not_run),
    )
    found = compared(base, head)
    assert found.not_run == 2
    assert not found.counts
    assert found.notes[-1] == f"not compared with {base.title}: 1 skipped test: tests/test_a.py::a"


def test_tests_of_a_broken_file_are_not_called_skipped() -> None:
    base = simple_run(*map(named, "abc"))
    skipped = named("a", outcome=Outcome.SKIPPED, measurement=Measurement(status=MeasurementStatus.NOT_RUN))
    files = frozenset({"tests/test_a.py"})
    collected = Collected(whole_paths=files, unread_paths=files)
    assert compared(base, simple_run(skipped), collected=collected).notes == (
        f"not compared with {base.title}: 1 skipped test: tests/test_a.py::a",
        f"not compared with {base.title}: 2 tests of files that were skipped, ignored or broken: "
        "tests/test_a.py::b, tests/test_a.py::c",
    )


def test_failed_base_makes_a_test_new() -> None:
    base = simple_run(named("a", outcome=Outcome.FAILED))
    assert compared(base, simple_run(named("a"))).tests[0].verdict is Verdict.NEW


def test_all_new_tests_are_reported() -> None:
    base = simple_run(named("a"), named("b"), name="main")
    told = "nothing was compared: main has none of the tests that ran"
    assert compared(base, simple_run(named("x"), named("y")), notes=("first",)).notes == ("first", told)
    assert compared(base, simple_run(named("a"), named("y"))).notes == ()
    assert compared(base, simple_run()).notes == ()
    assert compared(None, simple_run(named("x"))).notes == ()


def test_notes_and_sides_are_kept(tmp_path: Path) -> None:
    comparison = compared(
        simple_run(named("a"), name="main"), simple_run(named("a")), notes=("found by luck",)
    )
    write_comparison(tmp_path / "c.json.gz", comparison)
    read = read_comparison(tmp_path / "c.json.gz")
    assert read == comparison
    assert read.base is not None
    assert (read.base.title, read.base.tests, read.notes) == ("main", (), ("found by luck",))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"metric": "aten::x"}, "tests[0].changes[0].metric: no metric 'aten::x'"),
        ({"base": [1, 2, 3, 4]}, "tests[0].changes[0].base: 4 values for 3 steps"),
    ],
)
def test_contradictions_name_their_place(change: dict[str, object], sentence: str) -> None:
    document = comparison_to_document(compared(simple_run(named("a")), simple_run(named("a", 2))))
    document["tests"][0]["changes"][0] |= change
    with pytest.raises(DocumentError) as caught:
        comparison_from_document(document, where="x.json")
    assert str(caught.value) == f"x.json: {sentence}. The file was not used"


def test_value_without_its_side_is_refused() -> None:
    document = comparison_to_document(compared(simple_run(named("a")), simple_run(named("a", 2))))
    document["tests"][0]["base"] = None
    with pytest.raises(DocumentError, match="its side of the test is missing"):
        comparison_from_document(document, where="x.json")


def times_alone(*durations_ns: int) -> TestResult:
    return TestResult(
        node_id="tests/test_a.py::a",
        timing=Timing(steps=len(durations_ns)),
        totals={"wall_time": Samples.of(durations_ns)},
    )


def test_times_only_baseline_judges_nothing() -> None:
    (found,) = compared(simple_run(times_alone(9_000, 2_000)), simple_run(times_alone(4_000, 8_000))).tests
    assert found.verdict is None
    assert found.reason.endswith("has only its times, which are shown but not gated")
    assert found.advisories == ("wall time 2.0 µs -> 4.0 µs (fastest of 2 steps; not gated)",)
    (found,) = compared(simple_run(times_alone(2_000)), simple_run(named("a"))).tests
    assert (found.verdict, found.changes) == (None, ())


def test_times_only_baseline_passes_no_gate() -> None:
    policy = Policy(command_line=parse_gate_options(["wall_time=5%"], where="--gate"))
    base, head = simple_run(times_alone(2_000)), simple_run(times_alone(4_000))
    (found,) = compared(base, head, policy=policy).tests
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.reason.endswith("has only its times, so no gate can be judged")


def test_times_only_run_against_counts_is_inconclusive() -> None:
    (found,) = compared(simple_run(named("a")), simple_run(times_alone(2_000))).tests
    assert (found.verdict, found.reason) == (Verdict.INCONCLUSIVE, "no active step finished")


def test_a_line_that_only_opens_brackets_is_shown_with_the_next() -> None:
    def run(count: int) -> TestResult:
        test = named("test_x", count)
        rows = tuple(replace(row, places={"f, a.py:5": 3 * count}) for row in test.ops)
        return replace(
            test, ops=rows, lines={"f, a.py:5": "return [", "f, a.py:6": "x * 2", "f, a.py:7": "]"}
        )

    (test,) = compared(simple_run(run(1)), simple_run(run(2))).tests
    assert {change.line.text for change in test.changes if change.line} == {"return [x * 2]"}
