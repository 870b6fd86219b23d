"""The attributes of one event."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping
from dataclasses import InitVar, dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pytest_opprof.events.device import DeviceType, device_type
from pytest_opprof.events.times import Interval, Kernel

if TYPE_CHECKING:
    from pytest_opprof.events.function_event import FunctionEvent


class EventMetadata(NamedTuple):
    """Details of a kernel, copy or collective; None for each that is unknown.

    Attributes:
        shared_memory: Bytes per block.
        grid: Blocks in each direction.
        block: Threads in each direction.
        blocks_per_sm: Blocks per multiprocessor.
        occupancy: How the occupancy was calculated.
        est_occupancy_pct: Estimated achieved occupancy, percent.
        bytes: Size of a copy or a fill.
        bandwidth_gb_s: Gigabytes per second.
        dtype: Type of the elements.
        in_msg_nelems: Elements of the input.
        out_msg_nelems: Elements of the output.
        in_split_size: How the input is split.
        out_split_size: How the output is split.
        global_rank_start: First rank of the group.
        global_rank_stride: Step from one rank to the next.
        group_size: Ranks in the group.
        group_ranks: The group's ranks as text.
        src_rank: Where the data comes from.
        dst_rank: Where it goes.
        is_async: The call does not wait.
    """

    registers_per_thread: int | None = None
    shared_memory: int | None = None
    grid: list[int] | None = None
    block: list[int] | None = None
    priority: int | None = None
    blocks_per_sm: float | None = None
    warps_per_sm: float | None = None
    occupancy: dict[str, Any] | None = None
    est_occupancy_pct: float | None = None
    queued: int | None = None
    graph_id: int | None = None
    graph_node_id: int | None = None
    stream: int | None = None
    context: int | None = None
    channel: int | None = None
    channel_type: int | None = None
    bytes: int | None = None
    bandwidth_gb_s: float | None = None
    collective_name: str | None = None
    dtype: str | None = None
    in_msg_nelems: int | None = None
    out_msg_nelems: int | None = None
    in_split_size: str | None = None
    out_split_size: str | None = None
    global_rank_start: int | None = None
    global_rank_stride: int | None = None
    group_size: int | None = None
    process_group_name: str | None = None
    process_group_desc: str | None = None
    group_ranks: str | None = None
    rank: int | None = None
    src_rank: int | None = None
    dst_rank: int | None = None
    seq: int | None = None
    is_async: bool | None = None


def _unquoted(text: str) -> str:
    return text.strip('"')


# By Kineto's key: the field, and the parser of its text.
_FIELDS: Final[Mapping[str, tuple[str, Callable[[str], Any]]]] = {
    "registers per thread": ("registers_per_thread", int),
    "shared memory": ("shared_memory", int),
    "grid": ("grid", json.loads),
    "block": ("block", json.loads),
    "priority": ("priority", int),
    "blocks per SM": ("blocks_per_sm", float),
    "warps per SM": ("warps_per_sm", float),
    "est. achieved occupancy %": ("est_occupancy_pct", float),
    "occupancy": ("occupancy", json.loads),
    "queued": ("queued", int),
    "graph id": ("graph_id", int),
    "graph node id": ("graph_node_id", int),
    "stream": ("stream", int),
    "context": ("context", int),
    "channel": ("channel", int),
    "channel_type": ("channel_type", int),
    "bytes": ("bytes", int),
    "memory bandwidth (GB/s)": ("bandwidth_gb_s", float),
    "Collective name": ("collective_name", _unquoted),
    "dtype": ("dtype", _unquoted),
    "In msg nelems": ("in_msg_nelems", int),
    "Out msg nelems": ("out_msg_nelems", int),
    "In split size": ("in_split_size", _unquoted),
    "Out split size": ("out_split_size", _unquoted),
    "Global rank start": ("global_rank_start", int),
    "Global rank stride": ("global_rank_stride", int),
    "Group size": ("group_size", int),
    "Process Group Name": ("process_group_name", _unquoted),
    "Process Group Description": ("process_group_desc", _unquoted),
    "Process Group Ranks": ("group_ranks", _unquoted),
    "Rank": ("rank", int),
    "Src Rank": ("src_rank", int),
    "Dst Rank": ("dst_rank", int),
    "Seq": ("seq", int),
    "Is asynchronized op": ("is_async", lambda text: text in ("1", "true")),
}


def event_metadata(kineto_args: Mapping[str, str]) -> EventMetadata | None:
    """Parse an event's arguments, JSON texts by Kineto's keys; None if none is valid."""
    known: dict[str, Any] = {}
    for key, (name, read) in _FIELDS.items():
        text = kineto_args.get(key)
        if text is not None:
            with contextlib.suppress(ValueError, RecursionError):
                known[name] = read(text)
    return EventMetadata(**known) if known else None


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
