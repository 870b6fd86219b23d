"""The op table of one test: torch.profiler's columns, in its order, in its units, from a document."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from pytest_opprof.errors import UsageError
from pytest_opprof.report.text import escaped
from pytest_opprof.units import (
    EVERY_PPM,
    format_flops,
    format_memory,
    format_share,
    format_time,
    format_time_share,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from pytest_opprof.results.run import OpRow, TestResult

COLUMNS = (
    "Name",
    "Self CPU %",
    "Self CPU",
    "CPU total %",
    "CPU total",
    "CPU time avg",
    "CPU Mem",
    "# of Calls",
    "Total FLOPs",
)
# torch.profiler's widths.
_COLUMN_WIDTH = 12
_NAME_WIDTH = 55
_NAME_MARGIN = 4
_DOTS = 3
_GAP = "  "


def _average_ns(row: OpRow) -> float:
    return row.cpu_time_total_ns.total / row.count.total if row.count.total else 0.0


def _memory(row: OpRow) -> int:
    return row.cpu_memory.total if row.cpu_memory else 0


def _flops(row: OpRow) -> int:
    return row.flops.total if row.flops else 0


_SORTS: dict[str, Callable[[OpRow], float]] = {
    "self_cpu_time_total": lambda row: row.self_cpu_time_total_ns.total,
    "cpu_time_total": lambda row: row.cpu_time_total_ns.total,
    "cpu_time": _average_ns,
    "count": lambda row: row.count.total,
    "cpu_memory_usage": _memory,
    "flops": _flops,
}
SORT_KEYS = (*_SORTS, "name")


def op_table(
    test: TestResult,
    *,
    sort_by: str = "self_cpu_time_total",
    rows: int = 10,
    columns: Collection[str] | None = None,
) -> list[str]:
    """The key averages over all active steps as torch.profiler prints them, line by line.

    Args:
        test: the measured test.
        sort_by: one of `SORT_KEYS`; the largest first, names in alphabetical order.
        rows: how many rows; all of them when negative.
        columns: the titles to show, of `COLUMNS`; when None all of which there is something to tell. The
            name is always there.

    Raises:
        UsageError: no such key or column.
    """
    shown = _shown(columns, test.ops)
    ordered = _ordered(test.ops, sort_by)
    whole_ns = sum(row.self_cpu_time_total_ns.total for row in test.ops)
    cells = [_cells(row, whole_ns=whole_ns) for row in (ordered if rows < 0 else ordered[:rows])]
    longest = max((len(escaped(row.name)) for row in test.ops), default=0) + _NAME_MARGIN
    widths = [min(longest, _NAME_WIDTH), *[_COLUMN_WIDTH] * (len(COLUMNS) - 1)]

    def line(values: Sequence[str]) -> str:
        return "".join(values[at].rjust(widths[at]) + _GAP for at in shown)

    share = format_share(test.capture.sampled_ppm / EVERY_PPM)
    notes = [f"Sampled: {share} of torch's ops were recorded"] if test.capture.is_sampled else []
    rule = line(["-" * width for width in widths])
    return [
        rule,
        line(COLUMNS),
        rule,
        *(line(row) for row in cells),
        rule,
        f"Self CPU time total: {format_time(whole_ns)}",
        *notes,
    ]


def _ordered(ops: Sequence[OpRow], sort_by: str) -> list[OpRow]:
    if sort_by not in SORT_KEYS:
        raise UsageError(f"unknown sort key {sort_by!r} ({_hint(sort_by, SORT_KEYS)})")
    by_name = sorted(ops, key=lambda row: row.key)
    return by_name if sort_by == "name" else sorted(by_name, key=_SORTS[sort_by], reverse=True)


def _shown(columns: Collection[str] | None, ops: Sequence[OpRow]) -> list[int]:
    if columns is None:
        untold = {
            None if any(row.cpu_memory for row in ops) else "CPU Mem",
            None if any(row.flops for row in ops) else "Total FLOPs",
        }
        return [at for at, title in enumerate(COLUMNS) if title not in untold]
    known = {title.lower(): at for at, title in enumerate(COLUMNS)}
    places = {0}
    for column in columns:
        if column.lower() not in known:
            raise UsageError(f"unknown column {column!r} ({_hint(column, COLUMNS)})")
        places.add(known[column.lower()])
    return sorted(places)


def _hint(text: str, choices: Collection[str]) -> str:
    near = difflib.get_close_matches(text, choices, n=1)
    return f"did you mean {near[0]!r}?" if near else f"choose from: {', '.join(choices)}"


def _cells(row: OpRow, *, whole_ns: int) -> list[str]:
    name = escaped(row.name)
    if len(name) >= _NAME_WIDTH - _DOTS:
        name = name[: _NAME_WIDTH - _DOTS] + "." * _DOTS
    self_ns, total_ns = row.self_cpu_time_total_ns.total, row.cpu_time_total_ns.total
    return [
        name,
        format_time_share(self_ns, whole_ns),
        format_time(self_ns),
        # torch counts no share of what overlaps everything else.
        "0" if row.is_async else format_time_share(total_ns, whole_ns),
        format_time(total_ns),
        format_time(_average_ns(row)),
        format_memory(_memory(row)),
        str(row.count.total),
        format_flops(_flops(row)) if row.flops else "--",
    ]
