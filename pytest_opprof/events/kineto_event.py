"""An event as Kineto tells torch of it, and our own events told in the same words."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, Protocol

from pytest_opprof.capture.torch_ops import imported_torch
from pytest_opprof.events.device import DeviceType
from pytest_opprof.events.names import MEMORY_EVENT_NAME, OUT_OF_MEMORY_EVENT_NAME
from pytest_opprof.kinds import EventKind

if TYPE_CHECKING:
    from pytest_opprof.capture.inputs import Inputs
    from pytest_opprof.events.recorded_event import RecordedEvent

# What an event answers where a torch older or newer than another does not tell, or where nothing is known.
_UNTOLD: Final[dict[str, Any]] = {
    "activity_type": None,
    "concrete_inputs": (),
    "correlation_id": 0,
    "cuda_elapsed_us": -1,
    "device_index": 0,
    "device_resource_id": 0,
    "device_type": DeviceType.CPU,
    "dtypes": (),
    "external_id": 0,
    "extra_meta": None,
    "flops": 0,
    "flow_id": None,
    "flow_start": None,
    "flow_type": None,
    "fwd_thread_id": 0,
    "is_async": False,
    "is_hidden_event": False,
    "is_python_function": False,
    "is_user_annotation": False,
    "kwinputs": {},
    "linked_correlation_id": 0,
    "metadata_json": None,
    "nbytes": 0,
    "overload_name": "",
    "privateuse1_elapsed_us": -1,
    "python_id": -1,
    "python_module_id": -1,
    "python_parent_id": -1,
    "scope": 0,
    "sequence_nr": -1,
    "shapes": (),
    "stack": (),
    "structured_input_shapes": (),
    "structured_input_strides": (),
}


class KinetoEvent(Protocol):
    """What every event of ``kineto_results.events()`` has; `told` asks for the rest."""

    def name(self) -> str:
        """As recorded."""

    def start_ns(self) -> int:
        """Nanoseconds on the result's clock."""

    def end_ns(self) -> int:
        """The same."""

    def start_thread_id(self) -> int:
        """The thread it began on."""

    def end_thread_id(self) -> int:
        """The thread it ended on; 0 for one that had not ended."""


class KinetoResult(Protocol):
    """What torch's ``profile.kineto_results`` is, and whatever offers the same."""

    def events(self) -> Iterable[KinetoEvent]:
        """The events."""

    def trace_start_ns(self) -> int:
        """When the window began."""


def told(event: object, what: str) -> Any:
    """What an event says of one thing, by the name of Kineto's method; a neutral answer where it does not."""
    ask: Callable[[], Any] | None = getattr(event, what, None)  # of None: none
    return _UNTOLD[what] if ask is None else ask()


def device_of(event: KinetoEvent) -> DeviceType:
    """Where an event ran, of torch's enumeration or ours."""
    return DeviceType(int(told(event, "device_type")))


def is_set_aside(event: KinetoEvent) -> bool:
    """Whether torch takes an event for asynchronous: it ended elsewhere than it began, or not at all."""
    return bool(told(event, "is_async")) or event.start_thread_id() != event.end_thread_id()


class RecordedKinetoEvent:
    """An event of our own as Kineto would have told torch of it.

    Args:
        thread: Torch's number of its thread.
        cause: The ``id`` of the op that caused it, 0 for none.
        call: Of work of a device: the ``id`` of the call of a runtime or driver that launched it, 0 for none.
        begin_ns: When the window began, on the clock that it is to be told by.
    """

    __slots__ = ("_begin_ns", "_call", "_cause", "_event", "_thread")

    def __init__(
        self, event: RecordedEvent, *, thread: int, cause: int, call: int = 0, begin_ns: int = 0
    ) -> None:
        self._event = event
        self._thread = thread
        self._cause = cause
        self._call = call
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
        return self._thread

    def end_thread_id(self) -> int:
        """The same; 0 for an event that was open at the window's end, as Kineto has it."""
        return 0 if self._event.is_unfinished else self._thread

    def correlation_id(self) -> int:
        """The event's number; of work of a device that of the call that launched it."""
        return self._call or self._event.id

    def linked_correlation_id(self) -> int:
        """The number of the op that caused it."""
        return self._cause

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
    "activity_type": "activity_type",
    "concrete_inputs": "concrete_inputs",
    "device_index": "device_index",
    "device_resource_id": "device_resource_id",
    "dtypes": "input_dtypes",
    "fwd_thread_id": "fwd_thread",
    "is_async": "is_async",
    "is_python_function": "is_python_function",
    "is_user_annotation": "is_user_annotation",
    "kwinputs": "kwinputs",
    "overload_name": "overload_name",
    "scope": "scope",
    "sequence_nr": "sequence_nr",
    "shapes": "input_shapes",
    "structured_input_shapes": "structured_input_shapes",
    "structured_input_strides": "structured_input_strides",
}

# Kineto's words for what our kinds are.
_ACTIVITIES: Final = {
    EventKind.ITT: "user_annotation",
    EventKind.NVTX: "user_annotation",
    EventKind.PYTHON_CALL: "python_function",
    EventKind.C_CALL: "python_function",
    EventKind.MARK: "cpu_instant_event",
    EventKind.MEMORY: "cpu_instant_event",
    EventKind.RUNTIME: "cuda_runtime",
    EventKind.DRIVER: "cuda_driver",
    EventKind.KERNEL: "kernel",
    EventKind.MEMCPY: "gpu_memcpy",
    EventKind.MEMSET: "gpu_memset",
    EventKind.SYNC: "cuda_sync",
    EventKind.DEVICE_RANGE: "gpu_user_annotation",
}


def activity_of(kind: EventKind, *, user_scope: bool) -> str:
    """Kineto's word for an event of a kind; whose range it is, torch's or ours, makes no difference."""
    if kind in (EventKind.TORCH, EventKind.RANGE):
        return "user_annotation" if user_scope else "cpu_op"
    return _ACTIVITIES[kind]


def kind_of(event: KinetoEvent) -> EventKind:
    """The kind of event that Kineto tells of."""
    if event.name() in (MEMORY_EVENT_NAME, OUT_OF_MEMORY_EVENT_NAME):
        return EventKind.MEMORY
    activity = told(event, "activity_type")
    if told(event, "is_user_annotation"):
        on_host = device_of(event) == DeviceType.CPU
        return EventKind.RANGE if on_host else EventKind.DEVICE_RANGE
    if told(event, "is_python_function"):
        return EventKind.PYTHON_CALL
    if device_of(event) != DeviceType.CPU:
        return _DEVICE_KINDS.get(activity, EventKind.KERNEL)
    return _HOST_KINDS.get(activity, EventKind.TORCH)


_DEVICE_KINDS: Final = {
    "gpu_memcpy": EventKind.MEMCPY,
    "gpu_memset": EventKind.MEMSET,
    "cuda_sync": EventKind.SYNC,
    "xpu_sync": EventKind.SYNC,
}
_HOST_KINDS: Final = {
    f"{device}_{layer}": kind
    for device in ("cuda", "xpu", "mtia", "privateuse1", "glow")
    for layer, kind in (("runtime", EventKind.RUNTIME), ("driver", EventKind.DRIVER))
}


def _whose(number: int) -> DeviceType:
    """Whose memory a trace tells of; what is not a number of torch's is a device's, as the sums have it."""
    return DeviceType(number) if number in DeviceType.__members__.values() else DeviceType.PrivateUse1
