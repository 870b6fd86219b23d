"""Events summed up by name. The sums are the native collector's: no event becomes a Python object here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

from pytest_opprof.events.columns import Compat, TableOptions
from pytest_opprof.events.device import DeviceType
from pytest_opprof.events.forest import EventForest, losses
from pytest_opprof.events.function_event import FunctionEvent
from pytest_opprof.events.table import Tabular, build_table
from pytest_opprof.events.times import TorchTimes, microseconds
from pytest_opprof.events.torch_rules import torch_sums

_TOTAL: Final = "Total"


@dataclass(slots=True, kw_only=True, eq=False)
class FunctionEventAvg(TorchTimes):
    """All events of one key, summed up, with the attributes of torch's ``FunctionEventAvg``.

    Attributes:
        key: What the events have in common; ``name (background)`` for those of threads that neither step nor
            were started in a step, since how many of them fall into a window is chance.
        name: The ops' name alone.
        count: Number of events.
        cpu_time_total_ns: Sum of their times on the host, nanoseconds.
        self_cpu_time_total_ns: The same less the ops inside each.
        cpu_memory_usage: Sum of the bytes they took of the host, less what they gave back.
        self_cpu_memory_usage: The same less the ops inside each.
        device_memory_usage: The same as `cpu_memory_usage` of all devices.
        self_device_memory_usage: The same as `self_cpu_memory_usage` of all devices.
        first: The first of them.
    """

    key: str
    name: str
    count: int = 0
    cpu_time_total_ns: int = 0
    self_cpu_time_total_ns: int = 0
    device_time_total_ns: int = 0
    self_device_time_total_ns: int = 0
    cpu_memory_usage: int = 0
    self_cpu_memory_usage: int = 0
    device_memory_usage: int = 0
    self_device_memory_usage: int = 0
    flops: int = 0
    node_id: int = -1
    scope: int = 0
    is_async: bool = False
    is_background: bool = False
    is_legacy: bool = False
    is_remote: bool = False
    is_user_annotation: bool = False
    device_type: DeviceType = DeviceType.CPU
    use_device: str | None = None
    input_shapes: Any = ""
    overload_name: str = ""
    stack: list[str] = field(default_factory=list)
    first: FunctionEvent | None = None

    @property
    def cpu_parent(self) -> FunctionEvent | None:
        """What the first of the events ran in."""
        return None if self.first is None else self.first.cpu_parent

    @property
    def cpu_children(self) -> list[FunctionEvent]:
        """What ran directly in the first of the events."""
        return [] if self.first is None else self.first.cpu_children

    def add(self, other: FunctionEventAvg | FunctionEvent) -> Self:
        """Add an event or an average of the same key.

        Raises:
            AssertionError: The keys differ. Torch raises the same.
        """
        if other.key != self.key:
            raise AssertionError(f"Expected keys to match, but got {other.key} vs {self.key}")
        return self.absorb(other)

    def __iadd__(self, other: FunctionEventAvg | FunctionEvent) -> Self:
        return self.add(other)

    def absorb(self, other: FunctionEventAvg | FunctionEvent) -> Self:
        """Add an event or an average of any key."""
        self.count += other.count
        self.cpu_time_total_ns += other.cpu_time_total_ns
        self.self_cpu_time_total_ns += other.self_cpu_time_total_ns
        self.device_time_total_ns += other.device_time_total_ns
        self.self_device_time_total_ns += other.self_device_time_total_ns
        self.cpu_memory_usage += other.cpu_memory_usage
        self.self_cpu_memory_usage += other.self_cpu_memory_usage
        self.device_memory_usage += other.device_memory_usage
        self.self_device_memory_usage += other.self_device_memory_usage
        self.flops += other.flops
        return self

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} count={self.count} cpu_time={self.cpu_time_str} "
            f"self_cpu_time={self.self_cpu_time_total_str} input_shapes={self.input_shapes}>"
        )


class KeyAverages(Tabular, list[FunctionEventAvg]):
    """Rows of averages, and the table of them.

    Args:
        rows: The averages.
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
        """All rows as one, ``Total``. Its total times count nested ops once for each level."""
        total = FunctionEventAvg(key=_TOTAL, name=_TOTAL)
        for row in self:
            total.absorb(row)
        return total

    @property
    def self_cpu_time_total(self) -> float:
        """Self CPU time of all rows, microseconds."""
        return microseconds(sum(row.self_cpu_time_total_ns for row in self))

    def _table(self, options: TableOptions) -> str:
        columns = replace(options, profile_memory=self._profile_memory, with_flops=self._with_flops)
        return build_table(self, columns, notes=self._notes)


def average(
    forests: Sequence[EventForest],
    *,
    by_shapes: bool = False,
    apart: bool = True,
    compat: Compat | None = None,
    profile_memory: bool = False,
) -> KeyAverages:
    """Sum up the events of some recordings.

    Args:
        forests: The recordings.
        by_shapes: One row for each name and shapes.
        apart: Background threads have rows of their own.
        compat: ``"torch"`` sums up by torch's rules.
        profile_memory: The table has memory columns.

    Returns:
        The rows, in the order in which each first occurred.
    """
    rows: dict[tuple[str, bool, str], FunctionEventAvg] = {}
    for forest in forests:
        parts = (
            _group_rows(forest, by_shapes=by_shapes, apart=apart) if compat is None else _torch_rows(forest)
        )
        for part in parts:
            if by_shapes and part.first is not None:
                part.input_shapes = part.first.input_shapes
            row = rows.setdefault((part.key, part.is_user_annotation, str(part.input_shapes)), part)
            if row is not part:
                row.absorb(part)
    return KeyAverages(
        rows.values(), profile_memory=profile_memory, notes=losses(forests) if compat is None else ()
    )


def _group_rows(forest: EventForest, *, by_shapes: bool, apart: bool) -> Iterator[FunctionEventAvg]:
    for group in forest.recording.groups(by_inputs=by_shapes):
        yield FunctionEventAvg(
            key=f"{group.name} (background)" if apart and group.background else group.name,
            name=group.name,
            count=group.count,
            cpu_time_total_ns=group.total_ns,
            self_cpu_time_total_ns=group.self_ns,
            cpu_memory_usage=group.cpu_memory,
            self_cpu_memory_usage=group.self_cpu_memory,
            device_memory_usage=group.device_memory,
            self_device_memory_usage=group.self_device_memory,
            scope=group.scope,
            is_async=group.is_async,
            is_background=group.background,
            is_user_annotation=group.is_user_annotation,
            first=forest.event(group.first_event),
        )


def _torch_rows(forest: EventForest) -> Iterator[FunctionEventAvg]:
    for index, self_ns in torch_sums(forest):
        event = forest.event(index)
        yield FunctionEventAvg(
            key=event.key,
            name=event.name,
            count=1,
            cpu_time_total_ns=event.end_ns - event.start_ns,
            self_cpu_time_total_ns=self_ns,
            scope=event.scope,
            # Torch takes a range that never ended for one that ended on another thread.
            is_async=event.is_async or event.is_unfinished,
            is_user_annotation=event.is_user_annotation,
            first=event,
        )
