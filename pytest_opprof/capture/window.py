"""What a window has besides its events: threads, steps, open calls, losses, memory, call paths."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from pytest_opprof.capture.native import ffi, lib
from pytest_opprof.capture.sources import EVERY_OP
from pytest_opprof.units import MOST_IN_JSON

# In a trace's metadata: the share of torch's ops, unless it is 1, and the other losses, if there are any.
SAMPLING_KEY: Final = "opprof_sampling"
LOSSES_KEY: Final = "opprof_losses"
_LOSSES: Final = ("dropped", "truncated", "names_overflowed", "device_dropped", "device_partial")
_LONGEST_THREAD_NAME: Final = 15  # bytes; the system's limit, and the native side's


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadInfo:
    """A thread that recorded at least one event, or a stream of a device that ran one."""

    index: int
    os_tid: int
    name: str
    torch_thread: int = 0  # torch's own number for it, as in `Recording.forward_thread`; 0 if it ran no op
    device_type: int = 0  # torch's number of the kind of device; 0 for the host
    device_index: int = -1  # which device of that kind; -1 for the host
    resource: int = 0  # a device's stream


@dataclass(frozen=True, slots=True, kw_only=True)
class StepInfo:
    """One step of the schedule."""

    number: int  # as the schedule counts, from 0
    start_ns: int  # nanoseconds since the epoch
    end_ns: int  # nanoseconds since the epoch; the window's end for a step that was open then


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCall:
    """A Python call that was open when its thread joined the window; it encloses the thread's events."""

    thread: int  # index into `Recording.threads`
    name: str
    line: int  # where it was when the thread joined; 0 if unknown
    end_ns: int  # when it ended, nanoseconds from `Recording.trace_start_ns`; -1 if it did not


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingStats:
    """What was recorded, and what was lost."""

    events: int
    dropped: int = 0  # events without room; in a recovered recording at least so many
    truncated: bool = False  # the byte budget or the disk ended the recording early
    threads: int
    names: int  # distinct names known to this process
    spilled_bytes: int = 0  # written to the spill file
    unmatched_ends: int = 0  # ends whose begin is not on record, as for ranges begun before the window
    names_overflowed: int = 0  # events that share the name "(overflow)": the process had too many names
    crash_recovery: bool = False  # another process could have recovered the recording after a crash
    sampling: float = EVERY_OP  # the share of torch's ops that was recorded, drawn at random; 1 for all
    # threads whose counters the kernel refused, though others' were opened, or whose counters the program
    # closed
    uncounted_threads: int = 0
    # recorded events of devices; 0 if CUDA was not recorded, as for all of the following
    device_events: int = 0
    device_dropped: int = 0  # records of CUDA's activities without room
    device_untimed: int = 0  # device events whose time is unknown
    device_unlaunched: int = 0  # device events whose launching call is not on record
    device_overhead_ns: int = 0  # time that CUPTI says it took for itself
    device_partial: bool = False  # CUPTI delivered only a part: another profiler took it over, or it failed

    def as_metadata(self) -> dict[str, Any]:
        """What a trace of the recording says about its losses."""
        lost = {name: getattr(self, name) for name in _LOSSES if getattr(self, name)}
        share = {SAMPLING_KEY: self.sampling} if self.sampling != EVERY_OP else {}
        return share | ({LOSSES_KEY: lost} if lost else {})

    def with_metadata(self, found: Mapping[str, Any]) -> RecordingStats:
        """The same with the losses that a trace's metadata tell; what no trace of ours says is ignored."""
        share, told = found.get(SAMPLING_KEY), found.get(LOSSES_KEY)
        sampling = share if isinstance(share, float) and 0 < share < EVERY_OP else self.sampling
        lost = {
            name: value
            for name, value in (told.items() if isinstance(told, dict) else ())
            if name in _LOSSES and type(value) is type(getattr(self, name)) and 0 <= value <= MOST_IN_JSON
        }
        return replace(self, **lost, sampling=sampling)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallNode:
    """One path of the call tree; `parent` is the index of the caller's node, -1 for a root."""

    parent: int
    name: str
    count: int
    total_ns: int
    self_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryChange:
    """What an allocator did in one event of kind `OpKind.MEMORY`."""

    address: int  # of the block; 0 if the request failed
    nbytes: int  # bytes taken; negative if given back
    total_allocated: int  # bytes that the allocator had given out by then; -1 for unknown
    total_reserved: int  # bytes that it held by then; -1 for unknown
    device_type: int  # torch's number of the kind of device; 0 for the host
    device_index: int  # which device of that kind; -1 for the host


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUse:
    """The memory that one step or a whole window took, without what was taken before."""

    allocated: int  # bytes taken
    freed: int  # how many of these bytes were given back
    peak: int  # the most of these bytes in use at once
    allocations: int


def name_threads(result: object) -> None:
    """Give the living threads of a native result their Python names."""
    names = {thread.native_id: thread.name for thread in threading.enumerate()}
    count = ffi.new("uint32_t *")
    rows = lib.op_result_threads(result, count)
    for i in range(count[0]):
        name = names.get(rows[i].os_tid)
        if name:
            whole_characters = name.encode("utf-8", "replace")[:_LONGEST_THREAD_NAME].decode(
                "utf-8", "ignore"
            )
            lib.op_result_name_thread(result, i, whole_characters.encode())
