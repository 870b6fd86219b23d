"""Work on older threads: shown, never judged, and no improvement if it moved there."""

from dataclasses import replace

import pytest
from support.documents.judged_tests import compared
from support.documents.strategies import simple_test

from pytest_opprof.compare.comparison import Change
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.compare.work import with_moved_work
from pytest_opprof.kinds import OpKind
from pytest_opprof.results.run import OpRow, TestResult
from pytest_opprof.results.samples import Samples


def counted(
    op: str | None, base: int, head: int, *, kind: OpKind = OpKind.OP, verdict: Verdict | None
) -> Change:
    return Change(
        op=op,
        kind=kind if op else None,
        background=op is not None,
        metric="count" if op else "ops.count",
        base=Samples.constant(base, steps=1),
        head=Samples.constant(head, steps=1),
        verdict=verdict,
    )


def verdicts(*changes: Change) -> list[Verdict | None]:
    return [change.verdict for change in with_moved_work(changes)]


FALL = counted(None, 9, 5, verdict=Verdict.IMPROVED)


def test_a_fall_beside_more_in_the_background_is_changed() -> None:
    rise = counted("aten::mul", 0, 4, verdict=None)
    assert verdicts(FALL, rise) == [Verdict.CHANGED, Verdict.CHANGED]


def test_a_fall_alone_is_an_improvement() -> None:
    assert verdicts(FALL) == [Verdict.IMPROVED]


def test_kind_that_rose_and_fell_equally_has_not_grown() -> None:
    ops = counted("aten::mul", 0, 4, verdict=None)
    ranges = [
        counted("load", 0, 3, kind=OpKind.RANGE, verdict=None),
        counted("store", 3, 0, kind=OpKind.RANGE, verdict=None),
    ]
    assert verdicts(FALL, ops, *ranges) == [Verdict.CHANGED, Verdict.CHANGED, None, None]


def in_background(test: TestResult, calls: int, *, kind: OpKind = OpKind.OP) -> TestResult:
    """The test with N calls in all, on an older thread."""
    spread = Samples(steps=test.steps, total=calls, low=0, high=calls)
    row = OpRow(
        name="aten::mul",
        kind=kind,
        background=True,
        metrics={"count": spread},
    )
    return replace(test, ops=(*test.ops, row))


@pytest.mark.parametrize(
    ("before", "after", "kind", "verdict"),
    [
        (0, 6, OpKind.OP, Verdict.CHANGED),
        (6, 7, OpKind.OP, Verdict.CHANGED),
        (6, 6, OpKind.OP, Verdict.IMPROVED),
        (6, 0, OpKind.OP, Verdict.IMPROVED),
        (0, 6, OpKind.CALL, Verdict.IMPROVED),
    ],
)
def test_ops_moved_to_the_background_are_not_an_improvement(
    before: int, after: int, kind: OpKind, verdict: Verdict
) -> None:
    base = in_background(simple_test({"aten::mul": 10}), before, kind=kind)
    found = compared(base, in_background(simple_test({"aten::mul": 8}), after, kind=kind))
    assert found.verdict is verdict
    assert found.reason.startswith("2 fewer ops in each step than main")
    # it gates nothing, whether something fell or not
    assert compared(base, in_background(simple_test({"aten::mul": 10}), after)).verdict is Verdict.PASS


def test_the_background_is_compared_by_the_step() -> None:
    base, head = simple_test({"aten::mul": 10}), simple_test({"aten::mul": 8}, steps=5)
    assert compared(in_background(base, 6), in_background(head, 10)).verdict is Verdict.IMPROVED
    found = compared(in_background(base, 6), in_background(head, 11))
    assert found.verdict is Verdict.CHANGED
    assert [change.rise for change in found.changes if change.background] == [1]


def test_background_is_shown_and_never_judged() -> None:
    base = simple_test({"aten::mul": 4})
    background = OpRow(
        name="aten::item",
        kind=OpKind.OP,
        background=True,
        metrics={"count": Samples(steps=3, total=5, low=0, high=5)},
    )
    found = compared(base, replace(base, ops=(*base.ops, background)))
    assert found.verdict is Verdict.PASS
    assert [change.background for change in found.changes] == [True]
