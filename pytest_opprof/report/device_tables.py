"""One trace's devices as lines of text: collectives, overlap, idle time by cause, and memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_opprof.report.text import table
from pytest_opprof.units import format_bytes, format_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_opprof.analysis.collectives import Collective
    from pytest_opprof.analysis.device_time import DeviceTime
    from pytest_opprof.events.recording_view import RecordingView

_COLLECTIVES: Final = ("collective", "step", "start", "duration", "data", "ranks", "bandwidth", "bus")
_OVERLAP: Final = ("device", "step", "time", "compute", "communication", "overlapped", "exposed", "copies")
_IDLE: Final = (
    "device",
    "step",
    "idle",
    "launch-bound",
    "host",
    "synchronizing",
    "queued",
    "unknown",
    "for a collective",
)


def collective_lines(
    found: Sequence[Collective], numbers: Sequence[int], *, rows: int, width: int
) -> list[str]:
    """A line for each collective, or the first `rows`; `numbers` are those of the steps."""
    if not found:
        return ["no collectives: the trace has no kernels of NCCL or RCCL"]
    shown = found if rows < 0 else found[:rows]
    cells = [
        [
            f"{one.name} {one.group}".rstrip(),
            str(numbers[one.step]) if one.step >= 0 else "",
            format_duration(one.start_ns),
            format_duration(one.duration_ns),
            format_bytes(one.nbytes) if one.nbytes else "",
            str(one.group_size or ""),
            f"{format_bytes(one.algorithm_bandwidth)}/s" if one.nbytes else "",
            f"{format_bytes(one.bus_bandwidth)}/s" if one.nbytes and one.group_size else "",
        ]
        for one in shown
    ]
    more = [f"{len(found) - len(shown):,} more; --rows -1 prints all"] if len(shown) < len(found) else []
    known = (
        "" if any(one.nbytes for one in found) else ". The trace has no sizes: record with torch 2.4 or later"
    )
    return [
        *table(_COLLECTIVES, cells, width=width, names=0, right=_COLLECTIVES[1:]),
        *more,
        f"A collective's time includes the wait for the last rank, so its bandwidth is a lower bound{known}",
    ]


def overlap_lines(
    times: Sequence[tuple[int, Sequence[DeviceTime]]], numbers: Sequence[int], *, width: int
) -> list[str]:
    """A line for each device and step: computing, communicating, and both at once."""
    return _of_devices(_OVERLAP, times, numbers, _overlap, width=width)


def _overlap(one: DeviceTime) -> list[str]:
    return [
        *map(format_duration, (one.span_ns, one.compute_ns, one.communication_ns)),
        f"{one.overlap_ns / one.communication_ns:.0%}" if one.communication_ns else "",
        *map(format_duration, (one.exposed_communication_ns, one.copy_ns)),
    ]


def idle_lines(
    times: Sequence[tuple[int, Sequence[DeviceTime]]], numbers: Sequence[int], *, width: int
) -> list[str]:
    """A line for each device and step: how long nothing ran, and why."""
    return _of_devices(_IDLE, times, numbers, _idle, width=width)


def _idle(one: DeviceTime) -> list[str]:
    causes = (one.launch_bound_ns, one.host_ns, one.synchronize_ns, one.queued_ns, one.unknown_ns)
    return list(map(format_duration, (one.idle_ns, *causes, one.exposed_communication_ns)))


def peak_memory_lines(recording: RecordingView, peaks: dict[tuple[int, int], tuple[int, int]]) -> list[str]:
    """A line for each device with allocator reports."""
    if not peaks:
        events = f"none of the trace's {len(recording):,} events is a [memory] event"
        return [f"peak memory unknown: {events}; record with profile_memory"]
    return [
        f"peak memory of {'the host' if not kind else f'device {index}'}: {format_bytes(allocated)} allocated"
        + (f", {format_bytes(reserved)} reserved" if reserved > 0 else "")
        for (kind, index), (allocated, reserved) in sorted(peaks.items())
    ]


def _of_devices(
    titles: Sequence[str],
    times: Sequence[tuple[int, Sequence[DeviceTime]]],
    numbers: Sequence[int],
    cells_of: Callable[[DeviceTime], list[str]],
    *,
    width: int,
) -> list[str]:
    cells = [
        [str(device), step, *cells_of(one)]
        for device, steps in times
        for step, one in zip(map(str, numbers) if numbers else [""], steps, strict=True)
    ]
    if not cells:
        return ["no device: the trace has no kernels, copies or fills"]
    return table(titles, cells, width=width, names=0, right=titles[1:])
