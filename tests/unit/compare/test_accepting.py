"""What is accepted of a failed comparison, and what an acceptance lets pass."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.documents.strategies import simple_run, simple_test

from pytest_opprof.baselines.accepted import Acceptance
from pytest_opprof.compare.accepting import accepted_of
from pytest_opprof.compare.comparison import Comparison, TestComparison
from pytest_opprof.compare.document import comparison_from_document, comparison_to_document
from pytest_opprof.compare.last import keep_last, last_comparison
from pytest_opprof.compare.sessions import Policy, compare_runs
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.errors import UsageError
from pytest_opprof.results.run import Commit, TestResult
from pytest_opprof.results.samples import Samples
from pytest_opprof.results.schema import Contract, validate

NOW = datetime(2026, 1, 3, tzinfo=UTC)
TEST = "tests/test_a.py::test_x"
BASE = simple_test({"aten::mul": 4})
HEAD = simple_test({"aten::mul": 4, "aten::clone": 2, "aten::add": 1})
COMMIT = Commit(id="a" * 40, dirty=True, branch="topic")


def compared(base: TestResult, head: TestResult, *accepted: Acceptance) -> Comparison:
    return compare_runs(
        simple_run(base, name="main"),
        simple_run(head, commit=COMMIT),
        created=NOW,
        opprof_version="0.1.0",
        policy=Policy(accepted={one.key: one for one in accepted}),
    )


def accepted(comparison: Comparison, metric: str | None = None, reason: str = "so") -> tuple[Acceptance, ...]:
    return accepted_of(comparison, TEST, metric=metric, reason=reason, created=NOW)


def found(base: TestResult, head: TestResult, *entries: Acceptance) -> TestComparison:
    (test,) = compared(base, head, *entries).tests
    return test


def test_every_gate_that_failed_is_accepted_with_its_value() -> None:
    assert accepted(compared(BASE, HEAD), reason=" the caller\nneeds a copy ") == (
        Acceptance(
            test=TEST,
            op=None,
            metric="ops.count",
            value=7,
            base=4,
            reason="the caller needs a copy",
            baseline="main",
            created=NOW,
            commit=COMMIT,
        ),
        Acceptance(
            test=TEST,
            op="aten::clone",
            metric="count",
            value=2,
            base=0,
            reason="the caller needs a copy",
            baseline="main",
            created=NOW,
            commit=COMMIT,
        ),
    )


def test_accepted_rise_passes_with_its_reason() -> None:
    test = found(BASE, HEAD, *accepted(compared(BASE, HEAD)))
    assert test.verdict is Verdict.ACCEPTED
    assert test.reason == "3 more ops in each step than main, accepted up to 7 (so)"
    # an op without its own gate follows its total
    assert {change.op: change.verdict for change in test.changes} == dict.fromkeys(
        (None, "aten::clone", "aten::add"), Verdict.ACCEPTED
    )


def test_less_than_was_accepted_passes() -> None:
    less = simple_test({"aten::mul": 4, "aten::clone": 1})
    assert found(BASE, less, *accepted(compared(BASE, HEAD))).verdict is Verdict.ACCEPTED


def test_rise_past_the_accepted_value_regresses() -> None:
    more = simple_test({"aten::mul": 5, "aten::clone": 2, "aten::add": 1})
    test = found(BASE, more, *accepted(compared(BASE, HEAD)))
    assert test.verdict is Verdict.REGRESSED
    assert test.reason.startswith("4 more ops in each step than main")
    assert test.reason.endswith(", accepted only up to 7 (so)")
    assert {change.verdict for change in test.changes if change.op == "aten::clone"} == {Verdict.ACCEPTED}


def test_one_gate_may_be_accepted_alone() -> None:
    (total,) = accepted(compared(BASE, HEAD), "ops.count")
    test = found(BASE, HEAD, total)
    assert test.verdict is Verdict.REGRESSED
    assert test.reason.startswith("2 more calls of aten::clone")


def test_tolerance_applies_to_the_accepted_value() -> None:
    def peak(value: int) -> TestResult:
        totals = {**BASE.totals, "cpu_memory.peak": Samples.constant(value, steps=3)}
        return replace(BASE, sources=("ranges", "ops", "memory"), totals=totals)

    entries = accepted(compared(peak(1000), peak(2000)))
    assert [entry.path for entry in entries] == ["cpu_memory.peak"]
    assert found(peak(1000), peak(2020), *entries).verdict is Verdict.ACCEPTED
    assert found(peak(1000), peak(2021), *entries).verdict is Verdict.REGRESSED


ENDED = (
    "3 more ops in each step than main (same in 3 of 3 steps, certified in 2 processes), no longer accepted"
)


def test_acceptance_ends_with_a_baseline_measured_with_it() -> None:
    entries = accepted(compared(BASE, HEAD))
    again = replace(BASE, accepted={entry.path: entry.created for entry in entries})
    test = found(again, HEAD, *entries)
    assert test.verdict is Verdict.REGRESSED
    assert test.reason == f"{ENDED} up to 7 (so): the baseline already includes it"
    later = [replace(entry, created=NOW + timedelta(seconds=1)) for entry in entries]
    assert found(again, HEAD, *later).verdict is Verdict.ACCEPTED


def test_acceptance_ends_with_a_better_baseline() -> None:
    entries = accepted(compared(BASE, HEAD))
    fewer, more = simple_test({"aten::mul": 3}), simple_test({"aten::mul": 5})
    test = found(fewer, HEAD, *entries)
    assert test.verdict is Verdict.REGRESSED
    assert test.reason.endswith(
        "no longer accepted up to 7 (so): the baseline has since improved from 4 to 3"
    )
    assert found(more, HEAD, *entries).verdict is Verdict.ACCEPTED
    older = [replace(entry, base=None) for entry in entries]
    assert found(fewer, HEAD, *older).verdict is Verdict.ACCEPTED


def test_change_within_tolerance_keeps_the_acceptance() -> None:
    def peak(value: int) -> TestResult:
        totals = {**BASE.totals, "cpu_memory.peak": Samples.constant(value, steps=3)}
        return replace(BASE, sources=("ranges", "ops", "memory"), totals=totals)

    entries = accepted(compared(peak(1000), peak(2000)))
    assert found(peak(995), peak(2000), *entries).verdict is Verdict.ACCEPTED
    assert found(peak(980), peak(2000), *entries).verdict is Verdict.REGRESSED


@pytest.mark.parametrize("fast", [timedelta(0), timedelta(hours=1)], ids=["same_second", "an_hour"])
def test_acceptance_is_later_than_that_of_a_fast_clock(fast: timedelta) -> None:
    paths = dict.fromkeys(("ops.count", "aten::clone.count"), NOW + fast)
    comparison = compared(replace(BASE, accepted=paths), HEAD)
    document = comparison_to_document(comparison)
    again = comparison_from_document(validate(document, Contract.COMPARISON, where="x"), where="x")
    for each in (comparison, again):
        test = found(replace(BASE, accepted=paths), HEAD, *accepted(each))
        assert test.verdict is Verdict.ACCEPTED


def test_acceptance_covers_only_its_test() -> None:
    entries = [replace(entry, test="tests/test_a.py::test_y") for entry in accepted(compared(BASE, HEAD))]
    assert found(BASE, HEAD, *entries).verdict is Verdict.REGRESSED


def test_acceptance_survives_the_comparison_file() -> None:
    comparison = compared(BASE, HEAD, *accepted(compared(BASE, HEAD)))
    document = comparison_to_document(comparison)
    validate(document, Contract.COMPARISON, where="x.json")
    assert comparison_from_document(document, where="x.json") == comparison


def test_a_limit_is_raised_where_it_stands() -> None:
    limited = replace(BASE, limits={"ops.count": 3})
    with pytest.raises(UsageError, match="over a limit of its own: raise that in the test's marker"):
        accepted(compared(BASE, limited))


@pytest.mark.parametrize(
    ("node_id", "metric", "reason", "sentence"),
    [
        (TEST, None, "  \n", "--reason: write 1 to 1000 characters"),
        (TEST, None, "x" * 1001, "--reason: write 1 to 1000 characters"),
        (TEST, "ops.cuont", "so", f"'ops.cuont' is not a gate of {TEST} that failed"),
        (TEST, "ops.cuont", "so", "(did you mean 'ops.count'?)"),
        (TEST, "aten::add.count", "so", "is not a gate of"),
        (TEST, "zzz", "so", "(what failed: ops.count, aten::clone.count)"),
    ],
)
def test_invalid_acceptance_is_refused(node_id: str, metric: str | None, reason: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        accepted_of(compared(BASE, HEAD), node_id, metric=metric, reason=reason, created=NOW)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(("head", "verdict"), [(BASE, "PASS"), (simple_test({"aten::mul": 1}), "IMPROVED")])
def test_passing_test_needs_no_acceptance(head: TestResult, verdict: str) -> None:
    with pytest.raises(UsageError, match=f"nothing to accept: it was {verdict}"):
        accepted(compared(BASE, head))


def test_the_last_comparison_has_rows_of_failed_tests_alone(tmp_path: Path) -> None:
    keep_last(tmp_path, compared(BASE, HEAD))
    (failed,) = last_comparison(tmp_path).tests
    assert (failed.base, failed.head) == (BASE, HEAD)
    comparison = compared(HEAD, BASE)
    keep_last(tmp_path, comparison)
    last = last_comparison(tmp_path)
    assert [(test.node_id, test.verdict, test.changes) for test in last.tests] == [
        (test.node_id, test.verdict, test.changes) for test in comparison.tests
    ]
    sides: list[Any] = [side for test in last.tests for side in (test.base, test.head)]
    assert all(side.ops == () and side.tree == () for side in sides)


def test_a_large_last_comparison_has_no_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    comparison = compared(BASE, HEAD)
    keep_last(tmp_path, comparison)
    size = (tmp_path / ".state" / "last.json").stat().st_size
    monkeypatch.setattr("pytest_opprof.results.files.MAX_DOCUMENT_BYTES", size - 1)
    keep_last(tmp_path, comparison)
    (failed,) = last_comparison(tmp_path).tests
    assert failed.base is not None
    assert failed.base.ops == ()
    assert accepted(last_comparison(tmp_path)) == accepted(comparison)


def test_missing_last_comparison_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing was compared here yet"):
        last_comparison(tmp_path)
