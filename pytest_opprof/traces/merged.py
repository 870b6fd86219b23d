"""Merge two traces into one for a reviewer, step beside step, with the differences marked.

Base and head are a process each, plus one for each device. After each step, the faster side waits for the
slower one. An op with more or fewer calls per step is marked by a suffix of its name (which viewers colour
by), a category, a colour of ``chrome://tracing`` and an argument. A third process lists the differences.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from pytest_opprof.capture.native import ffi, lib
from pytest_opprof.capture.native_calls import printable
from pytest_opprof.capture.trace_file import json_members, write_natively
from pytest_opprof.errors import DocumentError, StoreError
from pytest_opprof.events.device import DeviceType
from pytest_opprof.events.names import STEP_PREFIX
from pytest_opprof.traces.difference import OpDifference, TraceDifference, difference
from pytest_opprof.traces.imported_recording import ImportedRecording
from pytest_opprof.traces.kineto import TraceFile, load_trace
from pytest_opprof.units import format_duration

_MOST_LISTED: Final = 100
_MOST_TIMES: Final = 10
_LONGEST_NAME: Final = 200  # of an op in the list; its events have the whole name
_MOST_NS: Final = 1 << 61
_RISEN: Final = "terrible"  # red in chrome://tracing
_FALLEN: Final = "good"
_LIST: Final = 1  # the list's process, and its one thread
_NAMES: Final = ("base", "head")
_Key = tuple[str, bool, bool]  # an op's name, whether it ran on a device, and whether it is an annotation


def write_merged(
    base: TraceFile, head: TraceFile, path: str | os.PathLike[str], *, found: TraceDifference
) -> int:
    """Write base and head as one trace, replacing the path atomically; the number of marked ops.

    The collector writes it from the columns, without counters and without arrows other than those to devices,
    compressed if the path ends in ``.gz``. `found` is the `difference` of the two. Raises a `DocumentError`
    if the times of a trace are too far apart to be shown.
    """
    changed = [op for op in found.ops if op.base.count != op.head.count and not _is_step(op)]
    marks = {(op.name, op.is_on_device, op.is_annotation): _mark(op) for op in changed}
    traces = (base.recording, head.recording)
    points = _points(*traces)
    end_ns = max(_shown_end(*each) for each in zip(traces, points, strict=True))
    if end_ns >= _MOST_NS:
        raise DocumentError(f"{base.path} and {head.path}: their times are too far apart for one trace")
    pid, events = _LIST + 1, [*_label(_LIST, "differences", at=0), *_list(changed, found, end_ns=end_ns)]
    sides: list[dict[str, Any]] = []
    held: list[Any] = []  # keeps alive what the sides point to
    for name, recording, its_points in zip(_NAMES, traces, points, strict=True):
        places, labels = _places(recording, name, pid=pid)
        sides.append(_side(recording, marks, its_points, places, held))
        events += labels
        pid = max((process for process, _ in places), default=pid) + 1
    told = {"opprof_base": base.path, "opprof_head": head.path}
    metadata = {key: json.dumps(printable(str(value))) for key, value in told.items()}
    metadata["displayTimeUnit"] = json.dumps("ms")
    natives, members = ffi.new("op_trace_side[]", sides), json_members(metadata).encode()
    more = ",\n".join(map(json.dumps, events)).encode()
    try:
        write_natively(path, lambda file: lib.op_trace_write_sides(natives, len(sides), file, members, more))
    except OSError as error:
        raise StoreError(f"the merged trace cannot be written: {error}. Choose another place") from error
    return len(changed)


def merge_files(base: Path, head: Path, path: Path) -> int:
    """Read two traces and write them as one; see `write_merged`."""
    before, after = load_trace(base), load_trace(head)
    return write_merged(before, after, path, found=difference(before.recording, after.recording))


def _points(base: ImportedRecording, head: ImportedRecording) -> list[list[tuple[int, int]]]:
    """For each side, where its steps begin and where they are shown: aligned, and never earlier."""
    starts = [
        [step.start_ns - recording.trace_start_ns for step in recording.steps] for recording in (base, head)
    ]
    common = min(map(len, starts))
    if not common:
        return [[(0, 0)], [(0, 0)]]
    shown = [max(side[0] for side in starts)]
    gaps = [[late - early for early, late in pairwise(side[:common])] for side in starts]
    for gap in map(max, zip(*gaps, strict=True)):
        shown.append(shown[-1] + gap)
    return [list(zip(side[:common], shown, strict=True)) for side in starts]


def _shown_end(recording: ImportedRecording, points: Sequence[tuple[int, int]]) -> int:
    start, shown = points[-1]
    return shown + max(recording.trace_end_ns - start, 0)


def _is_step(op: OpDifference) -> bool:
    return op.name == f"{STEP_PREFIX[:-1]}*"


def _mark(op: OpDifference) -> dict[str, str]:
    """What marks an op's events: suffixes of name and category, a colour, and a member of the arguments."""
    rise = op.head.count - op.base.count
    word = "new" if not op.base.count else "gone" if not op.head.count else "more" if rise > 0 else "fewer"
    change = f"{rise:+.4g}"
    return {
        "label": f" [{word}]" if word in {"new", "gone"} else f" [{change}]",
        "category": f",opprof.{word}",
        "color": _RISEN if rise > 0 else _FALLEN,
        "args": f'"opprof": {json.dumps({**_figures(op), "change of calls": change})}',
    }


