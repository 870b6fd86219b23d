"""How a device spent its time: computing, communicating, copying, or idle, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_opprof.kinds import EventKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_opprof.traces.imported_recording import ImportedRecording


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceTime:
    """One device's time in a window. All but `communication_ns` and `overlap_ns` add up to `span_ns`."""

    span_ns: int = 0  # the whole window
    communication_ns: int = 0  # collectives ran
    overlap_ns: int = 0  # collectives and computing kernels ran at once
    compute_ns: int = 0  # computing kernels ran
    exposed_communication_ns: int = 0  # collectives ran, but no computing kernel: it waited for a collective
    copy_ns: int = 0  # only copies and fills ran
    # nothing ran; the next work was not launched yet, and its thread was in ops and calls
    launch_bound_ns: int = 0
    host_ns: int = 0  # as `launch_bound_ns`, but the thread was in none: Python code, data loading
    synchronize_ns: int = 0  # as `launch_bound_ns`, but the thread waited for the device
    queued_ns: int = 0  # nothing ran; the next work was launched but had not begun
    unknown_ns: int = 0  # nothing ran, and the next work or its launch was not recorded

    @property
    def idle_ns(self) -> int:
        """The time in which nothing ran."""
        return self.launch_bound_ns + self.host_ns + self.synchronize_ns + self.queued_ns + self.unknown_ns


def device_times(
    recording: ImportedRecording, windows: Sequence[tuple[int, int]] = ()
) -> list[tuple[int, list[DeviceTime]]]:
    """Each device that did something, by torch's number, with its time in each window.

    A window is a start and an end, nanoseconds from the trace's start; by default each step, or the whole
    trace if it has no steps.
    """
    start = recording.trace_start_ns
    steps = [(step.start_ns - start, step.end_ns - start) for step in recording.steps]
    windows = windows or steps or [(0, recording.trace_end_ns)]
    spans = recording.device_spans(windows)
    devices = [span.pop("device") for span in spans]
    times = [DeviceTime(**span) for span in spans]
    return [(devices[at], times[at : at + len(windows)]) for at in range(0, len(spans), len(windows))]


def peak_memory(recording: ImportedRecording) -> dict[tuple[int, int], tuple[int, int]]:
    """Peak allocated and reserved bytes of each allocator, by torch's type and number of its device."""
    peaks: dict[tuple[int, int], tuple[int, int]] = {}
    for event, kind in enumerate(bytes(recording.kind)):
        change = recording.memory(event) if kind == EventKind.MEMORY else None
        if change is not None:
            place = change.device_type, change.device_index
            allocated, reserved = peaks.get(place, (0, 0))
            peaks[place] = max(allocated, change.total_allocated), max(reserved, change.total_reserved)
    return peaks
