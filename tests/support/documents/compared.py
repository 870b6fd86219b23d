"""Comparisons for reports: a typical regression, and others that contain everything."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from support.documents.ab_runs import MS, near, one_test
from support.documents.strategies import simple_run, simple_test

from pytest_opprof.compare.comparison import CallLine, Change, Comparison
from pytest_opprof.compare.sessions import compare_runs
from pytest_opprof.compare.timing.comparison import TimeComparison
from pytest_opprof.compare.timing.judge import compare_times
from pytest_opprof.results.merge import Collected
from pytest_opprof.results.run import Commit, Measurement, MeasurementStatus, Run, TestResult, TreeNode

NOW = datetime(2026, 1, 3, tzinfo=UTC)
MAIN = Commit(id="1a2b3c4" + "0" * 33, dirty=False)
HEAD = Commit(id="5d6e7f8" + "0" * 33, dirty=True)


def compared(base: Run | None, head: Run) -> Comparison:
    """The comparison of two runs."""
    return compare_runs(base, head, created=NOW, opprof_version="0.1.0")


def named(name: str, counts: dict[str, int], **others: Any) -> TestResult:
    """A test in tests/test_model.py."""
    return simple_test(counts, node_id=f"tests/test_model.py::{name}", **others)


def cloning(*, places: dict[str, int] | None = None) -> Comparison:
    """The example of an added clone.

    Args:
        places: The lines that call it, if stacks were recorded.
    """
    tree = (
        TreeNode(parent=-1, name="aten::clone", count=6, self_ns=0),
        TreeNode(parent=0, name="aten::copy_", count=6, self_ns=0),
    )
    base = simple_run(named("test_step", {"aten::copy_": 12, "aten::mul": 9}), name="main", commit=MAIN)
    head = named("test_step", {"aten::copy_": 14, "aten::mul": 9, "aten::clone": 2}, tree=tree)
    if places:
        rows = tuple(replace(row, places=places if row.name == "aten::clone" else {}) for row in head.ops)
        head = replace(head, ops=rows)
    return compared(base, simple_run(head, commit=HEAD))


def without_a_number(comparison: Comparison) -> Comparison:
    """The comparison with changes of which only the function is known, as of totals."""
    tests = (
        replace(
            test, changes=tuple(one if one.line is None else _bare(one, one.line) for one in test.changes)
        )
        for test in comparison.tests
    )
    return replace(comparison, tests=tuple(tests))


def _bare(change: Change, line: CallLine) -> Change:
    return replace(change, line=replace(line, number=0, text="", is_certain=True))


def mixed() -> Comparison:
    """A test of each verdict that a comparison of two runs can have."""
    before = {"worse": 2, "better": 2, "other": 3, "same": 4, "broken": 1, "unlike": 1}
    base = simple_run(*(named(name, {"aten::mul": many}) for name, many in before.items()), name="main")
    failed = Measurement(status=MeasurementStatus.ERROR, reason="it cannot be repeated")
    doubtful = Measurement(status=MeasurementStatus.INCONCLUSIVE, reason="events were dropped")
    head = simple_run(
        named("worse", {"aten::mul": 3}),
        named("better", {"aten::mul": 1}),
        named("other", {"aten::add": 2}),
        named("same", {"aten::mul": 4}),
        named("broken", {"aten::mul": 1}, measurement=failed),
        named("unlike", {"aten::mul": 1}, measurement=doubtful),
        named("new", {"aten::mul": 1}),
        named("limited", {"aten::mul": 7}, limits={"aten::mul.count": 5}),
    )
    return compared(base, head)


def slower() -> TimeComparison:
    """An A/B of a slower test, and of one that calls an op more often."""
    base = [near(8 * MS, seed=2), near(4 * MS, seed=3)]
    head = [near(8 * MS, seed=4), near(round(4.4 * MS), seed=5)]
    again = [near(4 * MS, seed=6)], [near(round(4.4 * MS), seed=7)]

    def runs(times: list[list[int]], commit: Commit, *, count: int = 2, first: int = 0) -> list[Run]:
        names = [f"tests/test_a.py::test_{at}" for at in range(first, first + len(times))]
        return [
            simple_run(
                *(
                    one_test(values[at], node_id=name, count=count if name.endswith("0") else 2)
                    for values, name in zip(times, names, strict=True)
                ),
                run_id=f"{at + 1:x}",
                commit=commit,
            )
            for at in range(len(times[0]))
        ]

    confirmation = runs(again[0], MAIN, first=1), runs(again[1], HEAD, first=1)
    return compare_times(runs(base, MAIN), runs(head, HEAD, count=3), confirmation=confirmation)


def gone() -> Comparison:
    """A test of the baseline that no longer exists, in a file that has another."""
    stays = named("test_stays", {"aten::mul": 1})
    base = simple_run(named("test_gone", {"aten::mul": 1}), stays, name="main", commit=MAIN)
    head = simple_run(stays, commit=HEAD)
    collected = Collected(node_ids=frozenset({stays.node_id}), whole_paths=frozenset({"tests/test_model.py"}))
    return compare_runs(base, head, created=NOW, opprof_version="0.1.0", collected=collected)


def against(base: str, comparison: TimeComparison) -> TimeComparison:
    """An A/B whose base the user named so."""
    exact = comparison.exact
    assert exact.base is not None
    return replace(comparison, exact=replace(exact, base=replace(exact.base, name=base)))


def regressions(many: int, *, ops: int = 1, stem: str = "aten::item") -> Comparison:
    """N regressed tests with N regressed ops each; `stem` begins the ops' names."""
    names = [f"{stem}{at}" for at in range(ops)]
    base, head = (
        simple_run(
            *(named(f"test_{at}", dict.fromkeys(names, count)) for at in range(many)),
            name="main",
            commit=MAIN,
        )
        for count in (1, 2)
    )
    return compared(base, head)
