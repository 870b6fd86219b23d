"""Does a test measured again agree? Values that do not are kept as a range and not gated."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

from pytest_opprof.metrics import COUNT, OP_METRICS, ROW_METRICS, TOTALS, Family, Metric, MetricPath, Source
from pytest_opprof.metrics.metric import BOUNDED_PERCENT
from pytest_opprof.results.build import MAX_LINES
from pytest_opprof.results.run import CaptureStats, OpRow, TestResult
from pytest_opprof.results.samples import Samples

_EXACT = {name: metric for name, metric in ROW_METRICS.items() if metric.family is Family.EXACT}


def repeated(first: TestResult, again: TestResult, *, fresh_process: bool) -> TestResult:
    """``first``, the deciding measurement, with its counts, bytes and peaks widened if ``again`` differs.

    A second measurement that failed changes nothing. In a fresh process, one that agrees certifies.
    """
    if not again.is_usable or not again.steps:
        return first
    unstable = dict.fromkeys(first.unstable)
    totals = dict(first.totals)
    for name, samples in first.totals.items():
        if name in TOTALS and _disagree(samples, again.totals.get(name, samples), TOTALS[name]):
            totals[name] = samples.widened(again.totals[name])
            unstable[name] = None
    rows = _rows(first, again)
    for row, metrics in rows:
        unstable |= dict.fromkeys(str(MetricPath(op=row.name, metric=metric)) for metric in metrics)
    return replace(
        first,
        totals=totals,
        ops=tuple(row for row, _ in rows),
        lines=dict(islice({**first.lines, **again.lines}.items(), MAX_LINES)),
        callers=first.callers or again.callers,
        unstable=tuple(unstable),
        compile_cache=tuple(sorted({*first.compile_cache, *again.compile_cache})),
        capture=_with_losses_of(again.capture, first.capture),
        processes=first.processes + (again.processes if fresh_process else 0),
    )


def settled(test: TestResult, last: TestResult) -> TestResult:
    """``test`` with the memory totals of ``last`` if Python's memory only fell to them and then stayed.

    The interpreter allocates less for code once it has specialized it (PEP 659), some calls after the process
    first ran it. Earlier tests decide in which test that happens. ``last`` is the process's last measurement.
    """
    if test is last or Source.MEMORY_PYTHON not in test.sources or not last.is_usable:
        return test
    fell = {
        name: Samples.constant(after.low, steps=test.steps)
        for name, before in test.totals.items()
        if name in TOTALS and TOTALS[name].source in {Source.MEMORY, Source.RETAINED}
        if (after := last.totals.get(name)) is not None and after.is_constant and after.low <= before.low
    }
    return replace(test, totals={**test.totals, **fell})


def _with_losses_of(again: CaptureStats, first: CaptureStats) -> CaptureStats:
    """The losses of both: an incomplete second look neither confirms nor denies."""
    return replace(
        first,
        dropped=max(first.dropped, again.dropped),
        truncated=first.truncated or again.truncated,
        names_overflowed=max(first.names_overflowed, again.names_overflowed),
        device_partial=first.device_partial or again.device_partial,
        device_dropped=max(first.device_dropped, again.device_dropped),
        unmatched_launches=max(first.unmatched_launches, again.unmatched_launches),
        unmatched_kernels=max(first.unmatched_kernels, again.unmatched_kernels),
        untimed_work=max(first.untimed_work, again.untimed_work),
    )


def _rows(first: TestResult, again: TestResult) -> list[tuple[OpRow, list[Metric]]]:
    """Each widened row, with its metrics that disagreed."""
    zero = Samples.constant(0, steps=first.steps)
    others = {row.key: row for row in again.ops}
    lacks_places = not any(row.places for row in first.ops)
    rows: list[tuple[OpRow, list[Metric]]] = []
    for measured in first.ops:
        row, other = measured, others.pop(measured.key, None)
        if lacks_places and other is not None and other.places:
            row = replace(row, source=other.source, places=other.places)
        if row.background or (other is None and again.ops_omitted > 0):
            rows.append((row, []))
            continue
        rows.append(_widened(row, other, zero=zero))
    for row in others.values():
        if not row.background and not first.ops_omitted:
            absent = replace(row, metrics={COUNT.name: zero})
            rows.append(_widened(absent, row, zero=zero))
    return rows


def _widened(row: OpRow, other: OpRow | None, *, zero: Samples) -> tuple[OpRow, list[Metric]]:
    wider: dict[str, Samples] = {}
    told = row.metrics.keys() | (other.metrics.keys() if other else ())
    for name, metric in _EXACT.items():
        if name not in told:
            continue
        mine, others = row.samples(name), other.samples(name) if other else zero
        if _disagree(mine, others, metric):
            wider[name] = mine.widened(others)
    if not wider:
        return row, []
    metrics = [OP_METRICS[name] for name in wider if name in OP_METRICS]
    return row.with_metrics(**wider), metrics


def _disagree(one: Samples, other: Samples, metric: Metric) -> bool:
    """Whether two measurements disagree; peaks, by more than their tolerance."""
    if one is other or metric.family is Family.TIME:
        return False
    is_bounded = metric.family is Family.BOUNDED
    percent = BOUNDED_PERCENT if is_bounded else 0
    least = metric.slack.least if is_bounded and metric.slack else 0
    apart = max(abs(other.low - one.low), abs(other.high - one.high))
    return apart > least and 100 * apart > percent * one.high
