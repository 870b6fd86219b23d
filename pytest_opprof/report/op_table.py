"""The op table of one test: torch.profiler's columns, in its order, in its units, from a document."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from pytest_opprof.data_loss import losses_of_test
from pytest_opprof.errors import UsageError
from pytest_opprof.metrics import (
    COUNT,
    CPU_MEMORY,
    CPU_TIME_TOTAL,
    FLOPS,
    OP_METRICS,
    SELF_CPU_TIME_TOTAL,
    Metric,
)
from pytest_opprof.metrics.device import DEVICE_MEMORY, DEVICE_TIME_TOTAL, SELF_DEVICE_TIME_TOTAL
from pytest_opprof.report.device_text import device_text
from pytest_opprof.report.text import escaped
from pytest_opprof.results.run import OpRow, TestResult
from pytest_opprof.units import (
    Unit,
    format_flops,
    format_memory,
    format_quantity,
    format_time,
    format_time_share,
)
from pytest_opprof.wording import did_you_mean

# torch.profiler's widths.
_COLUMN_WIDTH = 12
_NAME_WIDTH = 55
_NAME_MARGIN = 4
_DOTS = 3
_GAP = "  "


@dataclass(frozen=True, slots=True, kw_only=True)
class _Whole:
    """Wholes of shares."""

    cpu_ns: int
    device_ns: int


@dataclass(frozen=True, slots=True)
class _Column:
    """A column: its title, its cells, and whether these rows have values for it."""

    title: str
    cell: Callable[[OpRow, _Whole], str]
    is_telling: Callable[[Iterable[OpRow]], bool] = lambda _: True


def _average_ns(row: OpRow, metric: str) -> float:
    return row.samples(metric).total / row.count.total if row.count.total else 0.0


def _total(metric: Metric) -> Callable[[OpRow, _Whole], str]:
    return lambda row, _: _value(row, metric)


def _average(metric: str) -> Callable[[OpRow, _Whole], str]:
    return lambda row, _: format_time(_average_ns(row, metric))


def _any_of(metric: str) -> Callable[[Iterable[OpRow]], bool]:
    return lambda rows: any(row.samples(metric).high or row.samples(metric).low for row in rows)


def _of_device(title: str, cell: Callable[[OpRow, _Whole], str]) -> _Column:
    return _Column(title, cell, _any_of("device_time_total"))


def _value(row: OpRow, metric: Metric) -> str:
    samples = row.samples(metric.name)
    match metric.unit:
        case Unit.COUNT:
            return str(samples.total)
        case Unit.BYTES:
            return format_memory(samples.total)
        case Unit.NS:
            return format_time(samples.total)
        case _:  # a share or a mean does not add up over steps
            return format_quantity(round(samples.mean), unit=metric.unit)


_TITLES = {"host_copies": "Host copies", "copied_bytes": "Copied"}  # if the label is too long for a column
_OF_TORCH = (
    COUNT,
    CPU_TIME_TOTAL,
    SELF_CPU_TIME_TOTAL,
    CPU_MEMORY,
    FLOPS,
    DEVICE_MEMORY,
    DEVICE_TIME_TOTAL,
    SELF_DEVICE_TIME_TOTAL,
)
_COLUMNS = (
    _Column("Name", lambda row, _: _name(row)),
    _Column(
        "Self CPU %", lambda row, whole: format_time_share(row.self_cpu_time_total_ns.total, whole.cpu_ns)
    ),
    _Column("Self CPU", _total(SELF_CPU_TIME_TOTAL)),
    _Column(
        "CPU total %",  # torch gives no share to events that overlap everything
        lambda row, whole: (
            "0" if row.is_async else format_time_share(row.cpu_time_total_ns.total, whole.cpu_ns)
        ),
    ),
    _Column("CPU total", _total(CPU_TIME_TOTAL)),
    _Column("CPU time avg", _average("cpu_time_total")),
    _of_device("Self CUDA", _total(SELF_DEVICE_TIME_TOTAL)),
    _of_device(
        "Self CUDA %",
        lambda row, whole: format_time_share(row.samples("self_device_time_total").total, whole.device_ns),
    ),
    _of_device("CUDA total", _total(DEVICE_TIME_TOTAL)),
    _of_device("CUDA time avg", _average("device_time_total")),
    _Column("CPU Mem", _total(CPU_MEMORY), _any_of("cpu_memory")),
    _Column("CUDA Mem", _total(DEVICE_MEMORY), _any_of("device_memory")),
    _Column("# of Calls", _total(COUNT)),
    _Column(
        "Total FLOPs",
        lambda row, _: format_flops(row.samples("flops").total) if "flops" in row.metrics else "--",
        _any_of("flops"),
    ),
    *(  # those that torch lacks, shown only on request
        _Column(_TITLES.get(name, f"{one.label[0].upper()}{one.label[1:]}"), _total(one), lambda _: False)
        for name, one in OP_METRICS.items()
        if one not in _OF_TORCH
    ),
)
COLUMNS = tuple(column.title for column in _COLUMNS)

_SORTS: dict[str, Callable[[OpRow], float]] = {
    "cpu_time": lambda row: _average_ns(row, "cpu_time_total"),
    "device_time": lambda row: _average_ns(row, "device_time_total"),
    "cpu_memory_usage": lambda row: row.samples("cpu_memory").total,
    "device_memory_usage": lambda row: row.samples("device_memory").total,
} | {name: (lambda row, name=name: row.samples(name).total) for name in OP_METRICS}
SORT_KEYS = (*_SORTS, "name")


def op_table(
    test: TestResult,
    *,
    sort_by: str = "self_cpu_time_total",
    rows: int = 10,
    columns: Collection[str] | None = None,
) -> list[str]:
    """The key averages over all active steps as torch.profiler prints them, line by line.

    All rows if negative. Columns are titles of `COLUMNS`, by default those that have values; the name is
    always there. UsageError if a title, or the key of `SORT_KEYS`, is unknown.
    """
    shown = _shown(columns, test.ops)
    ordered = sorted_ops(test.ops, sort_by)
    whole = _Whole(
        cpu_ns=sum(row.self_cpu_time_total_ns.total for row in test.ops),
        device_ns=sum(
            row.samples("self_device_time_total").total for row in test.ops if row.kind.is_on_device
        ),
    )
    longest = max((len(escaped(row.name)) for row in test.ops), default=0) + _NAME_MARGIN
    widths = [max(_COLUMN_WIDTH, len(column.title)) for column in shown]
    widths[0] = min(longest, _NAME_WIDTH)

    def line(values: Iterable[str]) -> str:
        return "".join(value.rjust(width) + _GAP for value, width in zip(values, widths, strict=True))

    rule = line("-" * width for width in widths)
    return [
        rule,
        line(column.title for column in shown),
        rule,
        *(
            line(column.cell(row, whole) for column in shown)
            for row in (ordered if rows < 0 else ordered[:rows])
        ),
        rule,
        f"Self CPU time total: {format_time(whole.cpu_ns)}",
        *_notes(test, whole),
    ]


def _notes(test: TestResult, whole: _Whole) -> Iterator[str]:
    if whole.device_ns:
        yield f"Self CUDA time total: {format_time(whole.device_ns)}"
    if told := device_text(test):
        yield f"CUDA, in each step: {told}"
    yield from losses_of_test(test)


def sorted_ops(ops: Sequence[OpRow], sort_by: str) -> list[OpRow]:
    """Rows in the order of a table: the largest first, names in alphabetical order."""
    if sort_by not in SORT_KEYS:
        raise UsageError(f"unknown sort key {sort_by!r} ({did_you_mean(sort_by, SORT_KEYS)})")
    by_name = sorted(ops, key=lambda row: row.key)
    return by_name if sort_by == "name" else sorted(by_name, key=_SORTS[sort_by], reverse=True)


def _shown(columns: Collection[str] | None, ops: Sequence[OpRow]) -> list[_Column]:
    if columns is None:
        return [column for column in _COLUMNS if column.is_telling(ops)]
    known = {title.lower(): at for at, title in enumerate(COLUMNS)}
    places = {0}
    for column in columns:
        if column.lower() not in known:
            raise UsageError(f"unknown column {column!r} ({did_you_mean(column, COLUMNS)})")
        places.add(known[column.lower()])
    return [_COLUMNS[at] for at in sorted(places)]


def _name(row: OpRow) -> str:
    name = escaped(row.name)
    if len(name) >= _NAME_WIDTH - _DOTS:
        return name[: _NAME_WIDTH - _DOTS] + "." * _DOTS
    return name
