"""Views: ops that launch and copy nothing. A test that differs only by them is neither better nor worse."""

from __future__ import annotations

from dataclasses import replace

from pytest_opprof.compare.comparison import Change, RowPair
from pytest_opprof.kinds import OpKind
from pytest_opprof.metrics import OPS_COUNT, VIEWS_COUNT, Source
from pytest_opprof.results.run import OpRow, TestResult
from pytest_opprof.results.samples import Samples


def is_by_views(change: Change, pair: RowPair) -> bool:
    """Whether a row's count rose or fell only by its views."""
    if not any(side is not None and side.views is not None for side in (pair.base, pair.head)):
        return False
    work = replace(change, base=_not_views(pair.base), head=_not_views(pair.head)).rise
    return work <= 0 < change.rise or change.rise < 0 <= work


def _not_views(row: OpRow | None) -> Samples | None:
    return None if row is None else row.not_views


def is_guessed(base: TestResult, head: TestResult) -> bool:
    """Whether the base counts views as ops, and this run does not."""
    return head.tells_views and not base.tells_views and Source.OPS in base.sources


def with_views_as_in(base: TestResult, head: TestResult) -> TestResult:
    """A base that counts views as ops, with its views split off; any other as it is.

    Of each op, as many calls as in the head are not views. An op that the head does not run stays an op.
    """
    ops = base.totals.get(OPS_COUNT.name)
    if not is_guessed(base, head) or ops is None:
        return base
    now = {row.key: row for row in head.ops}
    rows = tuple(_like(row, now.get(row.key)) for row in base.ops)
    views = Samples.constant(0, steps=base.steps)
    for row in rows:
        if row.views is not None and not row.background:
            views = views.plus(row.views)
    return replace(
        base, ops=rows, totals={**base.totals, OPS_COUNT.name: ops.minus(views), VIEWS_COUNT.name: views}
    )


def _like(row: OpRow, now: OpRow | None) -> OpRow:
    if now is None or now.views is None or row.kind is not OpKind.OP:
        return row
    work = now.not_views
    if not work.high:
        return row.with_metrics(views=row.count)
    if not (work.is_constant and row.count.is_constant):
        return row
    return row.with_metrics(views=Samples.constant(max(row.count.low - work.low, 0), steps=row.count.steps))
