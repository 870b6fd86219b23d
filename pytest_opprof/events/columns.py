"""The columns of the op table, in torch.profiler's order."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Final, Literal, TypeAlias

from pytest_opprof.errors import UsageError
from pytest_opprof.events.device import DeviceType
from pytest_opprof.events.function_event import FunctionEvent
from pytest_opprof.events.function_event_avg import FunctionEventAvg
from pytest_opprof.units import format_memory, format_time_share, format_time_us

# An event on one of these is a kernel, a copy or an annotation; a legacy CPU event carries its kernel's time.
_KERNEL_DEVICES: Final = frozenset({DeviceType.CUDA, DeviceType.PrivateUse1, DeviceType.MTIA, DeviceType.XPU})

TableRow: TypeAlias = FunctionEvent | FunctionEventAvg  # or torch's own, which have these attributes too


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What the layout of the table depends on."""

    device: str | None  # the device profiled, in lower case; None for none
    self_cpu_us: float  # sum of the rows' self CPU times, microseconds
    self_device_us: float  # sum of the self device times of kernels and copies, microseconds
    has_device_time: bool
    has_device_memory: bool
    has_overloads: bool
    has_node_ids: bool
    name_length: int  # length of the longest key
    shapes_length: int  # length of the longest shapes as text; 0 if no row has any
    source_length: int  # length of the longest source location; 0 if no row has a stack
    smallest_flops: int | None  # the smallest positive number of FLOPs; None if there is none


def survey(rows: Sequence[TableRow]) -> Survey:
    """Find what the layout of a table of these rows depends on."""
    shaped = any(row.input_shapes is not None and len(row.input_shapes) > 0 for row in rows)
    return Survey(
        device=next((row.use_device for row in rows if row.use_device), None),
        # Rounded at each addition, as in torch: since Python 3.12, sum() rounds only once.
        self_cpu_us=reduce(add, (row.self_cpu_time_total for row in rows), 0),
        self_device_us=reduce(add, (row.self_device_time_total for row in rows if _counts_on_device(row)), 0),
        has_device_time=any(row.self_device_time_total > 0 for row in rows),
        has_device_memory=any(row.self_device_memory_usage > 0 for row in rows),
        has_overloads=any(row.overload_name for row in rows),
        has_node_ids=any(row.node_id != -1 for row in rows),
        name_length=max(len(row.key) for row in rows),
        shapes_length=max(len(str(row.input_shapes)) for row in rows) if shaped else 0,
        source_length=max((len(entry) for row in rows for entry in row.stack or ()), default=0),
        smallest_flops=min((row.flops for row in rows if row.flops and row.flops > 0), default=None),
    )


def _counts_on_device(row: TableRow) -> bool:
    device = int(row.device_type)
    if device == DeviceType.CPU:
        return row.is_legacy
    return device in _KERNEL_DEVICES and not row.is_user_annotation


Compat = Literal["torch"]


def check_compat(compat: Compat | None) -> None:
    """Raise a `UsageError` for a `compat` that does not exist."""
    if compat not in {None, "torch"}:
        raise UsageError(f'compat is {compat!r}; use "torch", or leave it out')


TimeUnit = Literal["s", "ms", "us"]

