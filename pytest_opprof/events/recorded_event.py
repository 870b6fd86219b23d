"""An event of a recording. Each attribute is read from the columns on first access."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pytest_opprof.events.device import device_type
from pytest_opprof.events.event_facts import EventFacts, event_metadata
from pytest_opprof.events.function_event import FunctionEvent
from pytest_opprof.events.kineto_event import activity_of, told
from pytest_opprof.events.names import filter_stack_entry, summed_name
from pytest_opprof.events.times import Interval, Kernel, microseconds
from pytest_opprof.kinds import FLAG_ASYNC, FLAG_UNFINISHED, PYTHON_CALLS, USER_SCOPE, EventKind
from pytest_opprof.units import NS_IN_US

if TYPE_CHECKING:
    from pytest_opprof.capture.cpp_stacks import CppFrame
    from pytest_opprof.capture.inputs import Inputs
    from pytest_opprof.capture.window import MemoryChange
    from pytest_opprof.events.forest import EventForest

_ON_DEVICE: Final = int(EventKind.KERNEL)  # and all kinds above; enum members compare slowly
# Links to other events are not kept: cycles of references would live until a garbage collection.
_NOT_KEPT: Final = frozenset({"cpu_parent", "cpu_children"})
# What a copy has besides the attributes that may be set.
_COPIED: Final = (
    *("start_ns", "end_ns", "is_unfinished", "kind", "step", "counters", "cpp_frames", "cpu_time_total"),
    *("self_cpu_time_total", "device_time_total", "self_device_time_total", "self_cpu_memory_usage"),
    "self_device_memory_usage",
)


class CopiedEvent(FunctionEvent):
    """A recorded event without its recording, which pickle and `copy` make of it."""

    __slots__ = _COPIED

    has_sums = True


class RecordedEvent(FunctionEvent):
    """One event of a recording. An `EventList` gives the same object as long as it is referenced."""

    __slots__ = ("__weakref__", "forest", "index")

    has_sums = True

    def __init__(self, forest: EventForest, index: int) -> None:
        self.forest: EventForest = forest
        self.index = index

    def __getattr__(self, name: str) -> Any:
        # Python calls this only for an attribute that is not set yet.
        read = _READERS.get(name)
        if read is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        value = read(self)
        if name not in _NOT_KEPT:
            setattr(self, name, value)
        return value

    def __reduce_ex__(self, _protocol: object, /) -> tuple[object, ...]:
        slots = {name: getattr(self, name) for name in (*EventFacts.__slots__, *_COPIED)}
        return object.__new__, (CopiedEvent,), (None, slots)

    @property
    def recorded_name(self) -> str:
        """The name as recorded."""
        return self.forest.recording.name(self.index)

    @property
    def start_ns(self) -> int:
        """When it began, nanoseconds since the window's start."""
        return self.forest.recording.start_ns[self.index]

    @property
    def end_ns(self) -> int:
        """When it ended, nanoseconds since the window's start; the window's end if it was still open."""
        duration_ns = self.forest.recording.duration_ns[self.index]
        return self.forest.recording.trace_end_ns if duration_ns < 0 else self.start_ns + duration_ns

    @property
    def duration_ns(self) -> int:
        """Its duration on the host or on a device, nanoseconds; 0 if it was still open."""
        return max(self.forest.recording.duration_ns[self.index], 0)

    @property
    def is_unfinished(self) -> bool:
        """Whether it was still open when the window closed."""
        return bool(self.forest.recording.flags[self.index] & FLAG_UNFINISHED)

    @property
    def kind(self) -> EventKind:
        """Its kind."""
        return EventKind(self.forest.recording.kind[self.index])

    @property
    def step(self) -> int | None:
        """The number of the profiler step it belongs to; None for none."""
        step = self.forest.recording.step[self.index]
        return None if step < 0 else self.forest.recording.steps[step].number

    @property
    def has_recorded_stack(self) -> bool:
        """Whether its stack is still in the recording: not from Kineto, and not yet read or set."""
        try:
            object.__getattribute__(self, "stack")
        except AttributeError:
            return not self.told("stack")
        return False

    @property
    def torch_stack(self) -> list[str]:
        """Its stack as torch records it: functions' first lines, and a backward op's own calls."""
        told_stack: list[str] = self.told("stack")
        return told_stack or self.forest.stacks.torch_stack(self.index)

    @property
    def inputs(self) -> Inputs | None:
        """The inputs of an op; None if not recorded."""
        return self.forest.recording.inputs(self.index)

    @property
    def memory(self) -> MemoryChange | None:
        """The allocation or free of a memory record; None for other events."""
        return self.forest.recording.memory(self.index) if self.kind is EventKind.MEMORY else None

    @property
    def counters(self) -> dict[str, int]:
        """Its counters, including the events inside it. Needs ``performance_events``."""
        return self.forest.recording.counters(self.index)

    @property
    def cpp_frames(self) -> Sequence[CppFrame]:
        """The C++ functions it began in, innermost first. Needs ``with_stack="cpp"`` or ``"all"``."""
        return self.forest.recording.cpp_stack(self.index)

    @property
    def cpu_time_total(self) -> float:
        """Its duration, microseconds; 0 for a device event and for one that never ended."""
        recording = self.forest.recording
        if recording.kind[self.index] >= _ON_DEVICE:
            return 0.0
        duration_ns = recording.duration_ns[self.index]
        return duration_ns / NS_IN_US if duration_ns > 0 else 0.0

    @property
    def self_cpu_time_total(self) -> float:
        """`cpu_time_total` less that of the events inside it; 0 for an async event."""
        recording = self.forest.recording
        on_device = recording.kind[self.index] >= _ON_DEVICE
        return 0.0 if on_device else recording.self_ns[self.index] / NS_IN_US

    @property
    def device_time_total(self) -> float:
        """Time of the device work launched in it, microseconds; for device work, its own duration."""
        work = self.forest.device_work
        if work is None:
            return 0.0
        on_device = self.forest.recording.kind[self.index] >= _ON_DEVICE
        return microseconds(self.duration_ns if on_device else work.total_ns[self.index])

    @property
    def self_device_time_total(self) -> float:
        """Time of the device work launched by it, not by an event inside it, microseconds."""
        work = self.forest.device_work
        if work is None or self.forest.recording.kind[self.index] >= _ON_DEVICE:
            return self.device_time_total
        return microseconds(work.self_ns[self.index])

    @property
    def self_cpu_memory_usage(self) -> int:
        """Host memory that it allocated less freed itself, bytes."""
        return self.forest.recording.self_cpu_memory[self.index]

    @property
    def self_device_memory_usage(self) -> int:
        """Device memory that it allocated less freed itself, bytes."""
        return self.forest.recording.self_device_memory[self.index]

    def told(self, what: str) -> Any:
        """What Kineto's method of this name returned for it; a neutral value if there is none."""
        return told(self.forest.recording.kineto_event(self.index), what)


