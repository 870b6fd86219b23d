"""What a broken budget was spent on: ops with the lines that called them, or functions."""

from __future__ import annotations

from pytest_opprof.compare.functions import in_words
from pytest_opprof.compare.sums import part_metric, part_of
from pytest_opprof.metrics import MetricPath, matches
from pytest_opprof.results.names import STEP_NAME
from pytest_opprof.results.run import OpRow, TestResult
from pytest_opprof.units import Unit, format_quantity

_MOST = 3


def culprits(path: MetricPath, test: TestResult) -> str:
    """``aten::clone in keep, train.py:31 (4 KiB)``, those that have most first; "" where nothing is known."""
    if counts := test.functions.get(path.metric.name) if path.op is None else None:
        return f"in {in_words(counts, of=path.metric)}"
    metric = path.metric.name if path.op else part_metric(path.metric)
    rows = [row for row in test.ops if not row.background and row.name != STEP_NAME]
    amounts = {row.key: _amount(path, row) for row in rows}
    rows = [row for row in rows if amounts[row.key]]
    # An op has what the ops inside it have: the outermost is the one that somebody called.
    names = {row.name for row in rows}
    called = [row for row in rows if path.op or row.parent_op not in names] or rows
    ranked = sorted(called, key=lambda row: (-amounts[row.key], row.key))
    told = [
        f"{name} ({_quantity(amounts[row.key], path.metric.unit)})"
        for row in ranked[:_MOST]
        if (name := _named(row, metric, is_asked_for=row.name == path.op))
    ]
    more = [f"{len(ranked) - _MOST} more"] if len(ranked) > _MOST else []
    return "; ".join(told + more)


def _amount(path: MetricPath, row: OpRow) -> float:
    if path.op is None:
        return part_of(path.metric, row)
    return row.samples(path.metric.name).mean if matches(path.op, row.name) else 0.0


def _named(row: OpRow, metric: str, *, is_asked_for: bool) -> str:
    """The op and the line that called it most; an op that the budget itself names is not repeated."""
    places = row.parts.get(metric) or row.places
    place = max(places, key=lambda name: (places[name], name), default="")
    return " in ".join(filter(None, ("" if is_asked_for else row.name, place)))


def _quantity(amount: float, unit: Unit) -> str:
    return format_quantity(round(amount), unit=unit)
