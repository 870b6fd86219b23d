"""The events of one recording: their order, nesting and device work, and an object for each."""

from __future__ import annotations

import functools
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from weakref import ref

from pytest_opprof.data_loss import losses_of_recording
from pytest_opprof.events.kineto_recording import RecordingView
from pytest_opprof.events.recorded_event import RecordedEvent
from pytest_opprof.events.stacks import Stacks
from pytest_opprof.kinds import DEVICE_WORK, FLAG_ASYNC, FLAG_CREDITED, EventKind

_FEW: Final = 1_000  # objects of events, before unreferenced ones are first removed
# Calls of a device's runtime launch on behalf of the op around them.
CALLS: Final = frozenset({EventKind.RUNTIME, EventKind.DRIVER})


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceWork:
    """The device work that each event of a recording launched."""

    # device rows by the row of the op or range that launched them, in column order
    launched: dict[int, list[int]]
    self_ns: array[int]  # by row, the time of the device work that the event launched itself
    total_ns: array[int]  # by row, `self_ns` of the event and of all events inside it


def launching_op(recording: RecordingView, row: int) -> int:
    """The op or range that launched a device row, possibly by a runtime call; -1 if unknown."""
    op = recording.launcher[row]
    while op >= 0 and recording.kind[op] in CALLS:
        op = recording.parent[op]
    return op


def device_work(recording: RecordingView) -> DeviceWork:
    """Assign device work to the innermost op or range that launched it, and to all events around that."""
    launched: defaultdict[int, list[int]] = defaultdict(list)
    self_ns = array("q", [0]) * len(recording)
    for row, kind in enumerate(recording.kind):
        if kind in DEVICE_WORK and (op := launching_op(recording, row)) >= 0:
            launched[op].append(row)
            self_ns[op] += max(recording.duration_ns[row], 0)
    total_ns = array("q", self_ns)
    # Within a thread, a parent's row comes before its children's. An async row is inside no other.
    for row in range(len(recording) - 1, -1, -1):
        parent = recording.parent[row]
        if parent >= 0 and not recording.flags[row] & FLAG_ASYNC:
            total_ns[parent] += total_ns[row]
    return DeviceWork(launched=dict(launched), self_ns=self_ns, total_ns=total_ns)


class Children:
    """The children of each row, computed from its `parent`: the row around it, or -1 for none."""

    def __init__(self, count: int, parent: Callable[[int], int]) -> None:
        self._first_child = array("q", [-1]) * count
        self._next_sibling = array("q", [-1]) * count
        for row in range(count - 1, -1, -1):
            outer = parent(row)
            if outer >= 0:
                self._next_sibling[row] = self._first_child[outer]
                self._first_child[outer] = row

    def of(self, row: int) -> Iterator[int]:
        """The rows directly inside one."""
        child = self._first_child[row]
        while child >= 0:
            yield child
            child = self._next_sibling[child]


class EventForest:
    """One recording's trees of events.

    An object exists only while it is referenced, so a recording of ten million events costs only its columns.
    Memory changes inside an op are part of the op's numbers; only those outside all ops are events.
    """

    def __init__(self, recording: RecordingView) -> None:
        self.recording: RecordingView = recording
        self._objects: dict[int, ref[RecordedEvent]] = {}
        self._swept_at = _FEW

    def __len__(self) -> int:
        # Only memory records can be hidden, so other recordings need no sorting to be counted.
        return len(self._order) if self.has_memory_records else len(self.recording)

    def event(self, index: int) -> RecordedEvent:
        """The event at an index into the columns; the same object as long as it is referenced."""
        objects = self._objects
        known = objects.get(index)
        event = None if known is None else known()
        if event is None:
            event = RecordedEvent(self, index)
            objects[index] = ref(event)
            if len(objects) > self._swept_at:
                # Unreferenced events are removed all at once: a callback for each would dominate its cost.
                self._objects = {at: known for at, known in objects.items() if known() is not None}
                self._swept_at = _FEW + 2 * len(self._objects)
        return event

    def index_at(self, position: int) -> int:
        """The index into the columns of the event at a position in start order."""
        return position if self._has_all_rows_in_order else self._order[position]

    def in_order(self) -> Iterator[RecordedEvent]:
        """The events in start order."""
        return map(self.event, range(len(self)) if self._has_all_rows_in_order else self._order)

    def parent(self, index: int) -> int:
        """The index of the event around one; -1 for none, and for an async event, which may outlive it."""
        return -1 if self.recording.flags[index] & FLAG_ASYNC else self.recording.parent[index]

    def children(self, index: int) -> list[RecordedEvent]:
        """The events directly inside one."""
        return [self.event(child) for child in self._children.of(index)]

    @functools.cached_property
    def has_memory_records(self) -> bool:
        """Whether any allocation or free was recorded."""
        return EventKind.MEMORY in bytes(self.recording.kind)

    @functools.cached_property
    def device_work(self) -> DeviceWork | None:
        """The device work that each event launched; None if no device was profiled."""
        return device_work(self.recording) if self.recording.use_device else None

    def is_shown(self, index: int) -> bool:
        """Whether a row of the columns is an event of its own, not a memory record of an op."""
        return not self.recording.flags[index] & FLAG_CREDITED

    @functools.cached_property
    def _has_all_rows_in_order(self) -> bool:
        return len(self.recording.threads) <= 1 and not self.has_memory_records

    @functools.cached_property
    def _order(self) -> array[int]:
        rows: Sequence[int] = range(len(self.recording))
        if self.has_memory_records:
            rows = [row for row in rows if self.is_shown(row)]
        # Each thread is in order already, so the sort only merges, and a parent stays first.
        return array("q", sorted(rows, key=self.recording.start_ns.__getitem__))

    @functools.cached_property
    def stacks(self) -> Stacks:
        """The stacks of the events."""
        return Stacks(self.recording)

    @functools.cached_property
    def _children(self) -> Children:
        return Children(len(self.recording), lambda row: self.parent(row) if self.is_shown(row) else -1)


def losses_of(forests: Sequence[EventForest]) -> list[str]:
    """A sentence for each thing that the recordings are known to lack, for the notes of a table."""
    stats = [forest.recording.stats for forest in forests]
    notes = losses_of_recording(
        dropped=sum(each.dropped for each in stats),
        truncated=any(each.truncated for each in stats),
        names_overflowed=sum(each.names_overflowed for each in stats),
        sampling=min((each.sampling for each in stats), default=1.0),
    )
    torn = sum(each.device_dropped for each in stats)
    gap = [f"CUDA is incomplete: {torn} device records were dropped"] if torn else []
    if any(each.device_partial for each in stats):
        gap.append("CUDA is incomplete: CUPTI delivered only some of the device records")
    return [*notes, *gap]