def _parent(event: RecordedEvent) -> FunctionEvent | None:
    parent = event.forest.parent(event.index)
    return None if parent < 0 else event.forest.event(parent)


def _device_type(event: RecordedEvent) -> Any:
    recording = event.forest.recording
    if recording.kind[event.index] < _ON_DEVICE:
        return device_type(0)
    return device_type(recording.threads[recording.thread[event.index]].device_type)


def _resource(event: RecordedEvent) -> int:
    lane = event.forest.recording.threads[event.thread]
    thread: int = event.thread
    return lane.resource if lane.device_type else thread


def _kernels(event: RecordedEvent) -> list[Kernel]:
    work = event.forest.device_work
    rows = [] if work is None else work.launched.get(event.index, [])
    effects = [event.forest.event(row) for row in rows]
    return [Kernel(effect.name, effect.device_index, microseconds(effect.duration_ns)) for effect in effects]


def _shapes(event: RecordedEvent) -> list[Any]:
    inputs = event.inputs
    shapes = [] if inputs is None else inputs.shapes
    return [[] if shape and isinstance(shape[0], list) else shape for shape in shapes]


def _activity(event: RecordedEvent) -> str:
    return event.told("activity_type") or activity_of(event.kind, user_scope=event.scope == USER_SCOPE)


