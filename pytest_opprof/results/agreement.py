"""Does a test measured again say the same? What disagrees is kept as a range and gates nothing."""

from __future__ import annotations

from dataclasses import replace

from pytest_opprof.metrics import COUNT, TOTALS, Family, MetricPath
from pytest_opprof.results.run import OpRow, TestResult
from pytest_opprof.results.samples import Samples


def repeated(first: TestResult, again: TestResult, *, fresh_process: bool) -> TestResult:
    """``first``, with its exact metrics widened where ``again`` found something else.

    Args:
        first: the measurement that counts.
        again: the same test measured once more; one that failed changes nothing.
        fresh_process: whether that was in a process of its own: agreement is then worth a certificate.
    """
    if not again.is_usable or not again.steps:
        return first
    unstable = dict.fromkeys(first.unstable)
    totals = {}
    for name, measured in first.totals.items():
        samples, other = measured, again.totals.get(name)
        is_exact = name in TOTALS and TOTALS[name].family is Family.EXACT
        if other is not None and is_exact and _disagree(samples, other):
            samples = samples.widened(other)
            unstable[name] = None
        totals[name] = samples
    rows = _rows(first, again)
    for before, row in rows:
        if before is not row:
            unstable[str(MetricPath(op=row.name, metric=COUNT))] = None
    return replace(
        first,
        totals=totals,
        ops=tuple(row for _, row in rows),
        unstable=tuple(unstable),
        processes=first.processes + (again.processes if fresh_process else 0),
    )


def _rows(first: TestResult, again: TestResult) -> list[tuple[OpRow | None, OpRow]]:
    """Each row before and after: the same object where nothing disagreed."""
    zero = Samples.constant(0, steps=first.steps)
    others = {row.key: row for row in again.ops}
    rows: list[tuple[OpRow | None, OpRow]] = []
    for row in first.ops:
        other = others.pop(row.key, None)
        count = other.count if other else zero
        agrees = (
            row.background or not _disagree(row.count, count) or (other is None and again.ops_omitted > 0)
        )
        rows.append((row, row if agrees else replace(row, count=row.count.widened(count))))
    for row in others.values():
        if not row.background and not first.ops_omitted:
            absent = replace(
                row, count=zero.widened(row.count), cpu_time_total_ns=zero, self_cpu_time_total_ns=zero
            )
            rows.append((None, absent))
    return rows


def _disagree(one: Samples, other: Samples) -> bool:
    return (one.low, one.high) != (other.low, other.high)