def _figures(op: OpDifference) -> Mapping[str, object]:
    """An op's figures on both sides, times in microseconds; per step if both traces have steps."""
    sides = {"base": op.base, "head": op.head}
    figures: dict[str, object] = {f"{name} calls": round(side.count, 4) for name, side in sides.items()}
    for name, side in sides.items():
        if not op.is_on_device:
            figures[f"{name} self CPU us"] = round(side.self_cpu_ns / 1000, 3)
        if op.base.self_device_ns or op.head.self_device_ns:
            figures[f"{name} device us"] = round(side.self_device_ns / 1000, 3)
    return figures


def _list(
    changed: Sequence[OpDifference], found: TraceDifference, *, end_ns: int
) -> Iterator[Mapping[str, object]]:
    """One slice per op: those whose count changed, then those whose time changed most."""
    counted = set(map(id, changed))
    times = [op for op in found.ops if op.change_ns and id(op) not in counted and not _is_step(op)]
    shown = [*changed[:_MOST_LISTED], *times[:_MOST_TIMES]]
    width_us = max(end_ns / 1000 / max(len(shown), 1), 1)
    for number, op in enumerate(shown):
        is_counted = id(op) in counted
        yield {
            "ph": "X",
            "cat": "opprof.difference",
            "name": _calls(op) if is_counted else _times(op),
            "pid": _LIST,
            "tid": _LIST,
            "ts": round(number * width_us, 3),
            "dur": round(width_us * 0.99, 3),  # leaves a gap, even after rounding
            **({"cname": _RISEN if op.head.count > op.base.count else _FALLEN} if is_counted else {}),
            "args": _figures(op),
        }
    more = f", and {len(changed) - _MOST_LISTED} more" if len(changed) > _MOST_LISTED else ""
    yield _metadata("thread_name", _LIST, _LIST, name=f"ops{more}")


def _calls(op: OpDifference) -> str:
    return f"{printable(op.name)[:_LONGEST_NAME]}: {op.base.count:.4g} -> {op.head.count:.4g} calls"


def _times(op: OpDifference) -> str:
    base, head = (side.self_device_ns if op.is_on_device else side.self_cpu_ns for side in (op.base, op.head))
    return f"{printable(op.name)[:_LONGEST_NAME]}: {format_duration(base)} -> {format_duration(head)}"


def _places(
    recording: ImportedRecording, side: str, *, pid: int
) -> tuple[list[tuple[int, int]], list[Mapping[str, object]]]:
    """Each thread's process and number, and the events that name them; devices come after the host.

    Thread numbers differ between the sides, so that no viewer merges two threads.
    """
    devices = sorted({(one.device_type, one.device_index) for one in recording.threads if one.device_type})
    pids = {device: pid + number for number, device in enumerate(devices, start=1)}
    labels = _label(pid, side, at=pid)
    kinds = {int(device): device.name for device in DeviceType}
    for (kind, index), its_pid in pids.items():
        labels += _label(its_pid, f"{side}: {kinds.get(kind, f'device {kind}')} {index}", at=its_pid)
    places = []
    for number, thread in enumerate(recording.threads, start=1):
        its_pid = pids.get((thread.device_type, thread.device_index), pid)
        tid = pid * 1_000_000 + number
        name = f"stream {thread.resource}" if thread.device_type else f"thread {thread.os_tid}"
        labels.append(_metadata("thread_name", its_pid, tid, name=printable(thread.name) or name))
        labels.append(_metadata("thread_sort_index", its_pid, tid, sort_index=number))
        places.append((its_pid, tid))
    return places, labels


def _label(pid: int, name: str, *, at: int) -> list[Mapping[str, object]]:
    return [
        _metadata("process_name", pid, 0, name=name),
        _metadata("process_sort_index", pid, 0, sort_index=at),
    ]


def _metadata(what: str, pid: int, tid: int, **args: object) -> Mapping[str, object]:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "ts": 0, "args": args}


def _side(
    recording: ImportedRecording,
    marks: Mapping[_Key, Mapping[str, str]],
    points: Sequence[tuple[int, int]],
    places: Sequence[tuple[int, int]],
    held: list[Any],
) -> dict[str, Any]:
    """The members of an ``op_trace_side``.

    A time between two points moves with the earlier one, so an event across a gap gets longer.
    """

    def keep(kind: str, value: Any) -> Any:
        held.append(ffi.new(kind, value))
        return held[-1]

    slots: dict[_Key, int] = {
        (group.name, bool(group.device_type), group.is_user_annotation): lib.op_trace_mark_slot(
            lib.op_name_group(recording.name_id[group.first_event]),
            bool(group.device_type),
            group.is_user_annotation,
        )
        for group in recording.groups()
    }
    wanted = {slots[key]: number for number, key in enumerate(marks, start=1) if key in slots}
    mark_of = keep("uint32_t[]", max(wanted, default=0) + 1)
    for slot, number in wanted.items():
        mark_of[slot] = number
    texts = [
        {member: keep("char[]", text.encode("ascii")) for member, text in mark.items()}
        for mark in marks.values()
    ]
    return {
        "result": recording.native,
        "mark_of": mark_of,
        "mark_slots": len(mark_of),
        "marks": keep("op_trace_mark[]", texts),
        "from_ns": keep("int64_t[]", [at for at, _ in points]),
        "to_ns": keep("int64_t[]", [shown for _, shown in points]),
        "points": len(points),
        "pids": keep("int64_t[]", [pid for pid, _ in places]),
        "tids": keep("int64_t[]", [tid for _, tid in places]),
    }
