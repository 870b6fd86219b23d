"""Metrics of devices: counts, bytes by direction, times, and how busy the devices were.

A kernel, copy or wait belongs to the step and to the op that launched it, and to every op around that.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pytest_opprof.metrics.metric import Family, Metric, Source, Worse, of_op, total
from pytest_opprof.units import Unit

# Directions of copies, in CUPTI's words. A CUDA array is memory of a device.
DIRECTIONS = {name.lower(): name for name in ("HtoD", "DtoH", "DtoD", "PtoP", "HtoH")}
HOST_DIRECTIONS = ("htod", "dtoh", "htoh")
# Calls of CUDA and HIP, C++ kernels (mangled or with signature), and the names of copies and fills.
_OF_DEVICE = re.compile(r"(cuda|cu|hip)[A-Z*]|void |_Z|Memcpy |Memset ")


def _count(name: str, label: str, unit: Unit = Unit.COUNT) -> tuple[Metric, Metric]:
    """A count of an op, and the total: ``copied_bytes_htod`` and ``copies_htod.bytes``."""
    whole = f"{name}.count" if unit is Unit.COUNT else f"{name.replace('copied_bytes', 'copies')}.bytes"
    return of_op(name, label, unit, Source.CUDA), total(whole, label, unit, Source.CUDA)


def is_of_device(op: str) -> bool:
    """Whether a path's op occurs only where there are devices, such as a call of CUDA."""
    return _OF_DEVICE.match(op) is not None


_COUNTS = (
    _count("kernels", "kernels"),
    _count("launches", "launches"),
    _count("memsets", "memsets"),
    _count("syncs", "syncs"),
    _count("copies", "copies"),
    _count("host_copies", "copies from or to the host"),
    *(_count(f"copies_{key}", f"{words} copies") for key, words in DIRECTIONS.items()),
    _count("copied_bytes", "copied bytes", Unit.BYTES),
    *(_count(f"copied_bytes_{key}", f"{words} bytes", Unit.BYTES) for key, words in DIRECTIONS.items()),
)


def _time(
    name: str, whole: str, label: str, unit: Unit = Unit.NS, *, worse: Worse = Worse.HIGHER, column: str = ""
) -> tuple[Metric, Metric]:
    """A time of an op, and the total."""
    return (
        of_op(name, label, unit, Source.CUDA, family=Family.TIME, worse=worse, column=column),
        total(whole, label, unit, Source.CUDA, family=Family.TIME, worse=worse),
    )


DEVICE_TIME_TOTAL, TOTAL_DEVICE_TIME = _time(
    "device_time_total", "total.device_time_total", "CUDA total", column="device_total_ns"
)
SELF_DEVICE_TIME_TOTAL, TOTAL_SELF_DEVICE_TIME = _time(
    "self_device_time_total", "total.self_device_time_total", "self CUDA", column="self_device_ns"
)
# The union of each device's intervals of work, summed over devices.
BUSY_TIME, TOTAL_BUSY_TIME = _time("device_busy_time", "device.busy_time", "CUDA busy")
# The share of the time on the host in which a device in use ran nothing at all.
IDLE_FRACTION, TOTAL_IDLE_FRACTION = _time(
    "device_idle_fraction", "device.idle_fraction", "CUDA idle", Unit.PPM
)
# Kernels that were launched but had not begun, on average; near 0, the device waits for the host.
QUEUE_DEPTH, TOTAL_QUEUE_DEPTH = _time(
    "device_queue_depth", "device.queue_depth", "queue depth", Unit.THOUSANDTHS, worse=Worse.LOWER
)

# Bytes taken less given back; a test's totals cover only what its steps took.
DEVICE_MEMORY = of_op(
    "device_memory",
    "CUDA memory",
    Unit.BYTES,
    Source.MEMORY_CUDA,
    is_signed=True,
    column="device_memory",
)
DEVICE_MEMORY_ALLOCATED = total(
    "device_memory.allocated", "allocated CUDA memory", Unit.BYTES, Source.MEMORY_CUDA
)
DEVICE_MEMORY_PEAK = total(
    "device_memory.peak", "peak CUDA memory", Unit.BYTES, Source.MEMORY_CUDA, family=Family.BOUNDED
)
DEVICE_MEMORY_ALLOCATIONS = total(
    "device_memory.allocations", "CUDA allocations", Unit.COUNT, Source.MEMORY_CUDA
)

OP_COUNTS: Mapping[str, Metric] = {metric.name: metric for metric, _ in _COUNTS}
# Each op's count, and the total that it is part of.
TOTAL_OF_COUNT: Mapping[str, Metric] = {op.name: whole for op, whole in _COUNTS}
KERNELS_COUNT, LAUNCHES_COUNT = TOTAL_OF_COUNT["kernels"], TOTAL_OF_COUNT["launches"]
MEMSETS_COUNT, COPIES_COUNT = TOTAL_OF_COUNT["memsets"], TOTAL_OF_COUNT["copies"]
# Each time of an op, and in the same order the total that it is part of.
OP_TIMES = (DEVICE_TIME_TOTAL, SELF_DEVICE_TIME_TOTAL, BUSY_TIME, IDLE_FRACTION, QUEUE_DEPTH)
TOTAL_TIMES = (
    TOTAL_DEVICE_TIME,
    TOTAL_SELF_DEVICE_TIME,
    TOTAL_BUSY_TIME,
    TOTAL_IDLE_FRACTION,
    TOTAL_QUEUE_DEPTH,
)
# The tables, as in `host.py`.
DEVICE_METRICS = (DEVICE_MEMORY, *OP_COUNTS.values(), *OP_TIMES)
DEVICE_COUNTS = tuple(TOTAL_OF_COUNT.values())
DEVICE_AMOUNTS = (DEVICE_MEMORY_ALLOCATED, DEVICE_MEMORY_PEAK, DEVICE_MEMORY_ALLOCATIONS)
