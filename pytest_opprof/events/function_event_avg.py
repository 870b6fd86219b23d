"""Events of one key, summed up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from pytest_opprof.events.device import device_type
from pytest_opprof.events.function_event import FunctionEvent
from pytest_opprof.events.times import FormattedTimesMixin, microseconds

TOTAL = "Total"
_OF_THE_FIRST = (
    *("key", "name", "node_id", "is_async", "is_remote", "is_legacy", "is_user_annotation", "overload_name"),
    *("input_shapes", "stack", "scope", "device_type", "use_device"),
)


class _WithFirst:
    """Keeps the first event out of ``vars(row)``, which shows numbers and texts."""

    __slots__ = ("first",)


@dataclass(kw_only=True, eq=False, repr=False)
class FunctionEventAvg(_WithFirst, FormattedTimesMixin):
    """All events of one key, summed up, with the attributes of torch's ``FunctionEventAvg``.

    Attributes:
        key: The name, or ``name (background)`` for events of threads that neither step nor were started in a
            step, because how many of them fall into a window is chance. None until an event is added.
        name: The name without ``(background)``.
        count: Number of events.
        cpu_time_total: Sum of their CPU times, microseconds.
        self_cpu_time_total: `cpu_time_total` without the ops inside them.
        device_time_total: Time of the device work launched in them, microseconds; for device work, its own.
        self_device_time_total: `device_time_total` without what was launched by the ops inside them.
        cpu_memory_usage: Host memory allocated less freed, bytes.
        self_cpu_memory_usage: `cpu_memory_usage` without the ops inside them.
        device_memory_usage: Device memory allocated less freed, bytes.
        self_device_memory_usage: `device_memory_usage` without the ops inside them.
        flops: Their floating-point operations, including those of the ops inside them.
        counted_flops: The part of `flops` that is not also in another op's, so that rows add up.
        counters: Sums of their counters, including the ops inside them; empty if nothing was counted.
        is_background: They ran during steps, on threads that are not part of them.
        self_cpu_percent: Its share of self CPU time in the last table that showed it, as text; -1 before.
        total_cpu_percent: The same for `cpu_time_total`.
        total_device_percent: The same for `self_device_time_total`.
        first: The first event. The row has its shapes, stack, device and similar attributes.
    """

    # Any, not ``str | None``: it is None only until the first event is added, as in torch.
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
    device_type: Any = field(default_factory=lambda: device_type(0))
    use_device: str | None = None
    input_shapes: Any = None
    overload_name: str | None = None
    stack: list[str] | None = field(default_factory=list)
    self_cpu_percent: Any = -1
    total_cpu_percent: Any = -1
    total_device_percent: Any = -1
    first: FunctionEvent | None = field(default_factory=lambda: None)  # a default would hide the slot

    def __getstate__(self) -> tuple[dict[str, Any], dict[str, None]]:
        # Without the first event: it would bring along all events that it is nested with.
        return vars(self), {"first": None}

    @property
    def cpu_parent(self) -> FunctionEvent | None:
        """The event around the first event."""
        return None if self.first is None else self.first.cpu_parent

    @property
    def cpu_children(self) -> list[FunctionEvent]:
        """The events directly inside the first event."""
        return [] if self.first is None else self.first.cpu_children

    def add(self, other: FunctionEventAvg | FunctionEvent) -> Self:
        """Add an event or an average of the same key. The first one sets the key.

        Raises:
            AssertionError: The keys differ, or `other` is neither. Torch raises the same.
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
        """Add an event whose device times are known; computing them may visit all events inside it."""
        if self.key is None:
            for name in _OF_THE_FIRST:
                setattr(self, name, getattr(other, name))
            self.first = other.first if isinstance(other, FunctionEventAvg) else other
        if other.key != self.key:
            raise AssertionError(f"Expected keys to match, but got {other.key} vs {self.key}")
        # Added in torch's order: another order rounds differently.
        self.cpu_time_total += other.cpu_time_total
        self.self_cpu_time_total += other.self_cpu_time_total
        self.device_time_total += total_us
        self.self_device_time_total += self_us
        self._add_counts(other)
        return self

    def absorb(self, other: FunctionEventAvg) -> Self:
        """Add an average of any key, with times exact to the nanosecond."""
        for name in ("cpu_time_total", "self_cpu_time_total", "device_time_total", "self_device_time_total"):
            sum_ns: int = getattr(self, f"{name}_ns") + getattr(other, f"{name}_ns")
            setattr(self, name, microseconds(sum_ns))
        self._add_counts(other)
        return self

    def add_counters(self, counters: Mapping[str, int]) -> None:
        """Add the counters of an event of the same key."""
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
