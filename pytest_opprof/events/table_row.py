"""The rows of the op table, and what its layout depends on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Final, TypeAlias

from pytest_opprof.events.device import DeviceType
from pytest_opprof.events.function_event import FunctionEvent
from pytest_opprof.events.function_event_avg import FunctionEventAvg

# An event on one of these is a kernel, a copy or an annotation; a legacy CPU event carries its kernel's time.
_KERNEL_DEVICES: Final = frozenset({DeviceType.CUDA, DeviceType.PrivateUse1, DeviceType.MTIA, DeviceType.XPU})

TableRow: TypeAlias = FunctionEvent | FunctionEventAvg  # or torch's own, which have these attributes too


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What the layout of the table depends on.

    Attributes:
        device: The device profiled, in lower case; None for none.
        self_cpu_us: Sum of the rows' self CPU times, microseconds.
        self_device_us: Sum of the self device times of kernels and copies, microseconds.
        name_length: Length of the longest key.
        shapes_length: Length of the longest shapes as text; 0 if no row has any.
        source_length: Length of the longest source location; 0 if no row has a stack.
        smallest_flops: The smallest positive number of FLOPs; None if there is none.
    """

    device: str | None
    self_cpu_us: float
    self_device_us: float
    has_device_time: bool
    has_device_memory: bool
    has_overloads: bool
    has_node_ids: bool
    name_length: int
    shapes_length: int
    source_length: int
    smallest_flops: int | None


def survey(rows: Sequence[TableRow]) -> Survey:
    """Find what the layout of a table of these rows depends on."""
    shaped = any(row.input_shapes is not None and len(row.input_shapes) > 0 for row in rows)
    return Survey(
        device=next((row.use_device for row in rows if row.use_device), None),
        # Rounded at each addition, as in torch: since Python 3.12, sum() rounds only once.
        self_cpu_us=reduce(add, (row.self_cpu_time_total for row in rows), 0),
        self_device_us=reduce(add, (row.self_device_time_total for row in rows if _counts_on_device(row)), 0),
        has_device_time=any(row.self_device_time_total > 0 for row in rows),
        has_device_memory=any(row.self_device_memory_usage > 0 for row in rows),
        has_overloads=any(row.overload_name for row in rows),
        has_node_ids=any(row.node_id != -1 for row in rows),
        name_length=max(len(row.key) for row in rows),
        shapes_length=max(len(str(row.input_shapes)) for row in rows) if shaped else 0,
        source_length=max((len(entry) for row in rows for entry in row.stack or ()), default=0),
        smallest_flops=min((row.flops for row in rows if row.flops and row.flops > 0), default=None),
    )


def _counts_on_device(row: TableRow) -> bool:
    device = int(row.device_type)
    if device == DeviceType.CPU:
        return row.is_legacy
    return device in _KERNEL_DEVICES and not row.is_user_annotation
