"""Events summed up by the collector: the rows of the key averages."""

from __future__ import annotations

import functools
import struct
from dataclasses import dataclass
from typing import Any, Final

from pytest_opprof.capture.names import name_text
from pytest_opprof.capture.native import ffi, lib
from pytest_opprof.capture.native_calls import check
from pytest_opprof.capture.op_kind import OpKind

# A row's samples, in the order of `op_result_groups`.
_OF_STEPS: Final = (
    "step_counts",
    "step_total_ns",
    "step_self_ns",
    "step_device_total_ns",
    "step_self_device_ns",
    "step_cpu_memory",
    "step_flops",
    "step_counted_flops",
    "step_device_memory",
    "step_views",
    "step_bytes",
    "step_counted_bytes",
    "step_nodes",
    "step_counted_nodes",
)
_STEP_COLUMNS: Final = len(_OF_STEPS)
_CODES: Final = {"uint8_t": "B", "uint32_t": "I", "int32_t": "i", "uint64_t": "Q", "int64_t": "q"}


@dataclass(frozen=True, slots=True, kw_only=True)
class OpGroup:
    """One row of the key averages.

    Attributes:
        name: The op's; all ``ProfilerStep#k`` are ``ProfilerStep*``.
        first_event: Index of the earliest event.
        background: Run during steps, by threads that are no part of them.
        is_async: The earliest event ended out of order or on another thread.
        total_ns: Sum of durations, those of nested events of the same name included.
        self_ns: The same less what was spent in the events inside.
        min_ns: The shortest duration.
        max_ns: The longest.
        step_counts: Per step of the recording.
        step_total_ns: Per step of the recording.
        step_self_ns: Per step of the recording.
        device_type: Torch's number of where the events ran; 0 for the host. Events of a device have device
            time only, and `total_ns` 0.
        device_total_ns: Sum of the kernels, copies and fills launched in the events.
        self_device_ns: The same for what was launched by them, and by no op or range inside.
        step_device_total_ns: Per step of the recording.
        step_self_device_ns: Per step of the recording.
        args_event: Index of an event with this row's inputs.
        cpu_memory: Bytes of the host taken less given back, in events inside too.
        self_cpu_memory: The same, by the events themselves.
        device_memory: The same as `cpu_memory` of all devices.
        self_device_memory: The same as `self_cpu_memory` of all devices.
        flops: FLOPs of the events with what runs inside them; 0 until `Recording.count_flops`.
        counted_flops: What of these is not also in an event around: these add up to a whole.
        step_cpu_memory: Per step of the recording.
        step_device_memory: Per step of the recording.
        step_flops: Per step of the recording.
        step_counted_flops: Per step of the recording.
        views: Of `count`, how many by torch's schema gave back what they were given, and ran no other op.
        step_views: Per step of the recording.
        bytes: Bytes of the tensors that the events were given, or those inside them, whichever is more; 0
            where work was not recorded.
        counted_bytes: What of these is not also in an event around: these add up to a whole.
        nodes: Nodes of autograd's graph that were made in the events.
        counted_nodes: What of these is not also in an event around.
        step_bytes: Per step of the recording.
        step_counted_bytes: Per step of the recording.
        step_nodes: Per step of the recording.
        step_counted_nodes: Per step of the recording.
    """

    name: str
    kind: OpKind
    scope: int
    is_user_annotation: bool
    background: bool
    is_async: bool
    count: int
    total_ns: int
    self_ns: int
    min_ns: int
    max_ns: int
    first_event: int
    step_counts: tuple[int, ...]
    step_total_ns: tuple[int, ...]
    step_self_ns: tuple[int, ...]
    device_type: int = 0
    device_total_ns: int = 0
    self_device_ns: int = 0
    step_device_total_ns: tuple[int, ...] = ()
    step_self_device_ns: tuple[int, ...] = ()
    args_event: int = 0
    cpu_memory: int = 0
    self_cpu_memory: int = 0
    device_memory: int = 0
    self_device_memory: int = 0
    step_cpu_memory: tuple[int, ...] = ()
    step_device_memory: tuple[int, ...] = ()
    flops: int = 0
    counted_flops: int = 0
    step_flops: tuple[int, ...] = ()
    step_counted_flops: tuple[int, ...] = ()
    views: int = 0
    step_views: tuple[int, ...] = ()
    bytes: int = 0
    counted_bytes: int = 0
    nodes: int = 0
    counted_nodes: int = 0
    step_bytes: tuple[int, ...] = ()
    step_counted_bytes: tuple[int, ...] = ()
    step_nodes: tuple[int, ...] = ()
    step_counted_nodes: tuple[int, ...] = ()


def read_groups(result: Any, by: int, *, steps: int, stack_depth: int = 0) -> list[OpGroup]:
    """The events of a native result, summed up.

    Args:
        result: The native result; nobody else may ask it meanwhile.
        by: What an ``OP_GROUP_BY_`` of the collector says.
        steps: How many it has.
        stack_depth: Events are apart by so many innermost callers too.

    Raises:
        CollectorError: There is no memory to do so.
    """
    rows, count, samples = sum_up(result, by, stack_depth=stack_depth)
    cells = count * steps
    flat = ffi.unpack(samples, _STEP_COLUMNS * cells) if cells else []
    columns = [
        zip(*[iter(flat[at : at + cells])] * steps, strict=True) if steps else [()] * count
        for at in range(0, _STEP_COLUMNS * cells or _STEP_COLUMNS, cells or 1)
    ]
    names, row = _layout()
    of_rows = row.iter_unpack(ffi.buffer(rows, count * row.size)) if count else ()
    told = (dict(zip(names, numbers, strict=True)) for numbers in of_rows)
    return [_group(*both) for both in zip(told, zip(*columns, strict=True), strict=True)]


@functools.cache
def _layout() -> tuple[tuple[str, ...], struct.Struct]:
    """The members of a row and how they lie: all rows are read at once.

    That takes a fraction of the time of asking cffi for each number.
    """
    members = ffi.typeof("op_group").fields
    codes = (_CODES[member.type.cname] for _, member in members)
    return tuple(name for name, _ in members), struct.Struct("@" + "".join(codes))


def sum_up(result: Any, by: int, *, stack_depth: int = 0) -> tuple[Any, int, Any]:
    """Have the collector sum up the events of a native result: its rows, how many, and their samples.

    Raises:
        CollectorError: There is no memory to do so.
    """
    rows = ffi.new("op_group **")
    count = ffi.new("uint64_t *")
    samples = ffi.new("int64_t **")
    check(lib.op_result_groups(result, by, stack_depth, rows, count, samples))
    return rows[0], count[0], samples[0]


def _group(told: dict[str, Any], of_steps: tuple[tuple[int, ...], ...]) -> OpGroup:
    del told["start_ns"]
    return OpGroup(
        **told
        | {
            "name": name_text(told["name"]),
            "kind": OpKind(told["kind"]),
            "is_user_annotation": bool(told["is_user_annotation"]),
            "background": bool(told["background"]),
            "is_async": bool(told["is_async"]),
        },
        **dict(zip(_OF_STEPS, of_steps, strict=True)),
    )
