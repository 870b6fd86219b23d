"""Work that moved into threads from before the steps."""

from pytest_opprof.compare.background import with_moved_work
from pytest_opprof.compare.comparison import Change
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.kinds import OpKind
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


def test_a_kind_that_rose_as_much_as_it_fell_has_not_grown() -> None:
    ops = counted("aten::mul", 0, 4, verdict=None)
    ranges = [
        counted("load", 0, 3, kind=OpKind.RANGE, verdict=None),
        counted("store", 3, 0, kind=OpKind.RANGE, verdict=None),
    ]
    assert verdicts(FALL, ops, *ranges) == [Verdict.CHANGED, Verdict.CHANGED, None, None]