def _stack(event: RecordedEvent) -> list[str]:
    told_stack: Sequence[str] = event.told("stack")
    return [
        entry for entry in told_stack or event.forest.stacks.stack(event.index) if filter_stack_entry(entry)
    ]


def _column(name: str) -> Callable[[RecordedEvent], Any]:
    return lambda event: getattr(event.forest.recording, name)[event.index]


def _given(what: str) -> Callable[[RecordedEvent], list[Any]]:
    """One of the lists of `Inputs`."""
    return lambda event: getattr(event.inputs, what, [])  # inputs may be None


def _as_told(what: str) -> Callable[[RecordedEvent], Any]:
    return lambda event: event.told(what)


def _always(value: Any) -> Callable[[RecordedEvent], Any]:
    return lambda _: value


_READERS: Final[Mapping[str, Callable[[RecordedEvent], Any]]] = {
    **{name: _as_told(name) for name in ("external_id", "linked_correlation_id")},
    **{name: _as_told(name) for name in ("flow_id", "flow_start", "flow_type")},
    **{name: _as_told(name) for name in ("python_id", "python_module_id", "python_parent_id")},
    **dict.fromkeys(("self_cpu_percent", "total_cpu_percent", "total_device_percent"), _always(-1)),
    "_metadata_json": _as_told("metadata_json"),
    "activity_type": _activity,
    "concrete_inputs": _given("concrete"),
    "count": _always(1),
    "cpu_children": lambda event: event.forest.children(event.index),
    "cpu_memory_usage": _column("cpu_memory"),
    "cpu_parent": _parent,
    "device_index": lambda event: max(event.forest.recording.threads[event.thread].device_index, 0),
    "device_memory_usage": _column("device_memory"),
    "device_resource_id": _resource,
    "device_type": _device_type,
    "event_metadata": lambda event: event_metadata(event.told("extra_meta") or {}),
    "flops": lambda event: event.told("flops") or event.forest.recording.flops[event.index],
    "fwd_thread": _column("forward_thread"),
    "id": lambda event: event.told("correlation_id") or event.forest.recording.first_id + event.index + 1,
    "input_dtypes": _given("dtypes"),
    "input_shapes": _shapes,
    "is_async": lambda event: bool(_column("flags")(event) & FLAG_ASYNC),
    "is_legacy": _always(value=False),
    "is_python_function": lambda event: event.kind in PYTHON_CALLS,
    "is_remote": _always(value=False),
    "is_user_annotation": lambda event: event.scope == USER_SCOPE or event.kind is EventKind.DEVICE_RANGE,
    "kernels": _kernels,
    "kwinputs": lambda event: event.forest.recording.keywords(event.index),
    "name": lambda event: summed_name(event.recorded_name),
    "node_id": _always(-1),
    "overload_name": lambda event: event.forest.recording.overload_name(event.index),
    "scope": _column("scope"),
    "sequence_nr": _column("sequence_nr"),
    "stack": _stack,
    "structured_input_shapes": _given("shapes"),
    "structured_input_strides": _given("strides"),
    "thread": _column("thread"),
    "time_range": lambda event: Interval(microseconds(event.start_ns), microseconds(event.end_ns)),
    "trace_name": lambda event: None if event.kind is EventKind.MEMORY else event.recorded_name,
    "use_device": lambda event: event.forest.recording.use_device,
}
