"""Traces as lines of text: steps, devices, and a comparison op by op."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from pytest_opprof.report.text import Line, Style, escaped, table
from pytest_opprof.units import format_bytes, format_duration, format_share
from pytest_opprof.wording import counted

if TYPE_CHECKING:
    from pytest_opprof.analysis.collectives import Collective
    from pytest_opprof.analysis.device_time import DeviceTime
    from pytest_opprof.events.kineto_recording import RecordingView
    from pytest_opprof.traces.difference import OpDifference, TraceDifference
    from pytest_opprof.traces.kineto import TraceFile

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
_TITLES = ("op", "calls", "self CPU", "device", "change")


def trace_title(trace: TraceFile) -> Line:
    """The file and its contents."""
    return recording_title(str(trace.path), trace.recording)


def unread_lines(trace: TraceFile) -> Iterator[Line]:
    """That events which look like work are missing from the tables, if any are."""
    if count := trace.recording.unread_events:
        what = counted(count, "event is not understood", "events are not understood")
        why = "the category, ts or dur is not as torch.profiler writes it"
        yield Line(f"{escaped(str(trace.path))}: {what} and left out: {why}", Style.WARN)


def recording_title(name: str, recording: RecordingView) -> Line:
    """The sources and size of a recording."""
    on_device = {
        (thread.device_type, thread.device_index) for thread in recording.threads if thread.device_type
    }
    threads = sum(not thread.device_type for thread in recording.threads)
    parts = [
        f"{len(recording):,} events",
        counted(threads, "thread"),
        *([counted(len(on_device), "device")] if on_device else []),
        *([counted(len(recording.steps), "step")] if recording.steps else []),
        format_duration(recording.trace_end_ns),
        *([f"{format_share(sampling)} of the ops"] if (sampling := recording.stats.sampling) < 1 else []),
    ]
    return Line(f"{escaped(name)}: {', '.join(parts)}", Style.BOLD)


def step_lines(trace: TraceFile, *, width: int) -> list[str]:
    """A line for each step: its begin, duration and events."""
    recording = trace.recording
    count = len(recording.steps)
    if not count:
        return ["no steps: the trace has no ProfilerStep# annotations"]
    events, host_ns, device_ns = [0] * count, [0] * count, [0] * count
    for group in recording.groups():
        for step in range(count):
            events[step] += group.steps["count"][step]
            host_ns[step] += group.steps["self_ns"][step]
            device_ns[step] += group.steps["self_device_ns"][step] if group.kind.is_work else 0
    rows = [
        [
            str(step.number),
            format_duration(step.start_ns - recording.trace_start_ns),
            format_duration(step.end_ns - step.start_ns),
            f"{events[at]:,}",
            format_duration(host_ns[at]),
            format_duration(device_ns[at]),
        ]
        for at, step in enumerate(recording.steps)
    ]
    titles = ("step", "start", "duration", "events", "self CPU", "device")
    return table(titles, rows, width=width, names=0, right=titles)


def difference_lines(found: TraceDifference, *, rows: int, width: int) -> Iterator[Line | str]:
    """The changes between two traces, the largest change of time first; all `rows` if negative."""
    changed = [op for op in found.ops if op.base != op.head]
    shown = changed if rows < 0 else changed[:rows]
    if found.base_steps:
        yield f"in each step, of {found.base_steps} and {found.head_steps}"
    else:
        yield "of the whole of each trace"
    if shown:
        yield from table(_TITLES, [_cells(op) for op in shown], width=width, names=0, right=_TITLES[1:])
    if any(op.is_collective and op.change_ns for op in shown):
        yield (
            "Collectives wait for the slowest rank, and a straggler waits the least: "
            "less time in them is not an improvement"
        )
    left_out = len(changed) - len(shown)
    same = len(found.ops) - len(changed)
    ends = [*([f"{left_out:,} more changed"] if left_out else []), f"{same:,} the same"]
    yield Line(" · ".join([f"{len(changed):,} of {len(found.ops):,} ops changed", *ends]), Style.DIM)


def _cells(op: OpDifference) -> list[str]:
    base, head = op.base, op.head
    sign = "-" if op.change_ns < 0 else "+"
    return [
        f"{op.name} (device)" if op.is_on_device else op.name,
        _arrow(f"{base.count:.6g}", f"{head.count:.6g}"),
        ""
        if op.is_on_device
        else _arrow(format_duration(base.self_cpu_ns), format_duration(head.self_cpu_ns)),
        _arrow(format_duration(base.self_device_ns), format_duration(head.self_device_ns))
        if base.self_device_ns or head.self_device_ns
        else "",
        f"{sign}{format_duration(abs(op.change_ns))}" + (" with waiting" if op.is_collective else ""),
    ]


def _arrow(before: str, after: str) -> str:
    return before if before == after else f"{before} → {after}"


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

    def cells(one: DeviceTime) -> list[str]:
        return [
            *map(format_duration, (one.span_ns, one.compute_ns, one.communication_ns)),
            f"{one.overlap_ns / one.communication_ns:.0%}" if one.communication_ns else "",
            *map(format_duration, (one.exposed_communication_ns, one.copy_ns)),
        ]

    return _of_devices(_OVERLAP, times, numbers, cells, width=width)


def idle_lines(
    times: Sequence[tuple[int, Sequence[DeviceTime]]], numbers: Sequence[int], *, width: int
) -> list[str]:
    """A line for each device and step: how long nothing ran, and why."""

    def cells(one: DeviceTime) -> list[str]:
        causes = (one.launch_bound_ns, one.host_ns, one.synchronize_ns, one.queued_ns, one.unknown_ns)
        return list(map(format_duration, (one.idle_ns, *causes, one.exposed_communication_ns)))

    return _of_devices(_IDLE, times, numbers, cells, width=width)


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
