"""The events of any recording in Kineto's words, for what is to read them as torch does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from pytest_opprof.capture.inputs import Inputs
from pytest_opprof.capture.torch_ops import imported_torch
from pytest_opprof.events.attribution import CALLS, launching_op
from pytest_opprof.events.device import DeviceType
from pytest_opprof.events.forest import EventForest
from pytest_opprof.events.kineto_event import KinetoEvent
from pytest_opprof.events.recorded_event import RecordedEvent
from pytest_opprof.events.recording_view import RecordingView
from pytest_opprof.kinds import EventKind


def kineto_events(forest: EventForest) -> tuple[Sequence[KinetoEvent], int]:
    """What Kineto told, or would have told, of a recording's events, and when its window began.

    Returns:
        The events in Kineto's order, or in the order of their start; and nanoseconds on the events' clock.
    """
    given = forest.recording.kineto_result
    if given is not None:
        return list(given.events()), given.trace_start_ns()
    return recorded_events(forest), 0


def recorded_events(forest: EventForest, *, begin_ns: int = 0) -> list[RecordedKinetoEvent]:
    """The events of a recording as Kineto would have told of them, in the order of their start.

    Args:
        begin_ns: When the window began, on the clock that they are to be told by.
    """
    rows = sorted(range(len(forest.recording)), key=forest.recording.start_ns.__getitem__)
    return [RecordedKinetoEvent(forest.event(row), begin_ns=begin_ns) for row in rows]


def torch_thread(recording: RecordingView, row: int) -> int:
    """Torch's number of a thread; one that ran no op has none, and gets one that torch gives no thread."""
    thread = recording.threads[recording.thread[row]]
    return thread.torch_thread or -1 - thread.index


class RecordedKinetoEvent:
    """An event of our own as Kineto would have told torch of it.

    Args:
        begin_ns: When the window began, on the clock that it is to be told by.
    """

    __slots__ = ("_begin_ns", "_event")

    def __init__(self, event: RecordedEvent, *, begin_ns: int) -> None:
        self._event = event
        self._begin_ns = begin_ns

    def __getattr__(self, what: str) -> Callable[[], Any]:
        if what not in _SAME_NAMES:
            raise AttributeError(what)
        return lambda: getattr(self._event, _SAME_NAMES[what])

    def name(self) -> str:
        """As recorded."""
        return self._event.recorded_name

    def stack(self) -> list[str]:
        """The calls around it, each with its function's first line."""
        return self._event.torch_stack

    def start_ns(self) -> int:
        """When it began."""
        return self._begin_ns + self._event.start_ns

    def end_ns(self) -> int:
        """When it ended; the window's end for an event that was open then."""
        return self._begin_ns + self._event.end_ns

    def duration_ns(self) -> int:
        """How long it took."""
        return self._event.end_ns - self._event.start_ns

    def start_thread_id(self) -> int:
        """Torch's number of the thread."""
        return torch_thread(self._event.forest.recording, self._event.index)

    def end_thread_id(self) -> int:
        """The same; 0 for an event that was open at the window's end, as Kineto has it."""
        return 0 if self._event.is_unfinished else self.start_thread_id()

    def correlation_id(self) -> int:
        """The event's number; of work of a device that of the call that launched it."""
        event = self._event
        launcher = event.forest.recording.launcher[event.index]
        is_called = launcher >= 0 and event.forest.recording.kind[launcher] in CALLS
        return event.forest.event(launcher).id if is_called else event.id

    def linked_correlation_id(self) -> int:
        """The number of the op that caused an event of a device or of its runtime, 0 for none."""
        forest, kind = self._event.forest, self._event.kind
        if kind in CALLS:
            op = forest.recording.parent[self._event.index]
        elif kind.is_on_device and kind is not EventKind.DEVICE_RANGE:
            op = launching_op(forest.recording, self._event.index)
        else:
            return 0
        return forest.event(op).id if op >= 0 else 0

    def device_type(self) -> Any:
        """Where it ran; of a record of memory: whose memory. Torch's own member where torch is imported."""
        memory = self._event.memory
        device = self._event.device_type if memory is None else _whose(memory.device_type)
        torch = imported_torch()
        # Torch's code compares with its own enumeration, whose members equal nothing else.
        return device if torch is None else torch.autograd.DeviceType(int(device))

    def flops(self) -> int:
        """Of the ops that torch has a formula for, where FLOPs were counted."""
        event = self._event
        is_known = event.recorded_name in _WITH_FLOPS and bool(event.flops)
        if is_known and event.recorded_name == "aten::conv2d":
            is_known = _is_plain_convolution(event.inputs)
        return event.flops or 0 if is_known else 0

    def nbytes(self) -> int:
        """Of a record of memory."""
        memory = self._event.memory
        return 0 if memory is None else memory.nbytes


# What torch.profiler has a formula for: torch/csrc/profiler/util.cpp, computeFlops.
_WITH_FLOPS: Final = frozenset(
    {"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::mul", "aten::add", "aten::conv2d"}
)


def _is_plain_convolution(inputs: Inputs | None) -> bool:
    """Torch counts those of 4 dimensions alone, with two numbers each for stride, padding and dilation."""
    if inputs is None:
        return False
    ranks = [len(sizes) for sizes in inputs.shapes[:2]]
    return ranks == [4, 4] and all(text.count(",") == 1 for text in inputs.concrete[3:6])


# Kineto's methods and the attributes of our events that say the same.
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
    """Whose memory a trace tells of; what is not a number of torch's is a device's, as the sums have it."""
    return DeviceType(number) if number in DeviceType.__members__.values() else DeviceType.PrivateUse1
