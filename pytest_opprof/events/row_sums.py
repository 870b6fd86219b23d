"""Events summed up by name in Python, for recordings that are not in the collector's memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from pytest_opprof.capture.event_flags import (
    FLAG_ASYNC,
    FLAG_BACKGROUND,
    FLAG_CREDITED,
    FLAG_VIEW,
    USER_SCOPE,
)
from pytest_opprof.capture.op_groups import OpGroup
from pytest_opprof.events.attribution import device_work
from pytest_opprof.events.recording_view import RecordingView
from pytest_opprof.kinds import EventKind

_STEP_SUMS = (
    "count",
    "total_ns",
    "self_ns",
    "device_total_ns",
    "self_device_ns",
    "cpu_memory",
    "flops",
    "counted_flops",
    "device_memory",
    "views",
)


def sum_up(
    recording: RecordingView, counted_flops: Sequence[int], *, by_inputs: bool, by_values: bool
) -> list[OpGroup]:
    """The rows of `RecordingView.groups`, as the native collector makes them of its own columns.

    Args:
        counted_flops: Of each event the FLOPs that no event around it has too.
        by_inputs: Events whose inputs differ in shape are apart.
        by_values: Events whose inputs differ in anything are apart.
    """
    columns = _columns(recording, counted_flops)
    groups: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
    for row in sorted(range(len(recording)), key=recording.start_ns.__getitem__):
        if not recording.flags[row] & FLAG_CREDITED:
            groups[_key(recording, row, by_inputs=by_inputs, by_values=by_values)].append(row)
    return [_group(recording, columns, rows) for rows in groups.values()]


def _columns(recording: RecordingView, counted_flops: Sequence[int]) -> dict[str, Sequence[int]]:
    """What is added up, of each event."""
    work = device_work(recording)
    durations_ns = [max(time, 0) for time in recording.duration_ns]
    on_device = [EventKind(kind).is_on_device for kind in recording.kind]

    def of_host(times: Sequence[int]) -> list[int]:
        return [0 if is_device else time for is_device, time in zip(on_device, times, strict=True)]

    def of_device(times: Sequence[int]) -> list[int]:
        own = zip(on_device, durations_ns, times, strict=True)
        return [duration if is_device else time for is_device, duration, time in own]

    return {
        "count": [1] * len(recording),
        "total_ns": of_host(durations_ns),
        "self_ns": of_host(recording.self_ns),
        "device_total_ns": of_device(work.total_ns),
        "self_device_ns": of_device(work.self_ns),
        "cpu_memory": recording.cpu_memory,
        "self_cpu_memory": recording.self_cpu_memory,
        "device_memory": recording.device_memory,
        "self_device_memory": recording.self_device_memory,
        "flops": recording.flops,
        "counted_flops": counted_flops,
        "views": [bool(flags & FLAG_VIEW) for flags in recording.flags],
    }


def _key(recording: RecordingView, row: int, *, by_inputs: bool, by_values: bool) -> tuple[object, ...]:
    inputs = recording.inputs(row) if by_inputs or by_values else None
    return (
        recording.row_name(row),
        _is_annotation(recording, row),
        bool(recording.flags[row] & FLAG_BACKGROUND),
        recording.threads[recording.thread[row]].device_type,
        str(inputs if by_values or inputs is None else inputs.shapes),
    )


def _is_annotation(recording: RecordingView, row: int) -> bool:
    return recording.scope[row] == USER_SCOPE or recording.kind[row] == EventKind.DEVICE_RANGE


def _group(recording: RecordingView, columns: Mapping[str, Sequence[int]], rows: Sequence[int]) -> OpGroup:
    """The sum of some rows, in the order in which they began."""
    first = rows[0]
    of_steps: list[list[int]] = [[] for _ in recording.steps]
    for row in rows:
        if recording.step[row] >= 0:
            of_steps[recording.step[row]].append(row)
    durations_ns = [max(recording.duration_ns[row], 0) for row in rows]
    sums = {name: sum(map(column.__getitem__, rows)) for name, column in columns.items()}
    return OpGroup(
        name=recording.row_name(first),
        kind=EventKind(recording.kind[first]),
        scope=recording.scope[first],
        is_user_annotation=_is_annotation(recording, first),
        background=bool(recording.flags[first] & FLAG_BACKGROUND),
        is_async=bool(recording.flags[first] & FLAG_ASYNC),
        device_type=recording.threads[recording.thread[first]].device_type,
        min_ns=min(durations_ns),
        max_ns=max(durations_ns),
        first_event=first,
        args_event=first,
        sums=sums,
        steps={
            name: tuple(sum(map(columns[name].__getitem__, step)) for step in of_steps) for name in _STEP_SUMS
        },
        **sums,
    )
