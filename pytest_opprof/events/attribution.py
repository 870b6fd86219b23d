"""Attribute device work to the innermost op or range that launched it, and to all events around that."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pytest_opprof.capture.event_flags import FLAG_ASYNC
from pytest_opprof.events.recording_view import RecordingView
from pytest_opprof.kinds import DEVICE_WORK, EventKind

# Calls of a device's runtime launch on behalf of the op around them.
CALLS: Final = frozenset({EventKind.RUNTIME, EventKind.DRIVER})


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceWork:
    """The device work that each event of a recording launched.

    Attributes:
        launched: Device rows by the row of the op or range that launched them, in column order.
        self_ns: By row, the time of the device work that the event launched itself.
        total_ns: By row, `self_ns` of the event and of all events inside it.
    """

    launched: dict[int, list[int]]
    self_ns: array[int]
    total_ns: array[int]


def launching_op(recording: RecordingView, row: int) -> int:
    """The op or range that launched a device row, possibly by a runtime call; -1 if unknown."""
    op = recording.launcher[row]
    while op >= 0 and recording.kind[op] in CALLS:
        op = recording.parent[op]
    return op


def device_work(recording: RecordingView) -> DeviceWork:
    """Assign each kernel, copy and fill to the op or range that launched it."""
    launched: defaultdict[int, list[int]] = defaultdict(list)
    self_ns = array("q", [0]) * len(recording)
    for row, kind in enumerate(recording.kind):
        if kind in DEVICE_WORK and (op := launching_op(recording, row)) >= 0:
            launched[op].append(row)
            self_ns[op] += max(recording.duration_ns[row], 0)
    return DeviceWork(launched=dict(launched), self_ns=self_ns, total_ns=with_inner(recording, self_ns))


def with_inner(recording: RecordingView, own: Sequence[int]) -> array[int]:
    """By row, its own amount plus those of all rows inside it. An async row is inside no other."""
    total = array("q", own)
    # Within a thread, a parent's row comes before its children's.
    for row in range(len(own) - 1, -1, -1):
        parent = recording.parent[row]
        if parent >= 0 and not recording.flags[row] & FLAG_ASYNC:
            total[parent] += total[row]
    return total
