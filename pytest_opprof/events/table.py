"""The op table, with exactly torch.profiler's columns, widths and units.

``compat="torch"`` also repeats two mistakes of torch: ``Source Location`` and ``Total FLOPs`` show each
other's values, and an annotation on a device has a share of a total that does not include it.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Final

from pytest_opprof.errors import UsageError
from pytest_opprof.events.columns import (
    Column,
    Compat,
    Survey,
    TableOptions,
    TableRow,
    TimeUnit,
    device_title,
    format_time,
    survey,
    table_columns,
)

_GAP: Final = "  "


class Tabular(ABC):
    """Rows that can be shown as an op table."""

    __slots__ = ()

    # Whether the table has memory columns, and a FLOPs column.
    _profile_memory: bool
    _with_flops: bool

    def table(  # noqa: PLR0917  # torch's arguments, which may be given by place
        self,
        sort_by: str | None = None,
        row_limit: int | None = 100,
        max_src_column_width: int | None = 75,
        max_name_column_width: int | None = 55,
        max_shapes_column_width: int | None = 80,
        header: str | None = None,
        top_level_events_only: bool = False,  # noqa: FBT001, FBT002
        time_unit: TimeUnit | None = None,
        *,
        compat: Compat | None = None,
    ) -> str:
        """The rows as text, with torch.profiler's columns and units.

        Args:
            sort_by: The attribute to sort by, largest first, such as ``count``; None keeps the order.
            row_limit: Rows shown; -1 and None show all.
            max_src_column_width: Longer source locations are cut at the start; None never cuts.
            max_name_column_width: Longer names are cut at the end; None never cuts.
            max_shapes_column_width: Longer shapes are cut at the end; None never cuts.
            header: A line above the table.
            top_level_events_only: Leave out what ran inside another op.
            time_unit: ``s``, ``ms`` or ``us`` for all times; any other value means the unit that suits each.
            compat: ``"torch"`` repeats the mistakes of torch's table.

        Raises:
            UsageError: The rows cannot be sorted by that attribute, or there is no such `compat`.
        """
        return self._table(
            TableOptions(
                sort_by=sort_by,
                row_limit=row_limit,
                max_src_column_width=max_src_column_width,
                max_name_column_width=max_name_column_width,
                max_shapes_column_width=max_shapes_column_width,
                header=header,
                top_level_events_only=top_level_events_only,
                time_unit=time_unit,
                profile_memory=self._profile_memory,
                with_flops=self._with_flops,
                compat=compat,
            )
        )

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        """The table for a notebook, with names escaped."""
        import html  # noqa: PLC0415  # for notebooks only

        return f"<pre>{html.escape(self.table())}</pre>"

    @abstractmethod
    def _table(self, options: TableOptions) -> str:
        """The table with these options."""


def build_table(
    rows: Sequence[TableRow], options: TableOptions, *, facts: Survey | None = None, notes: Sequence[str] = ()
) -> str:
    """The table of rows as text; empty for no rows.

    `facts` are the result of `survey`, if the caller knows it without reading every row.
    """
    if not rows:
        return ""
    rows = sort_rows(rows, options.sort_by)
    facts = survey(rows) if facts is None else facts
    columns = table_columns(facts, options)
    rule = "".join("-" * column.width + _GAP for column in columns)
    double_rule = "=" * (len(rule) - len(_GAP))

    lines: list[str] = []
    if options.header is not None:
        lines += [double_rule, options.header]
    if options.top_level_events_only:
        lines += [double_rule, "This report only display top-level ops statistics"]
    lines += [rule, _line(columns, [column.title for column in columns]), rule]
    for row in _shown(rows, options):
        lines += _row_lines(row, columns)
    lines += [rule, f"Self CPU time total: {format_time(facts.self_cpu_us, options.time_unit)}"]
    if facts.has_device_time:
        total = format_time(facts.self_device_us, options.time_unit)
        lines.append(f"Self {device_title(facts)} time total: {total}")
    return "\n".join([*lines, *notes, ""])


def sort_rows(rows: Sequence[TableRow], sort_by: str | None) -> Sequence[TableRow]:
    """Rows by descending value of an attribute; rows of equal value keep their order."""
    if sort_by is None:
        return rows
    attribute = re.sub("cuda|xpu|privateuse1", "device", sort_by)  # as in torch's current attributes
    try:
        # A row without the value, such as the FLOPs of an op without a formula, comes last.
        return sorted(rows, key=lambda row: _sortable(getattr(row, attribute)), reverse=True)
    except (AttributeError, TypeError):
        raise UsageError(
            f"a table cannot be sorted by {sort_by!r}; use a numeric column such as 'self_cpu_time_total', "
            "'cpu_time_total', 'cpu_time' or 'count'"
        ) from None


def _sortable(value: Any) -> tuple[bool, Any]:
    return (value is not None, 0 if value is None else value)


def _shown(rows: Sequence[TableRow], options: TableOptions) -> list[TableRow]:
    if options.top_level_events_only:
        rows = [row for row in rows if row.cpu_parent is None]
    limit = options.row_limit
    return list(rows if limit is None or limit < 0 else rows[:limit])


def _line(columns: Sequence[Column], cells: Sequence[object]) -> str:
    return "".join(
        f"{cell!s:{column.align}{column.width}}{_GAP}" for column, cell in zip(columns, cells, strict=True)
    )


def _row_lines(row: TableRow, columns: Sequence[Column]) -> list[str]:
    lines = [_line(columns, [column.cell(row) for column in columns])]
    for place, column in enumerate(columns):
        for entry in column.below(row) if column.below else ():
            cells = [""] * len(columns)
            cells[place] = entry
            lines.append(_line(columns, cells))
    return lines
