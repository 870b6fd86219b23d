"""One step of a trace, event by event: what a timeline is drawn from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from pytest_opprof.capture.op_kind import OpKind

if TYPE_CHECKING:
    from pytest_opprof.capture.window import StepInfo, ThreadInfo
    from pytest_opprof.traces.imported_recording import ImportedRecording
    from pytest_opprof.traces.kineto import TraceFile

_CALLS = frozenset({OpKind.PYTHON_CALL, OpKind.C_CALL, OpKind.RUNTIME, OpKind.DRIVER, OpKind.SYNC})


class SliceKind(StrEnum):
    """What a slice of a timeline is."""

    OP = "op"
    RANGE = "range"
    CALL = "call"
    DEVICE = "device"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """One event of a step.

    Attributes:
        lane: its place in `StepEvents.lanes`.
        depth: how many events of the step are around it; on a device none are.
        name: the op's, or the kernel's.
        start_ns: from the step's begin, nanoseconds; below 0 for what was running then.
        duration_ns: nanoseconds.
        kind: what it is.
    """

    lane: int
    depth: int
    name: str
    start_ns: int
    duration_ns: int
    kind: SliceKind


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEvents:
    """What ran in a step.

    Attributes:
        number: the step's, as the schedule counts; None where a trace without steps is shown whole.
        duration_ns: of the step, and of what it launched where that ended later; nanoseconds.
        lanes: threads and streams, by name.
        slices: lane by lane, each lane in the order of time, what is around before what is inside.
        left_out: events that there was no room for: the shortest.
    """

    number: int | None
    duration_ns: int
    lanes: tuple[str, ...]
    slices: tuple[Slice, ...]
    left_out: int


def first_step(trace: TraceFile, *, most: int) -> StepEvents:
    """The first step of a trace, or the whole of one that has none.

    Args:
        trace: what was read.
        most: events that are taken; of more, the longest.
    """
    recording = trace.recording
    step: StepInfo | None = recording.steps[0] if recording.steps else None
    mine = _events_of(recording, step)
    start_ns = min((recording.start_ns[event] for event in mine), default=0)
    if step is not None:
        start_ns = step.start_ns - recording.trace_start_ns
    end_ns = max(
        (recording.start_ns[event] + recording.duration_ns[event] for event in mine), default=start_ns
    )
    longest = sorted(mine, key=lambda event: -recording.duration_ns[event])[:most]
    kept = sorted(longest)
    threads = sorted({recording.thread[event] for event in kept})
    lanes = {thread: lane for lane, thread in enumerate(threads)}
    return StepEvents(
        number=None if step is None else step.number,
        duration_ns=max(end_ns - start_ns, 1),
        lanes=tuple(_lane_name(recording.threads[thread]) for thread in threads),
        slices=_slices(recording, kept, lanes=lanes, start_ns=start_ns),
        left_out=len(mine) - len(kept),
    )


def _events_of(recording: ImportedRecording, step: StepInfo | None) -> list[int]:
    """The events that ended; of a step, its own."""
    return [
        event
        for event, (duration, number) in enumerate(zip(recording.duration_ns, recording.step, strict=True))
        if duration >= 0 and (step is None or number == 0)
    ]


def _slices(
    recording: ImportedRecording, events: list[int], *, lanes: dict[int, int], start_ns: int
) -> tuple[Slice, ...]:
    depths: dict[int, int] = {}
    slices = []
    for event in events:
        # What is around an event is longer than it, so it was kept too, unless it is of no step.
        depths[event] = depths.get(recording.parent[event], -1) + 1
        slices.append(
            Slice(
                lane=lanes[recording.thread[event]],
                depth=depths[event],
                name=recording.name(event),
                start_ns=recording.start_ns[event] - start_ns,
                duration_ns=recording.duration_ns[event],
                kind=_kind(recording.kind[event]),
            )
        )
    return tuple(sorted(slices, key=lambda one: one.lane))


def _kind(number: int) -> SliceKind:
    kind = OpKind(number)
    if kind is OpKind.TORCH:
        return SliceKind.OP
    if kind.is_on_device and kind is not OpKind.SYNC:
        return SliceKind.DEVICE
    return SliceKind.CALL if kind in _CALLS else SliceKind.RANGE


def _lane_name(thread: ThreadInfo) -> str:
    if thread.device_type:
        return f"device {thread.device_index}, stream {thread.resource}"
    return thread.name or f"thread {thread.os_tid}"
