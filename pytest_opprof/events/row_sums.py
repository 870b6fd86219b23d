"""Events summed up by name in Python, for recordings that are not in the collector's memory."""

from __future__ import annotations

from collections.abc import Sequence

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


class _Group:
    """Sums of one key while they grow."""

    def __init__(self, first: int, steps: int) -> None:
        self.first = first
        self.sums: dict[str, int] = {}
        self.of_step = {name: [0] * steps for name in _STEP_SUMS}
        self.shortest: int | None = None
        self.longest = 0

    def add(self, amounts: dict[str, int], *, duration_ns: int, step: int) -> None:
        for name, amount in amounts.items():
            self.sums[name] = self.sums.get(name, 0) + amount
            if step >= 0 and name in self.of_step:
                self.of_step[name][step] += amount
        self.shortest = duration_ns if self.shortest is None else min(self.shortest, duration_ns)
        self.longest = max(self.longest, duration_ns)


def sum_up(
    recording: RecordingView, counted_flops: Sequence[int], *, by_inputs: bool, by_values: bool
) -> list[OpGroup]:
    """The rows of `RecordingView.groups`, as the native collector makes them of its own columns.

    Args:
        counted_flops: Of each event the FLOPs that no event around it has too.
        by_inputs: Events whose inputs differ in shape are apart.
        by_values: Events whose inputs differ in anything are apart.
    """
    rows = [row for row, flags in enumerate(recording.flags) if not flags & FLAG_CREDITED]
    rows.sort(key=recording.start_ns.__getitem__)
    work = device_work(recording)
    groups: dict[tuple[object, ...], _Group] = {}
    for row in rows:
        key = _key(recording, row, by_inputs=by_inputs, by_values=by_values)
        group = groups.get(key)
        if group is None:
            group = groups[key] = _Group(row, len(recording.steps))
        duration_ns = max(recording.duration_ns[row], 0)
        on_device = EventKind(recording.kind[row]).is_on_device
        amounts = {
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
            "counted_flops": counted_flops[row],
            "views": bool(recording.flags[row] & FLAG_VIEW),
        }
        group.add(amounts, duration_ns=duration_ns, step=recording.step[row])
    return [_finished(recording, group) for group in groups.values()]


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


def _finished(recording: RecordingView, group: _Group) -> OpGroup:
    first = group.first
    return OpGroup(
        name=recording.row_name(first),
        kind=EventKind(recording.kind[first]),
        scope=recording.scope[first],
        is_user_annotation=_is_annotation(recording, first),
        background=bool(recording.flags[first] & FLAG_BACKGROUND),
        is_async=bool(recording.flags[first] & FLAG_ASYNC),
        device_type=recording.threads[recording.thread[first]].device_type,
        min_ns=group.shortest or 0,
        max_ns=group.longest,
        first_event=first,
        args_event=first,
        sums=group.sums,
        steps={column: tuple(values) for column, values in group.of_step.items()},
        **group.sums,
    )
