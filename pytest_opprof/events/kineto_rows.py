"""The events of any recording in Kineto's form, for code that reads them as torch does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from pytest_opprof.capture.inputs import Inputs
from pytest_opprof.events.attribution import CALLS, launching_op
from pytest_opprof.events.device import DeviceType, device_type
from pytest_opprof.events.forest import EventForest
from pytest_opprof.events.kineto_event import KinetoEvent
from pytest_opprof.events.recorded_event import RecordedEvent
from pytest_opprof.events.recording_view import RecordingView
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
        if what not in _SAME_NAMES:
            raise AttributeError(what)
        return lambda: getattr(self._event, _SAME_NAMES[what])

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
        return self._event.device_type if memory is None else device_type(_whose(memory.device_type))

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
    ranks = [len(sizes) for sizes in inputs.shapes[:2]]
    pairs = [len(value) if isinstance(value, list) else 0 for value in inputs.concrete[3:6]]
    return ranks == [4, 4] and pairs == [2, 2, 2]


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


def _whose(number: int) -> DeviceType:
    """Whose memory a trace records. A number unknown to torch means a device, as in the sums."""
    return DeviceType(number) if number in DeviceType.__members__.values() else DeviceType.PrivateUse1
