"""Our recordings in the form of torch's ``profile.kineto_results``, for code that reads it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

from pytest_opprof.capture.inputs import Inputs
from pytest_opprof.capture.recording import Recording
from pytest_opprof.events.device import DeviceType, device_type
from pytest_opprof.events.forest import CALLS, Children, EventForest, launching_op
from pytest_opprof.events.kineto_event import UNTOLD, KinetoEvent
from pytest_opprof.events.kineto_recording import RecordingView
from pytest_opprof.events.recorded_event import RecordedEvent
from pytest_opprof.kinds import EventKind


def kineto_events(forest: EventForest) -> tuple[Sequence[KinetoEvent], int]:
    """A recording's events of Kineto's, or its own in that form, and their window's start in nanoseconds."""
    given = forest.recording.kineto_result
    if given is not None:
        return list(given.events()), given.trace_start_ns()
    return recorded_events(forest), 0


def recorded_events(forest: EventForest, *, begin_ns: int = 0) -> list[RecordedKinetoEvent]:
    """The events of a recording in Kineto's form and in start order, with `begin_ns` added to each time."""
    rows = sorted(range(len(forest.recording)), key=forest.recording.start_ns.__getitem__)
    return [RecordedKinetoEvent(forest.event(row), begin_ns=begin_ns) for row in rows]


def torch_thread(recording: RecordingView, row: int) -> int:
    """Torch's number of a row's thread; a negative number of its own if the thread ran no op."""
    thread = recording.threads[recording.thread[row]]
    return thread.torch_thread or -1 - thread.index


class RecordedKinetoEvent:
    """One of our events with the methods of Kineto's, and `begin_ns` added to each time."""

    __slots__ = ("_begin_ns", "_event")

    def __init__(self, event: RecordedEvent, *, begin_ns: int) -> None:
        self._event = event
        self._begin_ns = begin_ns

    def __getattr__(self, what: str) -> Callable[[], Any]:
        if what in _SAME_NAMES:
            return lambda: getattr(self._event, _SAME_NAMES[what])
        if what in UNTOLD:
            return lambda: self._event.told(what)
        raise AttributeError(what)

    def name(self) -> str:
        """The name as recorded."""
        return self._event.recorded_name

    def stack(self) -> list[str]:
        """The calls around it, each with its function's first line."""
        return self._event.torch_stack

    def start_ns(self) -> int:
        """When it began."""
        return self._begin_ns + self._event.start_ns

    def end_ns(self) -> int:
        """When it ended; the window's end if it was still open."""
        return self._begin_ns + self._event.end_ns

    def duration_ns(self) -> int:
        """How long it took."""
        return self._event.end_ns - self._event.start_ns

    def start_thread_id(self) -> int:
        """Torch's number of the thread."""
        return torch_thread(self._event.forest.recording, self._event.index)

    def end_thread_id(self) -> int:
        """The same thread; 0 if it was still open, as in Kineto."""
        return 0 if self._event.is_unfinished else self.start_thread_id()

    def correlation_id(self) -> int:
        """The event's number; for device work, that of its launching call."""
        event = self._event
        launcher = event.forest.recording.launcher[event.index]
        is_called = launcher >= 0 and event.forest.recording.kind[launcher] in CALLS
        return event.forest.event(launcher).id if is_called else event.id

    def linked_correlation_id(self) -> int:
        """The number of the op that caused a device event or runtime call; 0 for none."""
        forest, kind = self._event.forest, self._event.kind
        if kind in CALLS:
            op = forest.recording.parent[self._event.index]
        elif kind.is_on_device and kind is not EventKind.DEVICE_RANGE:
            op = launching_op(forest.recording, self._event.index)
        else:
            return 0
        return forest.event(op).id if op >= 0 else 0

    def device_type(self) -> Any:
        """Where it ran, or whose memory it records; torch's enum member if torch is imported."""
        memory = self._event.memory
        if memory is None:
            return self._event.device_type
        # A number unknown to torch means a device, as in the sums.
        is_known = memory.device_type in DeviceType.__members__.values()
        return device_type(memory.device_type if is_known else DeviceType.PrivateUse1)

    def flops(self) -> int:
        """Its FLOPs; 0 if torch has no formula for it or FLOPs were not counted."""
        event = self._event
        is_known = event.recorded_name in _WITH_FLOPS and bool(event.flops)
        if is_known and event.recorded_name == "aten::conv2d":
            is_known = _is_plain_convolution(event.inputs)
        return event.flops or 0 if is_known else 0

    def nbytes(self) -> int:
        """The bytes of a memory record; 0 for other events."""
        memory = self._event.memory
        return 0 if memory is None else memory.nbytes


# Ops that torch.profiler has a formula for: torch/csrc/profiler/util.cpp, computeFlops.
_WITH_FLOPS: Final = frozenset(
    {"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::mul", "aten::add", "aten::conv2d"}
)


