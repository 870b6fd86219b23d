"""Which event device work belongs to, worked out from a recording's columns.

It belongs to the innermost op or range that launched it, and through that one to all around it.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pytest_opprof.capture.event_flags import FLAG_ASYNC
from pytest_opprof.events.recording_view import RecordingView
from pytest_opprof.kinds import EventKind

# Calls of a device's runtime launch for the op around them.
CALLS: Final = frozenset({EventKind.RUNTIME, EventKind.DRIVER})
_WORK: Final = frozenset({EventKind.KERNEL, EventKind.MEMCPY, EventKind.MEMSET})


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceWork:
    """What each event of a recording launched.

    Attributes:
        launched: Rows of the columns by the row that launched them itself, in order of the columns.
        self_ns: Time of what each event launched itself.
        total_ns: The same with what was launched inside it.
    """

    launched: dict[int, list[int]]
    self_ns: array[int]
    total_ns: array[int]


def launching_op(recording: RecordingView, row: int) -> int:
    """The op or range that launched a row of a device or called a device's runtime; -1 for none known."""
    op = recording.launcher[row]
    while op >= 0 and recording.kind[op] in CALLS:
        op = recording.parent[op]
    return op


def device_work(recording: RecordingView) -> DeviceWork:
    """Give each kernel, copy and fill to what launched it."""
    launched: defaultdict[int, list[int]] = defaultdict(list)
    self_ns = array("q", [0]) * len(recording)
    for row, kind in enumerate(recording.kind):
        if kind in _WORK and (op := launching_op(recording, row)) >= 0:
            launched[op].append(row)
            self_ns[op] += max(recording.duration_ns[row], 0)
    return DeviceWork(launched=dict(launched), self_ns=self_ns, total_ns=with_inner(recording, self_ns))


def with_inner(recording: RecordingView, own: Sequence[int]) -> array[int]:
    """Each row's own amount and those of all rows inside it."""
    total = array("q", own)
    # Within a thread a parent comes before what is inside it.
    for row in range(len(own) - 1, -1, -1):
        parent = recording.parent[row]
        if parent >= 0 and not recording.flags[row] & FLAG_ASYNC:
            total[parent] += total[row]
    return total
