"""What a window has besides its events: threads, steps, calls that were open, losses."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, Final

from pytest_opprof.capture.names import name_text
from pytest_opprof.capture.native import ffi, lib
from pytest_opprof.capture.native_calls import text_at, value_of
from pytest_opprof.capture.sampling import EVERY_OP

_LONGEST_THREAD_NAME: Final = 15  # bytes; the system's limit, and the native side's


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadInfo:
    """A thread that recorded at least one event, or a stream of a device that ran one.

    Attributes:
        torch_thread: Torch's own number for it, as in `Recording.forward_thread`; 0 if it ran no op.
        device_type: Torch's number of the kind of device; 0 for the host.
        device_index: Which device of that kind; -1 for the host.
        resource: A device's stream.
    """

    index: int
    os_tid: int
    name: str
    torch_thread: int = 0
    device_type: int = 0
    device_index: int = -1
    resource: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StepInfo:
    """One step of the schedule.

    Attributes:
        number: As the schedule counts, from 0.
        start_ns: Nanoseconds since the epoch.
        end_ns: Nanoseconds since the epoch; the window's end for a step that was open then.
    """

    number: int
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCall:
    """A Python call that was open when its thread joined the window; it encloses the thread's events.

    Attributes:
        thread: Index into `Recording.threads`.
        line: Where it was when the thread joined; 0 if unknown.
        end_ns: When it ended, nanoseconds from `Recording.trace_start_ns`; -1 if it did not.
    """

    thread: int
    name: str
    line: int
    end_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingStats:
    """What was recorded, and what was lost.

    Attributes:
        dropped: Events without room; in a recovered recording at least so many.
        truncated: The byte budget or the disk ended the recording early.
        names: Distinct names known to this process.
        spilled_bytes: Written to the spill file.
        unmatched_ends: Ends whose begin is not on record, as for ranges begun before the window.
        names_overflowed: Events that share the name "(overflow)": the process had too many names.
        crash_recovery: Another process could have recovered the recording after a crash.
        sampling: The share of torch's ops that was recorded, drawn at random; 1 for all.
        uncounted_threads: Threads whose counters the kernel refused, though others' were opened, or whose
            counters the program closed.
        device_events: Recorded events of devices; 0 if CUDA was not recorded, as for all of the following.
        device_dropped: Records of CUDA's activities without room.
        device_untimed: Device events whose time is unknown.
        device_unlaunched: Device events whose launching call is not on record.
        device_overhead_ns: Time that CUPTI says it took for itself.
        device_partial: CUPTI delivered only a part: another profiler took it over, or it failed.
    """

    events: int
    dropped: int = 0
    truncated: bool = False
    threads: int
    names: int
    spilled_bytes: int = 0
    unmatched_ends: int = 0
    names_overflowed: int = 0
    crash_recovery: bool = False
    sampling: float = EVERY_OP
    uncounted_threads: int = 0
    device_events: int = 0
    device_dropped: int = 0
    device_untimed: int = 0
    device_unlaunched: int = 0
    device_overhead_ns: int = 0
    device_partial: bool = False


def read_threads(result: Any) -> tuple[ThreadInfo, ...]:
    """The threads of a native result, in the order of their first event."""
    count = ffi.new("uint32_t *")
    rows = lib.op_result_threads(result, count)
    return tuple(value_of(ThreadInfo, rows[i], index=i, name=text_at(rows[i].name)) for i in range(count[0]))


def read_steps(result: Any, *, trace_start_ns: int, trace_end_ns: int) -> tuple[StepInfo, ...]:
    """The steps of a native result, whose start and end are those of `Recording`."""
    count = ffi.new("uint32_t *")
    rows = lib.op_result_steps(result, count)
    return tuple(
        StepInfo(
            number=rows[i].number,
            start_ns=trace_start_ns + rows[i].start_ns,
            end_ns=trace_start_ns + (rows[i].end_ns if rows[i].end_ns >= 0 else trace_end_ns),
        )
        for i in range(count[0])
    )


def read_open_calls(result: Any) -> tuple[OpenCall, ...]:
    """The calls that were open when a native result began, thread by thread, outermost first."""
    count = ffi.new("uint32_t *")
    rows = lib.op_result_open_calls(result, count)
    return tuple(value_of(OpenCall, rows[i], name=name_text(rows[i].name)) for i in range(count[0]))


def read_stats(result: Any) -> RecordingStats:
    """What a native result recorded and lost."""
    native = ffi.new("op_stats *")
    lib.op_result_stats(result, native)
    return value_of(
        RecordingStats,
        native,
        truncated=bool(native.truncated),
        crash_recovery=bool(native.crash_recovery),
        uncounted_threads=native.uncounted,
        device_partial=native.cuda == lib.OP_CUDA_PARTIAL,
    )


def read_counted(result: Any) -> tuple[str, ...]:
    """The counters that the events of a native result have."""
    native = ffi.new("op_stats *")
    lib.op_result_stats(result, native)
    return tuple(text_at(lib.op_counter_name(number)) for number in native.counters[0 : native.counted])


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