def _is_plain_convolution(inputs: Inputs | None) -> bool:
    """Whether torch counts it: 4 dimensions, and two numbers each for stride, padding and dilation."""
    if inputs is None:
        return False
    pairs = [len(value) if isinstance(value, list) else 0 for value in inputs.concrete[3:6]]
    return [*map(len, inputs.shapes[:2])] == [4, 4] and pairs == [2, 2, 2]


# Kineto's methods, and the equivalent attributes of our events.
_SAME_NAMES: Final = {
    **{
        name: name
        for name in (
            *("activity_type", "concrete_inputs", "device_index", "device_resource_id", "is_async"),
            *("is_python_function", "is_user_annotation", "kwinputs", "overload_name", "scope"),
            *("sequence_nr", "structured_input_shapes", "structured_input_strides"),
        )
    },
    "dtypes": "input_dtypes",
    "fwd_thread_id": "fwd_thread",
    "shapes": "input_shapes",
}


class KinetoResults:
    """The events of a recording in Kineto's form, flat and as a tree, in nanoseconds since the epoch."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._forest = EventForest(recording)

    def trace_start_ns(self) -> int:
        """When the window began."""
        return self._recording.trace_start_ns

    def events(self) -> Sequence[RecordedKinetoEvent]:
        """The events in start order, in Kineto's form."""
        return recorded_events(self._forest, begin_ns=self._recording.trace_start_ns)

    def experimental_event_tree(self) -> list[TreeEvent]:
        """The root events in start order. Unlike in torch, a backward op on its own thread is a root."""
        roots = (row for row in range(len(self._recording)) if self._tree.parent(row) < 0)
        in_order = sorted(roots, key=self._recording.start_ns.__getitem__)
        return [TreeEvent(self._tree, row) for row in in_order]

    @functools.cached_property
    def _tree(self) -> EventTree:
        return EventTree(self._forest, self._recording)


class EventTree:
    """The tree of rows: inside a host event is what ran in it, inside a launching call its device work."""

    def __init__(self, forest: EventForest, recording: Recording) -> None:
        self.forest = forest
        self.recording = recording
        self.children = Children(len(recording), self.parent)

    def parent(self, row: int) -> int:
        """The row of the event around one, or of its launching call; -1 for none."""
        on_device = EventKind(self.recording.kind[row]).is_on_device
        return self.recording.launcher[row] if on_device else self.forest.parent(row)


class TreeEvent:
    """An event of a tree, with those attributes of torch's ``_ProfilerEvent`` for when and where it ran."""

    __slots__ = ("_row", "_tree")

    def __init__(self, tree: EventTree, row: int) -> None:
        self._tree = tree
        self._row = row

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TreeEvent):
            return NotImplemented
        return self._row == other._row and self._tree is other._tree

    def __hash__(self) -> int:
        return hash((id(self._tree), self._row))

    def __repr__(self) -> str:
        return f"<TreeEvent {self.name!r} id={self.id}>"

    @property
    def id(self) -> int:
        """Its number, unique in the tree."""
        return self._row + 1

    @property
    def name(self) -> str:
        """The name as recorded."""
        return self._tree.recording.name(self._row)

    @property
    def overload_name(self) -> str:
        """The overload of a torch op; "" if it has none or it was not recorded."""
        return self._tree.recording.overload_name(self._row)

    @property
    def kind(self) -> EventKind:
        """Its kind."""
        return EventKind(self._tree.recording.kind[self._row])

    @property
    def correlation_id(self) -> int:
        """Its number among the flat events."""
        return self._tree.forest.event(self._row).id

    @property
    def start_tid(self) -> int:
        """Torch's number of its thread."""
        return torch_thread(self._tree.recording, self._row)

    @property
    def start_time_ns(self) -> int:
        """When it began, nanoseconds since the epoch."""
        return self._tree.recording.trace_start_ns + self._tree.recording.start_ns[self._row]

    @property
    def end_time_ns(self) -> int:
        """When it ended; the window's end if it was still open."""
        return self.start_time_ns + self.duration_time_ns

    @property
    def duration_time_ns(self) -> int:
        """Its duration, up to the window's end if it was still open."""
        recording = self._tree.recording
        duration_ns = recording.duration_ns[self._row]
        open_ns = recording.trace_end_ns - recording.start_ns[self._row]
        return open_ns if duration_ns < 0 else duration_ns

    @property
    def parent(self) -> TreeEvent | None:
        """The event around it, or its launching call."""
        row = self._tree.parent(self._row)
        return None if row < 0 else TreeEvent(self._tree, row)

    @property
    def children(self) -> list[TreeEvent]:
        """The events directly inside it, or launched by it, in start order."""
        return [TreeEvent(self._tree, row) for row in self._tree.children.of(self._row)]
