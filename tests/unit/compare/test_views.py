"""Views beside ops: differences in views only, and baselines that do not distinguish them."""

from dataclasses import replace
from typing import Any

import pytest
from support.documents.strategies import simple_run, simple_test

from pytest_opprof.compare.comparison import TestComparison
from pytest_opprof.compare.sessions import compare_runs, compare_test
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.metrics import VIEWS_COUNT
from pytest_opprof.report.overview import worst_change
from pytest_opprof.results.run import TestResult
from pytest_opprof.results.samples import Samples

_NOW = simple_run().created


def recorded(counts: dict[str, int], views: dict[str, int], **others: Any) -> TestResult:
    """A test with N calls of each op, some of which are views."""
    bare = simple_test(counts, **others)

    def each(value: int) -> Samples:
        return Samples.constant(value, steps=bare.steps)

    rows = tuple(
        row.with_metrics(views=each(views[row.name])) if row.name in views else row for row in bare.ops
    )
    many = sum(views.values())
    totals = {"ops.count": each(bare.totals["ops.count"].low - many), VIEWS_COUNT.name: each(many)}
    return replace(bare, ops=rows, totals={**bare.totals, **totals})


def older(test: TestResult) -> TestResult:
    """The same, as an older release stored it."""
    counts = {row.name: row.count.low for row in test.ops}
    return simple_test(counts, steps=test.steps)


def compared(base: TestResult, head: TestResult, *, triton: str = "") -> TestComparison:
    """The comparison of a test; Triton, if given, is installed only for the head."""
    known = simple_run().environment
    here = replace(known, fingerprint={**known.fingerprint, "triton": triton}) if triton else known
    return compare_test(
        head, base, base=simple_run(base, name="main"), head=simple_run(head, environment=here)
    )


VIEWED = recorded({"aten::mul": 2, "aten::reshape": 3}, {"aten::reshape": 3})


@pytest.mark.parametrize(
    ("counts", "views", "verdict"),
    [
        ({"aten::reshape": 3}, {"aten::reshape": 3}, Verdict.PASS),
        ({"aten::reshape": 5}, {"aten::reshape": 5}, Verdict.CHANGED),
        ({"aten::reshape": 1}, {"aten::reshape": 1}, Verdict.CHANGED),
        ({"aten::reshape": 4, "aten::clone": 1}, {"aten::reshape": 3}, Verdict.REGRESSED),
        ({"aten::reshape": 3, "aten::contiguous": 1}, {"aten::reshape": 3, "aten::contiguous": 1}, Verdict.CHANGED),
        ({"aten::reshape": 3, "aten::contiguous": 1}, {"aten::reshape": 3}, Verdict.REGRESSED),
    ],
)  # fmt: skip
@pytest.mark.parametrize("base", [VIEWED, older(VIEWED)], ids=["same release", "older release"])
def test_views_are_distinguished_from_ops(
    base: TestResult, counts: dict[str, int], views: dict[str, int], verdict: Verdict
) -> None:
    head = recorded({"aten::mul": 2} | counts, views)
    assert compared(base, head).verdict is verdict


def test_a_view_that_copies_now_is_a_rise() -> None:
    head = recorded({"aten::mul": 2, "aten::reshape": 3}, {"aten::reshape": 2})
    assert compared(VIEWED, head).verdict is Verdict.REGRESSED
    assert compared(head, VIEWED).verdict is Verdict.IMPROVED


def test_a_fall_beside_an_older_baseline_may_be_of_views() -> None:
    head = recorded({"aten::mul": 2}, {})
    assert compared(VIEWED, head).verdict is Verdict.CHANGED
    assert compared(older(VIEWED), head).verdict is Verdict.CHANGED


def test_more_views_do_not_hide_an_improvement() -> None:
    head = recorded({"aten::mul": 1, "aten::reshape": 9}, {"aten::reshape": 9})
    assert compared(VIEWED, head).verdict is Verdict.IMPROVED


def test_an_improvement_is_shown_by_an_op_that_fell() -> None:
    before = recorded({"aten::mul": 5, "aten::view": 1}, {"aten::view": 1})
    found = compared(before, recorded({"aten::mul": 2, "aten::view": 9}, {"aten::view": 9}))
    assert (found.verdict, worst_change(found)) == (Verdict.IMPROVED, "aten::mul -3")


def test_views_are_advisory_in_another_environment() -> None:
    """In another environment, where equal values pass, other views are advisory."""
    head = recorded({"aten::mul": 2, "aten::reshape": 5}, {"aten::reshape": 5})
    found = compared(VIEWED, head, triton="3.0")
    assert found.verdict is Verdict.PASS
    assert any("views, total: measured in another environment" in told for told in found.advisories)


def test_run_counting_views_as_ops_is_not_a_rise() -> None:
    found = compared(VIEWED, older(VIEWED))
    assert (found.verdict, found.reason) == (
        Verdict.INCONCLUSIVE,
        "ops, total: only this run counts views as ops",
    )


def test_a_gate_on_views_needs_to_know_them() -> None:
    base = replace(VIEWED, gates={"views.count": "exact"})
    head = replace(older(VIEWED), gates=base.gates)
    (views,) = (change for change in compared(base, head).changes if change.metric == "views.count")
    assert (views.verdict, views.reason) == (Verdict.INCONCLUSIVE, "it was not measured in this run")


@pytest.mark.parametrize(("base", "notes"), [(VIEWED, 0), (older(VIEWED), 1)])
def test_guessed_views_are_reported(base: TestResult, notes: int) -> None:
    sides = [simple_run(test, name="main") for test in (base, VIEWED)]
    found = compare_runs(*sides, created=_NOW, opprof_version="0.1.0")
    told = "main counts views as ops: this run decides which ops are views. Save it again"
    assert found.notes == (told,) * notes


def test_sometimes_copying_op_has_as_many_views_in_the_base() -> None:
    mixed = recorded({"aten::to": 5, "aten::mul": 1}, {"aten::to": 3})
    assert compared(older(mixed), mixed).verdict is Verdict.PASS
    varying = Samples.of([3, 4, 5])
    rows = tuple(row.with_metrics(views=varying) if row.views else row for row in mixed.ops)
    head = replace(mixed, ops=rows, totals={**mixed.totals, VIEWS_COUNT.name: varying})
    assert compared(older(mixed), head).verdict is not Verdict.REGRESSED
