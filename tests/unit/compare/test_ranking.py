"""The order of a failure's ops: the cause first."""

from dataclasses import replace

import pytest
from support.documents.strategies import calling, simple_run

from pytest_opprof.compare.cause import Causes
from pytest_opprof.compare.comparison import Change, TestComparison
from pytest_opprof.compare.phrases import name_of
from pytest_opprof.compare.ranking import ranked
from pytest_opprof.compare.sessions import compare_test
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.kinds import OpKind
from pytest_opprof.results.run import TestResult
from pytest_opprof.results.samples import Samples

ENGINE = "autograd::engine::evaluate_function: MulBackward0"


def compared(base: TestResult, head: TestResult) -> TestComparison:
    return compare_test(head, base, base=simple_run(base, name="main"), head=simple_run(head))


def order(base: TestResult, head: TestResult) -> list[str]:
    return [name_of(change) for change in compared(base, head).changes if change.op is not None]


def test_replacement_ranks_above_its_callees() -> None:
    sort = ("aten::sort", 1, ("aten::arange", 1, ("aten::empty", 1)), ("aten::copy_", 2))
    assert order(calling(("aten::topk", 1)), calling(sort))[0] == "aten::topk -> aten::sort"


def test_replaced_op_ranks_with_the_worst_op_inside_it() -> None:
    base = calling(("outer", 1, ("aten::fused", 1, ("aten::t", 1), ("aten::mm", 1))))
    math = ("aten::math", 1, ("aten::t", 1), ("aten::mm", 1), ("aten::to", 1, ("aten::copy_", 3)))
    found = compared(base, calling(("outer", 1, math)))
    first, *others = [change for change in found.changes if change.op is not None]
    assert (name_of(first), first.verdict) == ("aten::fused -> aten::math", Verdict.CHANGED)
    assert {change.verdict for change in others} == {Verdict.REGRESSED}


def test_cause_explaining_most_ranks_first() -> None:
    little, much = ("aten::item", 1), ("aten::layer", 1, ("aten::mul", 4), ("aten::add", 4))
    assert order(calling(("aten::relu", 1)), calling(("aten::relu", 1), little, much))[:2] == [
        "aten::layer",
        "aten::item",
    ]


def test_first_running_of_equal_causes_ranks_first() -> None:
    names = ["aten::sub", "aten::square", "aten::mean"]
    once, twice = ([(name, many) for name in names] for many in (1, 2))
    assert order(calling(*once), calling(*twice)) == names


def test_many_calls_without_inner_ops_explain_more_than_a_few_with_them() -> None:
    few, many = ("aten::index", 2, ("aten::view", 1)), ("aten::copy_", 600)
    assert order(calling(("aten::relu", 1)), calling(("aten::relu", 1), few, many))[0] == "aten::copy_"


def test_the_backward_follows_the_forward_and_the_engine_is_last() -> None:
    backward = (ENGINE, 1, ("my::MulBackward0", 1, ("aten::conj", 3), ("aten::neg", 3)))
    found = order(calling(("aten::relu", 1)), calling(("aten::relu", 1), ("aten::mul", 1), backward))
    assert (found[:2], found[-1]) == (["aten::mul", "my::MulBackward0"], ENGINE)


def test_new_op_ranks_above_the_new_range_around_it() -> None:
    base = calling(("aten::relu", 1))
    assert order(base, calling(("block", 1, ("aten::relu", 1), ("aten::clone", 1))))[0] == "aten::clone"


def test_op_begins_in_the_forward_though_the_backward_calls_it_more() -> None:
    forward, backward = (("aten::to", count, ("aten::_to_copy", count)) for count in (2, 3))
    node = ("autograd::engine::evaluate_function: ToCopyBackward0", 3, ("ToCopyBackward0", 3, backward))
    found = compared(calling(("aten::relu", 1)), calling(("aten::relu", 1), forward, node))
    first, *others = [change for change in found.changes if change.op is not None]
    assert (first.op, first.begins) == ("aten::to", True)
    assert not any(change.begins for change in others)


def keeping(test: TestResult, **kept: int) -> TestResult:
    """The test, some of whose ops keep so many bytes, including those that ops inside them keep."""
    rows = (
        row.with_metrics(
            retained=Samples.constant(kept.get(row.name.rpartition("::")[2], 0), steps=test.steps)
        )
        for row in test.ops
    )
    return replace(
        test,
        sources=(*test.sources, "retained"),
        ops=tuple(replace(row, kind=OpKind.RANGE) if row.name == "train" else row for row in rows),
        totals={**test.totals, "memory.retained": Samples.constant(max(kept.values()), steps=test.steps)},
    )


def test_what_an_op_keeps_begins_inside_of_ranges_and_of_ops_that_run_as_often() -> None:
    base = keeping(calling(("train", 1, ("my::Function", 1, ("aten::clone", 1)))), train=8)
    head = calling(("train", 1, ("my::Function", 1, ("aten::clone", 3, ("aten::empty", 2)))))
    head = keeping(head, train=40, Function=32, clone=32, empty=32)
    kept = [change.op for change in compared(base, head).changes if change.metric == "retained"]
    assert kept == ["aten::clone", "aten::empty"]
    head = calling(("train", 1, ("my::Function", 1, ("aten::clone", 1))))
    head = keeping(head, train=40, Function=32, clone=32)
    kept = [change.op for change in compared(base, head).changes if change.metric == "retained"]
    assert kept == ["my::Function", "aten::clone"]


def totals(**rises: tuple[Samples, Samples]) -> list[str]:
    """The metrics of totals with these sides, in their order."""
    names = {"python": "python.instructions", "libraries": "python.library_instructions"}
    names |= {"memory": "cpu_memory.allocated", "peak": "cpu_memory.peak", "ops": "ops.count"}
    changes = [
        Change(op=None, metric=names[name], base=base, head=head, rule="exact", verdict=Verdict.REGRESSED)
        for name, (base, head) in rises.items()
    ]
    test = TestResult(node_id="t")
    return [change.metric for change in ranked(changes, Causes(test, test))]


def rise(before: int, after: int) -> tuple[Samples, Samples]:
    return Samples.constant(before, steps=2), Samples.constant(after, steps=2)


def test_the_certain_total_with_the_largest_share_comes_first() -> None:
    found = totals(
        memory=(Samples.of([360, 365]), Samples.of([9_000, 9_100])),
        python=rise(198_068, 202_148),
        libraries=rise(13_168, 5_720_878),
    )
    assert [name.rpartition(".")[2] for name in found] == [
        "library_instructions",
        "instructions",
        "allocated",
    ]


@pytest.mark.parametrize(
    ("after", "first"),
    [(1_300, "cpu_memory.allocated"), (1_010, "python.instructions")],
    ids=["more", "less"],
)
def test_allocated_memory_stands_for_all_memory(after: int, first: str) -> None:
    """Some bytes more may be many times the peak."""
    found = totals(memory=rise(1_000, after), peak=rise(8, 80), python=rise(10_000, 11_000))
    assert found[0] == first
    assert found.index("cpu_memory.peak") == found.index("cpu_memory.allocated") + 1


def test_a_rise_from_zero_has_the_largest_share() -> None:
    assert totals(python=rise(10, 1_000), libraries=rise(0, 300))[0] == "python.library_instructions"


def test_ops_come_before_the_python_that_runs_them() -> None:
    assert totals(ops=rise(1_000, 1_004), python=rise(1_000, 9_000))[0] == "ops.count"
