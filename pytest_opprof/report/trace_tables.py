"""Traces of other tools as lines of text: steps, and a comparison op by op."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_opprof.report.text import Line, Style, escaped, table
from pytest_opprof.units import format_duration, format_share
from pytest_opprof.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_opprof.events.recording_view import RecordingView
    from pytest_opprof.traces.difference import OpDifference, TraceDifference
    from pytest_opprof.traces.kineto import TraceFile

_TITLES = ("op", "calls", "self CPU", "device", "change")


def trace_title(trace: TraceFile) -> Line:
    """The file and its contents."""
    return recording_title(str(trace.path), trace.recording)


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
