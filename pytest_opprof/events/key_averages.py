"""Events summed up by name: recordings by the native collector, lists of events one by one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pytest_opprof.capture.op_groups import OpGroup
from pytest_opprof.events.columns import Compat, TableOptions
from pytest_opprof.events.device import DeviceType, device_type
from pytest_opprof.events.forest import EventForest
from pytest_opprof.events.frames import rows_to_arrow, rows_to_pandas
from pytest_opprof.events.function_event import FunctionEvent, launched_times
from pytest_opprof.events.function_event_avg import TOTAL, FunctionEventAvg
from pytest_opprof.events.recorded_event import RecordedEvent
from pytest_opprof.events.table import Tabular, build_table
from pytest_opprof.events.times import microseconds
from pytest_opprof.kinds import FLAG_BACKGROUND

_DEEPEST: Final = 2**32 - 1  # entries; no stack is that deep


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """What splits events of one name into several rows."""

    shapes: bool = False
    stack_depth: int = 0  # how many innermost stack entries split them
    overloads: bool = False
    background: bool = True  # whether running on a thread that is not part of a step splits them


class KeyAverages(Tabular, list[FunctionEventAvg]):
    """Averages, and their table.

    Args:
        profile_memory: The table has memory columns.
        with_flops: The table has a FLOPs column.
        notes: Lines below the table's totals.
    """

    def __init__(
        self,
        rows: Iterable[FunctionEventAvg] = (),
        *,
        profile_memory: bool = False,
        with_flops: bool = False,
        notes: Sequence[str] = (),
    ) -> None:
        super().__init__(rows)
        self._profile_memory = profile_memory
        self._with_flops = with_flops
        self._notes = tuple(notes)

    def total_average(self) -> FunctionEventAvg:
        """All rows as one, ``Total``. Its total times count a nested op once per level; FLOPs do not."""
        total = FunctionEventAvg(key=TOTAL, name=TOTAL)
        for row in self:
            total.absorb(row)
        if total.counted_flops:
            total.flops = total.counted_flops
        return total

    @property
    def self_cpu_time_total(self) -> float:
        """Self CPU time of all rows, microseconds."""
        return sum(row.self_cpu_time_total for row in self)

    def to_arrow(self) -> Any:
        """The rows as a ``pyarrow.Table``. Needs ``pip install 'pytest-opprof[frames]'``.

        Raises:
            UsageError: The package pyarrow is not installed.
        """
        return rows_to_arrow(self)

    def to_pandas(self) -> Any:
        """The rows as a ``pandas.DataFrame``. Needs ``pip install 'pytest-opprof[frames]'``.

        Raises:
            UsageError: The package pandas is not installed.
        """
        return rows_to_pandas(self)

    def _table(self, options: TableOptions) -> str:
        return build_table(self, options, notes=self._notes)


class Averaged(ABC):
    """Something recorded that can be summed up."""

    __slots__ = ()

    def key_averages(
        self,
        group_by_input_shape: bool = False,  # noqa: FBT001, FBT002  # torch's signature
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,  # noqa: FBT001, FBT002  # torch's signature
        *,
        compat: Compat | None = None,
    ) -> KeyAverages:
        """The events summed up by name; see `EventList.key_averages`.

        Raises:
            UsageError: No recording has finished, or there is no such `compat`.
        """
        grouping = Grouping(
            shapes=group_by_input_shape, stack_depth=group_by_stack_n, overloads=group_by_overload_name
        )
        return self._averages(grouping, compat=compat)

    @abstractmethod
    def _averages(self, grouping: Grouping, *, compat: Compat | None) -> KeyAverages:
        """The events' averages."""


def average(forests: Sequence[EventForest], grouping: Grouping) -> list[FunctionEventAvg]:
    """Sum up the events of recordings, exact to the nanosecond; rows are in the order of first occurrence."""
    rows: dict[tuple[object, ...], FunctionEventAvg] = {}
    for forest in forests:
        for part in _parts(forest, grouping):
            row = rows.setdefault(_identity(part), part)
            if row is not part:
                row.absorb(part)
        if forest.recording.counted:
            _add_counters(rows, forest, grouping)
    return list(rows.values())


def _identity(row: FunctionEventAvg) -> tuple[object, ...]:
    return (
        row.key,
        row.is_user_annotation,
        row.device_type,
        str(row.input_shapes),
        row.overload_name,
        tuple(row.stack or ()),
    )


def _add_counters(
    rows: Mapping[tuple[object, ...], FunctionEventAvg], forest: EventForest, grouping: Grouping
) -> None:
    """Add the counters of the events to their rows, because the collector's sums lack them."""
    for event in forest.in_order():
        counters = event.counters
        if counters:
            rows[_identity(_row_of(event, grouping))].add_counters(counters)


