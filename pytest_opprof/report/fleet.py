"""A job of many ranks, and two jobs, as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Final

from pytest_opprof.report.text import Line, Style, escaped, table
from pytest_opprof.results.fleet import Fleet, FleetDifference, FleetSummary, OpChange, RankSummary
from pytest_opprof.units import EVERY_PPM, format_bytes, format_duration
from pytest_opprof.wording import counted

_STEP: Final = ("of a step", "median rank", "lowest", "highest", "at rank")
_TIMES: Final = {
    "step_ns": "whole step",
    "compute_ns": "computing",
    "exposed_communication_ns": "exposed communication",
    "launch_bound_ns": "idle: launch-bound",
    "host_ns": "idle: host code",
    "synchronize_ns": "idle: synchronizing",
    "queued_ns": "idle: queued",
}
_OPS: Final = ("op", "calls", "ranks", "median", "p10 to p90", "change")


def fleet_lines(found: Fleet, *, rows: int, width: int) -> Iterator[Line | str]:
    """A job, or two jobs with `rows` of the changed ops; all of these if negative."""
    if isinstance(found, FleetSummary):
        yield from _summary_lines(found, width=width)
    else:
        yield from _difference_lines(found, rows=rows, width=width)
    yield from (Line(escaped(problem), Style.BAD) for problem in found.problems)
    if found.problems:
        yield Line(f"INCONCLUSIVE: {counted(len(found.problems), 'problem')}", Style.BAD)


def _summary_lines(summary: FleetSummary, *, width: int) -> Iterator[Line | str]:
    parts = [
        f"{len(summary.ranks)} of {counted(summary.world_size, 'rank')}",
        counted(len(summary.steps), "step"),
        counted(summary.collectives, "collective"),
    ]
    yield Line(f"{escaped(summary.job)}, window {escaped(summary.window)}: {', '.join(parts)}", Style.BOLD)
    rows = [
        _row(summary.ranks, name) for name in _TIMES if any(getattr(rank, name) for rank in summary.ranks)
    ]
    yield from table(_STEP, rows, width=width, names=0, right=_STEP[1:])
    if any(rank.peak_bytes for rank in summary.ranks):
        most = max(summary.ranks, key=lambda rank: rank.peak_bytes)
        middle = median(rank.peak_bytes for rank in summary.ranks)
        highest = f"{format_bytes(most.peak_bytes)} (rank {most.rank})"
        yield f"peak memory: median {format_bytes(middle)}, most {highest}"
    offsets = [rank.clock_offset_ns for rank in summary.ranks]
    if summary.collectives:
        spread = format_duration(max(offsets) - min(offsets))
        left = format_duration(summary.clock_skew_ns)
        yield f"clocks: {spread} apart, {left} once they are aligned by the ends of collectives"
    for one in summary.stragglers:
        share = f"{one.share_ppm / EVERY_PPM:.1%}"
        told = f"straggler: rank {one.rank}: {format_duration(one.lateness_ns)} late a step ({share})"
        yield Line(f"{told}: {escaped(one.arises)}", Style.WARN)
    # A note says why nobody looked for them.
    if not (summary.stragglers or summary.problems or summary.notes) and summary.collectives:
        yield "no stragglers"
    yield from map(escaped, summary.notes)


def _row(ranks: Sequence[RankSummary], name: str) -> list[str]:
    values = sorted((getattr(rank, name), rank.rank) for rank in ranks)
    times = (median(value for value, _ in values), values[0][0], values[-1][0])
    return [_TIMES[name], *map(format_duration, times), str(values[-1][1])]


def _difference_lines(found: FleetDifference, *, rows: int, width: int) -> Iterator[Line | str]:
    windows = "windows: {} and {}".format(*found.windows)
    title = f"{escaped(found.base)} → {escaped(found.head)}: {counted(found.ranks, 'rank')}, {windows}"
    yield Line(title, Style.BOLD)
    shown = found.ops if rows < 0 else found.ops[: max(rows, len(found.failures))]
    if shown:
        cells = [_cells(op, ranks=found.ranks) for op in shown]
        yield from table(_OPS, cells, width=width, names=0, right=_OPS[1:])
    left_out = f", {len(found.ops) - len(shown)} more changed" if len(shown) < len(found.ops) else ""
    yield Line(f"{len(found.ops)} of {len(found.ops) + found.same} ops changed{left_out}", Style.DIM)
    yield from map(escaped, found.notes)
    for op in found.failures:
        on = f" on {op.ranks} of {counted(found.ranks, 'rank')}" if op.ranks else ""
        counts = f" ({_range(op.base)} → {_range(op.head)} a step)" if op.base != op.head else ""
        yield Line(f"FAILED: {escaped(op.name)}: {escaped(op.reason)}{on}{counts}", Style.BAD)
    if not found.problems and not found.failures:
        yield Line("passed", Style.GOOD)


def _cells(op: OpChange, *, ranks: int) -> list[str]:
    base, head = op.base_ns, op.head_ns
    change = f"{head.p50 / base.p50 - 1:+.1%}" if base.p50 else "new" if head.p50 else ""
    return [
        f"{op.name} (device)" if op.on_device else op.name,
        _range(op.base) if op.base == op.head else f"{_range(op.base)} → {_range(op.head)}",
        f"{op.ranks} of {ranks}" if op.ranks else "",
        f"{format_duration(base.p50)} → {format_duration(head.p50)}",
        f"{format_duration(head.p10)} to {format_duration(head.p90)}",
        change,
    ]


def _range(counts: tuple[int, int]) -> str:
    return str(counts[0]) if counts[0] == counts[1] else f"{counts[0]} to {counts[1]}"
