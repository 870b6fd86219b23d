"""Memory taken and given back, as the native collector recorded it and summed it up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pytest_opprof.capture.native import ffi, lib
from pytest_opprof.capture.native_calls import check, value_of


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryChange:
    """What an allocator did in one event of kind `OpKind.MEMORY`.

    Attributes:
        address: Of the block; 0 if the request failed.
        nbytes: Bytes taken; negative if given back.
        total_allocated: Bytes that the allocator had given out by then; -1 for unknown.
        total_reserved: Bytes that it held by then; -1 for unknown.
        device_type: Torch's number of the kind of device; 0 for the host.
        device_index: Which device of that kind; -1 for the host.
    """

    address: int
    nbytes: int
    total_allocated: int
    total_reserved: int
    device_type: int
    device_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUse:
    """The memory that one step or a whole window took, without what was taken before.

    Attributes:
        allocated: Bytes taken.
        freed: How many of these bytes were given back.
        peak: The most of these bytes in use at once.
    """

    allocated: int
    freed: int
    peak: int
    allocations: int


def memory_change(result: Any, event: int) -> MemoryChange | None:
    """What an allocator did in an event of a native result; None for any other event."""
    change = ffi.new("op_memory *")
    if not lib.op_result_memory(result, event, change):
        return None
    return value_of(MemoryChange, change, nbytes=change.bytes)


def memory_use(result: Any, count: int, *, on_device: bool) -> list[MemoryUse]:
    """The first `count` rows of a native result's memory: one per step, then the whole window.

    Raises:
        CollectorError: Out of memory.
    """
    rows = ffi.new("op_memory_use **")
    check(lib.op_result_memory_use(result, on_device, rows))
    return [value_of(MemoryUse, rows[0][i]) for i in range(count)]
