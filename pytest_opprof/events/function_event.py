"""One execution of an op, a range or a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pytest_opprof.capture.recording import FLAG_ASYNC, FLAG_UNFINISHED, OpKind
from pytest_opprof.events.device import DeviceType
from pytest_opprof.events.times import Interval, Kernel, TorchTimes, microseconds

if TYPE_CHECKING:
    from pytest_opprof.events.forest import EventForest

_USER_SCOPE: Final = 7
_PYTHON_KINDS: Final = frozenset({OpKind.PYTHON_CALL, OpKind.C_CALL})


def summed_name(trace_name: str) -> str:
    """The name under which an event is summed up: all steps are ``ProfilerStep*``."""
    return "ProfilerStep*" if trace_name.startswith("ProfilerStep#") else trace_name


class FunctionEvent(TorchTimes):
    """One event, with the attributes of torch's ``FunctionEvent``.

    It is a view: what it says is read from the recording when asked for. An `EventList` gives the same object
    for the same event as long as somebody holds it.
    """

    __slots__ = ("__weakref__", "_forest", "_index")

    def __init__(self, forest: EventForest, index: int) -> None:
        self._forest = forest
        self._index = index

    @property
    def id(self) -> int:
        """The event's number in its recording, from 1 on."""
        return self._index + 1

    @property
    def trace_name(self) -> str:
        """The name as recorded."""
        return self._forest.recording.name(self._index)

    @property
    def name(self) -> str:
        """The name under which it is summed up: all steps are ``ProfilerStep*``."""
        return summed_name(self.trace_name)

    @property
    def key(self) -> str:
        """The same as `name`."""
        return self.name

    @property
    def start_ns(self) -> int:
        """When it began, nanoseconds since the window's start."""
        return self._forest.recording.start_ns[self._index]

    @property
    def end_ns(self) -> int:
        """When it ended, nanoseconds since the window's start; the window's end where it was open then."""
        duration_ns = self._forest.recording.duration_ns[self._index]
        return self._forest.recording.trace_end_ns if duration_ns < 0 else self.start_ns + duration_ns

    @property
    def cpu_time_total_ns(self) -> int:
        """How long it took, nanoseconds; 0 where it was open at the window's end."""
        return max(self._forest.recording.duration_ns[self._index], 0)

    @property
    def self_cpu_time_total_ns(self) -> int:
        """The same less the events inside it; 0 for an async event."""
        return self._forest.recording.self_ns[self._index]

    @property
    def time_range(self) -> Interval:
        """When it ran, microseconds since the window's start."""
        return Interval(microseconds(self.start_ns), microseconds(self.end_ns))

    @property
    def is_async(self) -> bool:
        """It ended out of order or on another thread: it has a total time only, and nothing is inside it."""
        return bool(self._forest.recording.flags[self._index] & FLAG_ASYNC)

    @property
    def is_unfinished(self) -> bool:
        """It was still open when the window closed."""
        return bool(self._forest.recording.flags[self._index] & FLAG_UNFINISHED)

    @property
    def cpu_parent(self) -> FunctionEvent | None:
        """The event around it, on the same thread; None for an async event."""
        parent = self._forest.parent(self._index)
        return None if parent < 0 else self._forest.event(parent)

    @property
    def cpu_children(self) -> list[FunctionEvent]:
        """The events directly inside it, in the order in which they began, without async ones."""
        return self._forest.children(self._index)

    @property
    def thread(self) -> int:
        """The index of its thread in the recording's ``threads``."""
        return self._forest.recording.thread[self._index]

    @property
    def fwd_thread(self) -> int:
        """Torch's number of the thread that ran the forward op of a backward one; 0 for all others."""
        return self._forest.recording.forward_thread[self._index]

    @property
    def sequence_nr(self) -> int:
        """Autograd's sequence number, which a forward op shares with its backward; -1 for none."""
        return self._forest.recording.sequence_nr[self._index]

    @property
    def scope(self) -> int:
        """Torch's record scope: 0 function, 1 backward function, 7 user."""
        return self._forest.recording.scope[self._index]

    @property
    def step(self) -> int | None:
        """The number of the profiler step it belongs to; None for none."""
        step = self._forest.recording.step[self._index]
        return None if step < 0 else self._forest.recording.steps[step].number

    @property
    def kind(self) -> OpKind:
        """Where it came from."""
        return OpKind(self._forest.recording.kind[self._index])

    @property
    def is_user_annotation(self) -> bool:
        """It is a range that somebody named, and not an op."""
        return self.scope == _USER_SCOPE

    @property
    def is_python_function(self) -> bool:
        """It is a call of a Python function or of a builtin."""
        return self.kind in _PYTHON_KINDS

    @property
    def structured_input_shapes(self) -> list[Any]:
        """A shape for each input; a list of shapes for a list of tensors. Needs ``record_shapes``."""
        inputs = self._forest.recording.inputs(self._index)
        return [] if inputs is None else inputs.shapes

    @property
    def input_shapes(self) -> list[Any]:
        """A shape for each input that is a tensor, ``[]`` for any other. Needs ``record_shapes``."""
        return [
            [] if shape and isinstance(shape[0], list) else shape for shape in self.structured_input_shapes
        ]

    @property
    def structured_input_strides(self) -> list[Any]:
        """The strides of each input, nested like `structured_input_shapes`. Needs ``record_shapes``."""
        inputs = self._forest.recording.inputs(self._index)
        return [] if inputs is None else inputs.strides

    @property
    def input_dtypes(self) -> list[str]:
        """The type of each input. Needs ``record_shapes``."""
        inputs = self._forest.recording.inputs(self._index)
        return [] if inputs is None else inputs.dtypes

    @property
    def concrete_inputs(self) -> list[str]:
        """The value of each input that is a number, as text. Needs ``record_shapes``."""
        inputs = self._forest.recording.inputs(self._index)
        return [] if inputs is None else inputs.concrete

    # What torch's events have and a CPU op of this process does not: one truth for all of them.
    count = 1
    node_id = -1
    overload_name = ""
    is_remote = False
    is_legacy = False
    use_device: str | None = None
    device_type = DeviceType.CPU
    device_index = 0
    device_time_total_ns = 0
    self_device_time_total_ns = 0
    flops = 0

    @property
    def cpu_memory_usage(self) -> int:
        """Bytes of the host that it and the events inside it took, less what they gave back.

        Needs ``profile_memory``. Memory belongs to what ran on its thread as it was taken or given back.
        """
        return self._forest.recording.cpu_memory[self._index]

    @property
    def self_cpu_memory_usage(self) -> int:
        """The same without the events inside it."""
        return self._forest.recording.self_cpu_memory[self._index]

    @property
    def device_memory_usage(self) -> int:
        """Bytes of all devices that it and the events inside it took, less what they gave back."""
        return self._forest.recording.device_memory[self._index]

    @property
    def self_device_memory_usage(self) -> int:
        """The same without the events inside it."""
        return self._forest.recording.self_device_memory[self._index]

    @property
    def device_resource_id(self) -> int:
        """The same as `thread`: what the event occupied."""
        return self.thread

    @property
    def kernels(self) -> list[Kernel]:
        """The device work it launched."""
        return []

    @property
    def stack(self) -> list[str]:
        """The calls it was made from, innermost first."""
        return []

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} device_type={self.device_type.name} "
            f"cpu_time={self.cpu_time_str} start_us={self.time_range.start} end_us={self.time_range.end} "
            f"cpu_children={[child.id for child in self.cpu_children]} thread={self.thread} "
            f"input_shapes={self.input_shapes} is_async={self.is_async} seq_nr={self.sequence_nr}>"
        )
