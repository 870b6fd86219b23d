"""Write several traces as one, with each side's threads and times moved and some of its events marked."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_opprof.capture.native import ffi, lib
from pytest_opprof.capture.trace_file import json_members, write_natively
from pytest_opprof.traces.imported_recording import ImportedRecording

# An op's name, whether it ran on a device, and whether it is an annotation.
OpKey = tuple[str, bool, bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """How the events of one op are marked.

    Attributes:
        label: A suffix of their name, ASCII.
        category: A suffix of their category, ASCII.
        color: The name of a colour of ``chrome://tracing``; "" for its own choice.
        args: The member "opprof" of their arguments.
    """

    label: str
    category: str
    color: str
    args: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the traces.

    Attributes:
        points: Pairs of a time, nanoseconds from its start, and the time it is shown at; earliest first. A
            time between two points moves with the earlier one, so an event across a gap gets longer.
        places: By thread, the process and thread number it is shown under.
    """

    recording: ImportedRecording
    marks: Mapping[OpKey, Mark]
    points: Sequence[tuple[int, int]]
    places: Sequence[tuple[int, int]]


def write_side_by_side(
    sides: Sequence[Side],
    path: str | os.PathLike[str],
    *,
    metadata: Mapping[str, str],
    events: Iterable[Mapping[str, object]],
) -> None:
    """Write one trace of several, replacing the path atomically; compressed if it ends in ``.gz``.

    The collector writes it from the columns, without counters and without arrows other than those to devices.

    Args:
        metadata: Members of the trace's object, as JSON texts.
        events: More events, which are written first.

    Raises:
        OSError: The file cannot be written.
    """
    held: list[Any] = []  # keeps alive what the structures point to
    natives = ffi.new("op_trace_side[]", [_native(side, held) for side in sides])
    members = json_members(metadata).encode()
    more = ",\n".join(json.dumps(event) for event in events).encode()
    write_natively(path, lambda file: lib.op_trace_write_sides(natives, len(sides), file, members, more))


def _native(side: Side, held: list[Any]) -> dict[str, Any]:
    def keep(kind: str, value: Any) -> Any:
        held.append(ffi.new(kind, value))
        return held[-1]

    slots: dict[OpKey, int] = {
        (group.name, bool(group.device_type), group.is_user_annotation): lib.op_trace_mark_slot(
            side.recording.name_id[group.first_event], bool(group.device_type), group.is_user_annotation
        )
        for group in side.recording.groups()
    }
    wanted = {slots[key]: number for number, key in enumerate(side.marks, start=1) if key in slots}
    mark_of = keep("uint32_t[]", max(wanted, default=0) + 1)
    for slot, number in wanted.items():
        mark_of[slot] = number
    texts = [
        {
            "label": keep("char[]", mark.label.encode("ascii")),
            "category": keep("char[]", mark.category.encode("ascii")),
            "color": keep("char[]", mark.color.encode("ascii")),
            "args": keep("char[]", f'"opprof": {json.dumps(dict(mark.args))}'.encode("ascii")),
        }
        for mark in side.marks.values()
    ]
    held.append(side.recording)
    return {
        "result": side.recording.native,
        "mark_of": mark_of,
        "mark_slots": len(mark_of),
        "marks": keep("op_trace_mark[]", texts),
        "from_ns": keep("int64_t[]", [point[0] for point in side.points]),
        "to_ns": keep("int64_t[]", [point[1] for point in side.points]),
        "points": len(side.points),
        "pids": keep("int64_t[]", [pid for pid, _ in side.places]),
        "tids": keep("int64_t[]", [tid for _, tid in side.places]),
    }
