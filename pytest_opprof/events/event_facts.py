"""The attributes of one event."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_opprof.events.device import DeviceType, device_type
from pytest_opprof.events.event_metadata import EventMetadata, event_metadata
from pytest_opprof.events.times import Interval, Kernel

if TYPE_CHECKING:
    from pytest_opprof.events.function_event import FunctionEvent


@dataclass(slots=True, eq=False, repr=False)
class EventFacts:
    """The attributes of a `FunctionEvent`. Each may be set; the constructor takes torch's arguments.

    Attributes:
        id: Its number, by which other events name it as their cause.
        name: The name it is summed up under; all steps are ``ProfilerStep*``.
        trace_name: The name as recorded; None if traces leave the event out.
        overload_name: The overload of the op, such as ``Tensor``.
        time_range: When it ran, microseconds since the window's start.
        thread: The thread it began on.
        fwd_thread: Torch's number of the thread that ran a backward op's forward op.
        sequence_nr: Autograd's number, which a forward op shares with its backward; -1 for none.
        scope: Torch's record scope: 0 function, 1 backward function, 7 user.
        kernels: The device work it launched itself.
        cpu_children: The events directly inside it, in start order.
        cpu_parent: The event around it on the same thread; None for none.
        input_shapes: A shape for each input that is a tensor, ``[]`` for any other. Needs ``record_shapes``.
        structured_input_shapes: As `input_shapes`, with a list of shapes for a list of tensors.
        structured_input_strides: Strides in elements, nested in the same way.
        input_dtypes: The type of each input.
        concrete_inputs: The values of inputs that are numbers or short lists of them; None for others.
        kwinputs: Keyword arguments.
        stack: The calls it was made from, innermost first. Needs ``with_stack``.
        use_device: The profiled device, in lower case. If None, no event has device time.
        cpu_memory_usage: Host memory allocated less freed while it ran, bytes.
        device_memory_usage: Device memory allocated less freed while it ran, bytes.
        is_async: It ended on another thread or out of order, and so has only a total time.
        is_remote: It ran in another process.
        is_legacy: Its one kernel is the time that elapsed on the device between its start and end.
        is_user_annotation: It is a named range, not an op.
        is_python_function: It is a call of a Python function or a builtin.
        node_id: The node of a distributed run; -1 for none.
        device_type: Where it ran.
        device_index: The number of the device among those of its type.
        device_resource_id: The thread or stream it ran on.
        flops: Floating-point operations; None if not counted.
        activity_type: Kineto's name for its kind.
        event_metadata: Details from the device or a collective.
        external_id: Kineto's number of the op that caused it.
        linked_correlation_id: The `id` of the op that caused it; 0 for none.
        flow_id: Number of the arrow that starts or ends at it.
        flow_type: What the arrow means.
        flow_start: The arrow starts here.
        python_id: Number of a Python call; -1 for none.
        python_parent_id: Number of the call around it.
        python_module_id: Number of the module called.
        self_cpu_percent: Its share of self CPU time in the last table that showed it, as text; -1 before.
        total_cpu_percent: The same for `cpu_time_total`.
        total_device_percent: The same for `self_device_time_total`.
        count: 1, as in an average of one event.
    """

    id: int
    name: str
    thread: int
    start_us: InitVar[float]
    end_us: InitVar[float]
    overload_name: str | None = None
    fwd_thread: int | None = None
    input_shapes: Any = None
    stack: list[str] | None = None
    scope: int = 0
    use_device: str | None = None
    cpu_memory_usage: int = 0
    device_memory_usage: int = 0
    is_async: bool = False
    is_remote: bool = False
    sequence_nr: int = -1
    node_id: int = -1
    device_type: DeviceType = DeviceType.CPU
    device_index: int = 0
    device_resource_id: int | None = None
    is_legacy: bool = False
    flops: int | None = None
    trace_name: str | None = None
    concrete_inputs: list[Any] | None = None
    kwinputs: dict[str, Any] | None = None
    is_user_annotation: bool = False
    is_python_function: bool = False
    activity_type: str | None = None
    metadata_json: InitVar[str | None] = None
    flow_id: int | None = None
    flow_type: int | None = None
    flow_start: bool | None = None
    external_id: int = 0
    linked_correlation_id: int = 0
    extra_meta: InitVar[Mapping[str, str] | None] = None
    structured_input_shapes: list[Any] | None = None
    structured_input_strides: list[Any] | None = None
    input_dtypes: list[str] | None = None
    python_id: int = -1
    python_parent_id: int = -1
    python_module_id: int = -1
    # Attributes that are not torch's arguments.
    time_range: Interval = field(init=False)
    event_metadata: EventMetadata | None = field(init=False)
    kernels: list[Kernel] = field(init=False, default_factory=list)
    cpu_children: list[FunctionEvent] = field(init=False, default_factory=list)
    cpu_parent: FunctionEvent | None = field(init=False, default=None)
    self_cpu_percent: Any = field(init=False, default=-1)
    total_cpu_percent: Any = field(init=False, default=-1)
    total_device_percent: Any = field(init=False, default=-1)
    count: int = field(init=False, default=1)
    _metadata_json: str | None = field(init=False)

    def __post_init__(
        self,
        start_us: float,
        end_us: float,
        metadata_json: str | None,
        extra_meta: Mapping[str, str] | None,
    ) -> None:
        self.device_type = device_type(int(self.device_type))
        self.time_range = Interval(start_us, end_us)
        if self.device_resource_id is None:
            self.device_resource_id = self.thread
        self._metadata_json = metadata_json
        self.event_metadata = event_metadata(extra_meta) if extra_meta else None


for _argument in ("metadata_json", "extra_meta"):
    delattr(EventFacts, _argument)  # its default, which dataclasses leave behind as an attribute of the class
