"""Events summed up by name in Python, for recordings that are not in the collector's memory."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from pytest_opprof.capture.event_flags import (
    FLAG_ASYNC,
    FLAG_BACKGROUND,
    FLAG_CREDITED,
    FLAG_VIEW,
    USER_SCOPE,
)
from pytest_opprof.capture.op_groups import OpGroup
from pytest_opprof.events.attribution import DeviceWork, device_work
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
    work = device_work(recording)
    groups: defaultdict[tuple[object, ...], dict[int, dict[str, int]]] = defaultdict(dict)
    for row in sorted(range(len(recording)), key=recording.start_ns.__getitem__):
        if not recording.flags[row] & FLAG_CREDITED:
            amounts = _amounts(recording, row, work) | {"counted_flops": counted_flops[row]}
            groups[_key(recording, row, by_inputs=by_inputs, by_values=by_values)][row] = amounts
    return [_group(recording, rows) for rows in groups.values()]


def _amounts(recording: RecordingView, row: int, work: DeviceWork) -> dict[str, int]:
    duration_ns = max(recording.duration_ns[row], 0)
    on_device = EventKind(recording.kind[row]).is_on_device
    return {
        "count": 1,
        "total_ns": 0 if on_device else duration_ns,
        "self_ns": 0 if on_device else recording.self_ns[row],
        "device_total_ns": duration_ns if on_device else work.total_ns[row],
        "self_device_ns": duration_ns if on_device else work.self_ns[row],
        "cpu_memory": recording.cpu_memory[row],
        "self_cpu_memory": recording.self_cpu_memory[row],
        "device_memory": recording.device_memory[row],
        "self_device_memory": recording.self_device_memory[row],
        "flops": recording.flops[row],
        "views": bool(recording.flags[row] & FLAG_VIEW),
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


def _group(recording: RecordingView, rows: Mapping[int, Mapping[str, int]]) -> OpGroup:
    """The sum of some rows' amounts, of which the first began first."""
    first = next(iter(rows))
    sums, of_steps = Counter[str](), [Counter[str]() for _ in recording.steps]
    for row, amounts in rows.items():
        sums.update(amounts)
        if recording.step[row] >= 0:
            of_steps[recording.step[row]].update(amounts)
    durations_ns = [max(recording.duration_ns[row], 0) for row in rows]
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
        steps={name: tuple(step[name] for step in of_steps) for name in _STEP_SUMS},
        **sums,
    )
