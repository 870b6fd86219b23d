"""One execution of an op, a range or a call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pytest_opprof.events.device import DeviceType, device_type
from pytest_opprof.events.event_facts import EventFacts
from pytest_opprof.events.times import FormattedTimesMixin, Kernel, nanoseconds, renamed

if TYPE_CHECKING:
    from pytest_opprof.capture.cpp_stacks import CppFrame
    from pytest_opprof.kinds import EventKind

# Devices whose events have a time in torch.
_TIMED_DEVICES: Final = frozenset(
    {DeviceType.CUDA, DeviceType.PrivateUse1, DeviceType.MTIA, DeviceType.HPU, DeviceType.XPU}
)


class FunctionEvent(EventFacts, FormattedTimesMixin):
    """One event, with the attributes and constructor arguments of torch's ``FunctionEvent``.

    `EventFacts` lists the attributes, which may all be set. An event of a recording reads each from the
    columns on first access.
    """

    __slots__ = ()

    # Whether its device time is known without adding up the events inside it.
    has_sums: ClassVar[bool] = False

    def append_kernel(self, name: str, device: int, duration: float) -> None:
        """Add device work that it launched.

        Args:
            name: The kernel's name.
            device: The device's index.
            duration: Microseconds.

        Raises:
            AssertionError: This event is not a host event. Torch raises the same.
        """
        _expect_on_host(self, "device_type")
        self.kernels.append(Kernel(name, device, duration))

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """Add an event that ran directly inside it; call `set_cpu_parent` on that event too.

        Raises:
            AssertionError: One of them is not a host event. Torch raises the same.
        """
        _expect_on_host(self, "device_type")
        _expect_on_host(child, "child device_type")
        children = self.cpu_children
        children.append(child)
        self.cpu_children = children

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        """Set the event that it ran directly inside.

        Raises:
            AssertionError: One of them is not a host event. Torch raises the same.
        """
        _expect_on_host(self, "device_type")
        _expect_on_host(parent, "parent device_type")
        self.cpu_parent = parent

    @property
    def key(self) -> str:
        """The same as `name`."""
        name: str = self.name
        return name

    @property
    def start_ns(self) -> int:
        """When it began, nanoseconds since the window's start."""
        return nanoseconds(self.time_range.start)

    @property
    def end_ns(self) -> int:
        """When it ended, nanoseconds since the window's start."""
        return nanoseconds(self.time_range.end)

    @property
    def cpu_time_total(self) -> float:
        """Its duration, microseconds; 0 for a device event."""
        return self.time_range.elapsed_us() if self.device_type == DeviceType.CPU else 0

    @property
    def self_cpu_time_total(self) -> float:
        """`cpu_time_total` less that of the events inside it; 0 for an async or device event."""
        if self._stands_alone:
            return 0
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def device_time_total(self) -> float:
        """Time of the device work launched in it, microseconds; for device work, its own duration.

        Raises:
            AssertionError: It ran on a device whose events have no time. Torch raises the same.
        """
        if self.is_async or not self.use_device:
            return 0
        if self.device_type == DeviceType.CPU:
            return launched_times([self])[id(self)]
        if self.device_type not in _TIMED_DEVICES:
            raise AssertionError(
                "Expected device_type to be CUDA, PrivateUse1, MTIA, HPU or XPU, "
                f"but got {self.device_type!s}"
            )
        return self.time_range.elapsed_us()

    @property
    def self_device_time_total(self) -> float:
        """Time of the device work launched by it, not by an event inside it, microseconds."""
        if self.is_async or not self.use_device:
            return 0
        if self.device_type != DeviceType.CPU:
            return self.device_time_total
        return self.device_time_total - sum(child.device_time_total for child in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        """`cpu_memory_usage` less that of the events inside it."""
        if self._stands_alone:
            return 0
        used: int = self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)
        return used

    @property
    def self_device_memory_usage(self) -> int:
        """`device_memory_usage` less that of the events inside it."""
        if self._stands_alone:
            return 0
        used: int = self.device_memory_usage - sum(child.device_memory_usage for child in self.cpu_children)
        return used

    metadata_json = renamed("metadata_json", "_metadata_json")

    @property
    def counters(self) -> dict[str, int]:
        """Values of processor and kernel counters by name; empty if none were recorded."""
        return {}

    @property
    def cpp_frames(self) -> Sequence[CppFrame]:
        """The C++ functions it began in, innermost first; empty if not recorded."""
        return ()

    @property
    def cpp_stack(self) -> list[str]:
        """`cpp_frames` as text, ``file(offset): function``."""
        return [str(frame) for frame in self.cpp_frames]

    @property
    def kind(self) -> EventKind | None:
        """Its kind; None if it is not from a recording."""
        return None

    @property
    def step(self) -> int | None:
        """The number of the profiler step it belongs to; None for none."""
        return None

    @property
    def is_unfinished(self) -> bool:
        """Whether it was still open when the window closed."""
        return False

    @property
    def _stands_alone(self) -> bool:
        return bool(self.is_async) or self.device_type != DeviceType.CPU

    def __repr__(self) -> str:
        device = self.use_device
        return (
            f"<FunctionEvent id={self.id} name={self.name} overload_name={self.overload_name} "
            f"device_type={self.device_type!s} node_id={self.node_id} cpu_time={self.cpu_time_str} "
            f"start_us={self.time_range.start} end_us={self.time_range.end} "
            f"cpu_children={[child.id for child in self.cpu_children]} {device}_time={self.device_time_str} "
            f"name={self.name} thread={self.thread} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} {device}_memory_usage={self.device_memory_usage} "
            f"is_async={self.is_async} is_remote={self.is_remote} seq_nr={self.sequence_nr} "
            f"is_legacy={self.is_legacy}>"
        )