def _parts(forest: EventForest, grouping: Grouping) -> Iterator[FunctionEventAvg]:
    """The rows to sum up: several may have the same identity."""
    if grouping.stack_depth <= 0 and not grouping.overloads:
        return _group_rows(forest, grouping, forest.recording.groups(by_inputs=grouping.shapes))
    groups = forest.recording.parted_groups(
        by_inputs=grouping.shapes,
        by_overload=grouping.overloads,
        stack_depth=min(max(grouping.stack_depth, 0), _DEEPEST),
    )
    if groups is None:
        return (_row_of(event, grouping) for event in forest.in_order())
    return _group_rows(forest, grouping, groups)


def _group_rows(
    forest: EventForest, grouping: Grouping, groups: Sequence[OpGroup]
) -> Iterator[FunctionEventAvg]:
    device = forest.recording.use_device
    for group in groups:
        first = forest.event(group.first_event)
        yield FunctionEventAvg(
            key=_key(group.name, apart=grouping.background and group.background),
            name=group.name,
            count=group.count,
            cpu_time_total=microseconds(group.total_ns),
            self_cpu_time_total=microseconds(group.self_ns),
            device_time_total=microseconds(group.device_total_ns if device else 0),
            self_device_time_total=microseconds(group.self_device_ns if device else 0),
            cpu_memory_usage=group.cpu_memory,
            self_cpu_memory_usage=group.self_cpu_memory,
            device_memory_usage=group.device_memory,
            self_device_memory_usage=group.self_device_memory,
            flops=group.flops,
            counted_flops=group.counted_flops,
            node_id=-1,
            scope=group.scope,
            is_async=group.is_async,
            is_background=group.background,
            is_user_annotation=group.is_user_annotation,
            device_type=device_type(group.device_type),
            use_device=device,
            input_shapes=first.input_shapes if grouping.shapes else "",
            overload_name=first.overload_name if grouping.overloads else "",
            stack=(first.stack or [])[: grouping.stack_depth] if grouping.stack_depth > 0 else [],
            first=first,
        )


def _row_of(event: RecordedEvent, grouping: Grouping) -> FunctionEventAvg:
    """A row of one event, without counters and without attributes that do not split rows."""
    background = bool(event.forest.recording.flags[event.index] & FLAG_BACKGROUND)
    row = FunctionEventAvg().add(event)
    row.counters = {}
    row.name = event.forest.recording.row_name(event.index)
    row.key = _key(row.name, apart=grouping.background and background)
    row.is_background = background
    _keep_only_what_parts(row, grouping)
    return row


def _key(name: str, *, apart: bool) -> str:
    return f"{name} (background)" if apart else name


def _keep_only_what_parts(row: FunctionEventAvg, grouping: Grouping) -> None:
    row.stack = (row.stack or [])[: grouping.stack_depth]
    if not grouping.shapes:
        row.input_shapes = ""
    if not grouping.overloads:
        row.overload_name = ""


def average_of_events(
    events: Sequence[FunctionEvent | FunctionEventAvg], grouping: Grouping
) -> list[FunctionEventAvg]:
    """Sum up events by torch's key and in its arithmetic; rows are in the order of first occurrence."""
    rows: defaultdict[tuple[object, ...], FunctionEventAvg] = defaultdict(FunctionEventAvg)
    for event, total_us, self_us in device_times(events):
        key: list[object] = [
            event.key,
            event.node_id,
            event.device_type,
            event.is_legacy,
            event.is_user_annotation,
        ]
        if grouping.overloads:
            key.append(event.overload_name)
        if grouping.shapes:
            key.append(str(event.input_shapes))
        key += (event.stack or ())[: grouping.stack_depth]
        rows[tuple(key)].add_with_device_time(event, total_us, self_us)
    for row in rows.values():
        _keep_only_what_parts(row, grouping)
    return list(rows.values())


def device_times(
    events: Sequence[FunctionEvent | FunctionEventAvg],
) -> Iterator[tuple[FunctionEvent | FunctionEventAvg, float, float]]:
    """Each event with its device time and self device time, microseconds, summing each event once."""
    on_host = [
        event for event in events if isinstance(event, FunctionEvent) and event.device_type == DeviceType.CPU
    ]
    known = launched_times(on_host)
    for event in events:
        total = known.get(id(event))
        if total is None or not isinstance(event, FunctionEvent) or event.has_sums:
            yield event, event.device_time_total, event.self_device_time_total
        elif event.is_async or not event.use_device:
            yield event, 0, 0
        else:
            yield event, total, total - sum(known[id(child)] for child in event.cpu_children)