_WIDTH: Final = 12
_ELLIPSIS: Final = "..."
_US_IN: Final[dict[TimeUnit, float]] = {"s": 1_000_000.0, "ms": 1_000.0, "us": 1.0}
_FLOPS_UNITS: Final = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """How a table is laid out; see `Tabular.table`."""

    sort_by: str | None = None
    row_limit: int | None = 100
    max_src_column_width: int | None = 75
    max_name_column_width: int | None = 55
    max_shapes_column_width: int | None = 80
    header: str | None = None
    top_level_events_only: bool = False
    time_unit: TimeUnit | None = None
    profile_memory: bool = False
    with_flops: bool = False  # show a FLOPs column if any row has FLOPs
    compat: Compat | None = None

    def __post_init__(self) -> None:
        check_compat(self.compat)


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the table."""

    title: str
    cell: Callable[[TableRow], object]  # gives the text on a row's first line
    width: int = _WIDTH  # characters; a longer cell shifts the rest of its line
    align: Literal["<", ">"] = ">"
    below: Callable[[TableRow], Sequence[str]] | None = None  # gives the texts on the lines below, one each


def format_time(time_us: float, unit: TimeUnit | None) -> str:
    """Microseconds as text, in the given unit; without one, or with another, in the unit that suits them."""
    scale = _US_IN.get(unit) if unit is not None else None
    return format_time_us(time_us) if scale is None else f"{time_us / scale:.3f}{unit}"


def device_title(facts: Survey) -> str:
    """The profiled device as column titles show it."""
    return "None" if facts.device is None else facts.device.upper()


def table_columns(facts: Survey, options: TableOptions) -> list[Column]:
    """The columns for these rows and options."""
    name_width = _limited(facts.name_length + 4, options.max_name_column_width)
    columns = [Column("Name", lambda row: _cut_end(row.key, options.max_name_column_width), name_width)]
    if facts.has_overloads:
        columns.append(
            Column(
                "Overload Name",
                lambda row: _cut_end(row.overload_name or "", options.max_name_column_width),
                name_width,
            )
        )
    columns += _cpu_columns(facts, options)
    if facts.has_device_time:
        columns += _device_columns(facts, options)
    if options.profile_memory:
        columns += _memory_columns(facts)
    columns.append(Column("# of Calls", lambda row: row.count))
    if facts.has_node_ids:
        columns.append(Column("Node ID", lambda row: row.node_id))
    if facts.shapes_length:
        width = _limited(facts.shapes_length + 4, options.max_shapes_column_width)
        columns.append(Column("Input Shapes", lambda row: str(row.input_shapes)[:width], width))
    return columns + _source_and_flops(facts, options)


def _cpu_columns(facts: Survey, options: TableOptions) -> list[Column]:
    unit = options.time_unit

    def self_share(row: TableRow) -> object:
        row.self_cpu_percent = format_time_share(row.self_cpu_time_total, facts.self_cpu_us)
        return row.self_cpu_percent

    def total_share(row: TableRow) -> object:
        # Async time runs beside the rest, so it has no share.
        row.total_cpu_percent = (
            0 if row.is_async else format_time_share(row.cpu_time_total, facts.self_cpu_us)
        )
        return row.total_cpu_percent

    return [
        Column("Self CPU %", self_share),
        Column("Self CPU", lambda row: format_time(row.self_cpu_time_total, unit)),
        Column("CPU total %", total_share),
        Column("CPU total", lambda row: format_time(row.cpu_time_total, unit)),
        Column("CPU time avg", lambda row: format_time(row.cpu_time, unit)),
    ]


def _device_columns(facts: Survey, options: TableOptions) -> list[Column]:
    unit, device = options.time_unit, device_title(facts)

    def share(row: TableRow) -> object:
        annotation = row.is_user_annotation and int(row.device_type) != DeviceType.CPU
        row.total_device_percent = (
            "--"
            if annotation and options.compat is None
            else format_time_share(row.self_device_time_total, facts.self_device_us)
        )
        return row.total_device_percent

    return [
        Column(f"Self {device}", lambda row: format_time(row.self_device_time_total, unit)),
        Column(f"Self {device} %", share),
        Column(f"{device} total", lambda row: format_time(row.device_time_total, unit)),
        Column(f"{device} time avg", lambda row: format_time(row.device_time, unit)),
    ]


def _memory_columns(facts: Survey) -> list[Column]:
    columns = [
        Column("CPU Mem", lambda row: format_memory(row.cpu_memory_usage)),
        Column("Self CPU Mem", lambda row: format_memory(row.self_cpu_memory_usage)),
    ]
    if facts.device and facts.has_device_memory:
        device = device_title(facts)
        columns += [
            Column(f"{device} Mem", lambda row: format_memory(row.device_memory_usage)),
            Column(f"Self {device} Mem", lambda row: format_memory(row.self_device_memory_usage)),
        ]
    return columns


def _source_and_flops(facts: Survey, options: TableOptions) -> list[Column]:
    source = _source_column(facts.source_length, options) if facts.source_length else None
    flops = _flops_column(facts.smallest_flops) if options.with_flops and facts.smallest_flops else None
    if source and flops and options.compat == "torch":
        source, flops = (
            replace(source, cell=flops.cell, below=None),
            replace(flops, cell=source.cell, below=source.below),
        )
    return [column for column in (source, flops) if column is not None]


def _source_column(longest: int, options: TableOptions) -> Column:
    width = _limited(longest + 4, options.max_src_column_width)

    def first(row: TableRow) -> str:
        return _cut_start(row.stack[0], width) if row.stack else ""

    def rest(row: TableRow) -> list[str]:
        # The rest of the stack goes below its first entry and ends with an empty line.
        return [*(_cut_start(entry, width) for entry in (row.stack or ())[1:]), ""]

    return Column("Source Location", first, width, "<", rest)


def _flops_column(smallest: int) -> Column:
    """A column in the largest unit in which the smallest positive FLOPs value is at least 1."""
    thousands = int(max(0.0, min(math.log10(smallest) / 3, float(len(_FLOPS_UNITS) - 1))))
    title, scale = f"Total {_FLOPS_UNITS[thousands]}", 10 ** (thousands * -3.0)
    return Column(title, lambda row: f"{row.flops * scale:8.3f}" if row.flops else "--")


def _limited(width: int, limit: int | None) -> int:
    return width if limit is None else min(width, limit)


def _cut_end(text: str, limit: int | None) -> str:
    if limit is None or len(text) < limit - len(_ELLIPSIS):
        return text
    return text[: limit - len(_ELLIPSIS)] + _ELLIPSIS


def _cut_start(text: str, width: int) -> str:
    if len(text) <= width:
        return text
    text = text[len(text) - width :]
    return _ELLIPSIS + text[len(_ELLIPSIS) :] if len(text) > len(_ELLIPSIS) else text
