"""Events of one key, summed up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from pytest_opprof.events.device import DeviceType
from pytest_opprof.events.function_event import FunctionEvent
from pytest_opprof.events.times import FormattedTimesMixin, microseconds

TOTAL = "Total"
_OF_THE_FIRST = (
    *("key", "name", "node_id", "is_async", "is_remote", "is_legacy", "is_user_annotation", "overload_name"),
    *("input_shapes", "stack", "scope", "device_type", "use_device"),
)


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class FunctionEventAvg(FormattedTimesMixin):
    """All events of one key, summed up, with the attributes of torch's ``FunctionEventAvg``.

    Attributes:
        key: What the events have in common; ``name (background)`` for those of threads that neither step nor
            were started in a step, since how many of them fall into a window is chance. None before the
            first event was added.
        name: The ops' name alone.
        count: Number of events.
        cpu_time_total: Sum of their times on the host, microseconds.
        self_cpu_time_total: The same less the ops inside each.
        device_time_total: Sum of the device work launched in them, microseconds; of device work its own time.
        self_device_time_total: The same without what was launched inside ops inside them.
        cpu_memory_usage: Sum of the bytes of the host's memory taken less those given back.
        self_cpu_memory_usage: The same without the ops inside.
        device_memory_usage: The same of a device's memory.
        self_device_memory_usage: The same without the ops inside.
        flops: Sum of their floating-point operations, with what ran inside them.
        counted_flops: What of these is not also in another op's: these add up to the whole.
        counters: Sums of what was counted in them, what ran inside them included; empty where nothing was.
        is_background: They ran during steps, on threads that are not part of them.
        self_cpu_percent: Its share in the last table that showed it, as text; -1 before.
        total_cpu_percent: The same of `cpu_time_total`.
        total_device_percent: The same of `self_device_time_total`.
        first: The first of them, whose shapes, stack, device and so on the other attributes repeat.
    """

    # A string, but as in torch None until the first event is added: not for each reader to allow for.
    key: Any = None
    name: Any = None
    count: int = 0
    cpu_time_total: float = 0
    self_cpu_time_total: float = 0
    device_time_total: float = 0
    self_device_time_total: float = 0
    cpu_memory_usage: int = 0
    self_cpu_memory_usage: int = 0
    device_memory_usage: int = 0
    self_device_memory_usage: int = 0
    flops: int | None = 0
    counted_flops: int = 0
    counters: dict[str, int] = field(default_factory=dict)
    node_id: int = 0
    scope: int | None = None
    is_async: bool = False
    is_background: bool = False
    is_legacy: bool = False
    is_remote: bool = False
    is_user_annotation: bool = False
    device_type: DeviceType = DeviceType.CPU
    use_device: str | None = None
    input_shapes: Any = None
    overload_name: str | None = None
    stack: list[str] | None = field(default_factory=list)
    self_cpu_percent: Any = -1
    total_cpu_percent: Any = -1
    total_device_percent: Any = -1
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
        """Add an event or an average of the same key; the first to be added says what the key is.

        Raises:
            AssertionError: The keys differ, or it is neither. Torch raises the same.
        """
        if not isinstance(other, FunctionEventAvg | FunctionEvent):
            raise AssertionError(  # noqa: TRY004  # what torch raises
                "Expected other to be a FunctionEvent or FunctionEventAvg"
            )
        return self.add_with_device_time(other, other.device_time_total, other.self_device_time_total)

    def __iadd__(self, other: FunctionEventAvg | FunctionEvent) -> Self:
        return self.add(other)

    def add_with_device_time(
        self, other: FunctionEventAvg | FunctionEvent, total_us: float, self_us: float
    ) -> Self:
        """Add an event whose device times are known: to add one up may take all events inside it."""
        if self.key is None:
            for name in _OF_THE_FIRST:
                setattr(self, name, getattr(other, name))
            self.first = other.first if isinstance(other, FunctionEventAvg) else other
        if other.key != self.key:
            raise AssertionError(f"Expected keys to match, but got {other.key} vs {self.key}")
        # Times are added as torch adds them: in floats another order is another sum.
        self.cpu_time_total += other.cpu_time_total
        self.self_cpu_time_total += other.self_cpu_time_total
        self.device_time_total += total_us
        self.self_device_time_total += self_us
        self._add_counts(other)
        return self

    def absorb(self, other: FunctionEventAvg) -> Self:
        """Add an average of any key, times to the nanosecond."""
        for name in ("cpu_time_total", "self_cpu_time_total", "device_time_total", "self_device_time_total"):
            sum_ns: int = getattr(self, f"{name}_ns") + getattr(other, f"{name}_ns")
            setattr(self, name, microseconds(sum_ns))
        self._add_counts(other)
        return self

    def add_counters(self, counters: Mapping[str, int]) -> None:
        """Add what was counted in an event of the same key."""
        for name, value in counters.items():
            self.counters[name] = self.counters.get(name, 0) + value

    def _add_counts(self, other: FunctionEventAvg | FunctionEvent) -> None:
        self.count += other.count
        self.add_counters(other.counters)
        self.cpu_memory_usage += other.cpu_memory_usage
        self.self_cpu_memory_usage += other.self_cpu_memory_usage
        self.device_memory_usage += other.device_memory_usage
        self.self_device_memory_usage += other.self_device_memory_usage
        if self.flops is None:
            self.flops = other.flops
        elif other.flops is not None:
            self.flops += other.flops
        if isinstance(other, FunctionEventAvg):
            self.counted_flops += other.counted_flops

    def __repr__(self) -> str:
        device = self.use_device or "cuda"
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str}  self_{device}_time={self.self_device_time_total_str} "
            f"{device}_time={self.device_time_str} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} {device}_memory_usage={self.device_memory_usage}>"
        )