def _expect_on_host(event: object, what: str) -> None:
    if not isinstance(event, FunctionEvent):
        raise AssertionError(  # noqa: TRY004  # what torch raises
            f"Expected {what.removesuffix(' device_type')} to be a FunctionEvent"
        )
    if event.device_type != DeviceType.CPU:
        raise AssertionError(f"Expected {what} to be CPU")


def launched_times(events: Iterable[FunctionEvent]) -> dict[int, float]:
    """Device time of host events, microseconds by the ``id()`` of each event and of everything inside it.

    It is that of their kernels and, except in legacy events, of their children. Sums are added in torch's
    order, because another order rounds differently. Each event is summed once, without recursion, because
    events may be nested very deeply.
    """
    times: dict[int, float] = {}
    for root in events:
        work = [root]
        while work:
            event = work[-1]
            if id(event) not in times:
                stands_alone = event.has_sums or event.is_async or event.is_legacy or not event.use_device
                inside = [] if stands_alone else event.cpu_children
                waiting = [child for child in inside if id(child) not in times]
                if waiting:
                    work += waiting
                    continue
                if event.has_sums:
                    times[id(event)] = event.device_time_total
                elif event.is_async or not event.use_device:
                    times[id(event)] = 0
                else:
                    own = sum(kernel.duration for kernel in event.kernels)
                    times[id(event)] = own + sum(times[id(child)] for child in inside)
            work.pop()
    return times


def own_events(torchs: Iterable[Any]) -> list[FunctionEvent]:
    """Torch's events as ours, with those that they are nested with."""
    given = list(torchs)
    known: dict[int, Any] = {}
    waiting = list(given)
    while waiting:
        event = waiting.pop()
        if event is not None and id(event) not in known:
            known[id(event)] = event
            waiting += [event.cpu_parent, *event.cpu_children]
    made = {number: _own_event(event) for number, event in known.items()}
    for number, event in known.items():
        made[number].cpu_parent = made.get(id(event.cpu_parent))
        made[number].cpu_children = [made[id(child)] for child in event.cpu_children]
    return [made[id(event)] for event in given]


def _own_event(torchs: Any) -> FunctionEvent:
    times = torchs.time_range
    event = FunctionEvent(torchs.id, torchs.name, torchs.thread, times.start, times.end)
    for name in EventFacts.__slots__:
        if name not in _MADE and hasattr(torchs, name):  # older releases of torch lack some
            setattr(event, name, getattr(torchs, name))
    event.device_type = device_type(int(torchs.device_type))
    return event


_MADE: Final = frozenset({"time_range", "device_type", "cpu_parent", "cpu_children"})
