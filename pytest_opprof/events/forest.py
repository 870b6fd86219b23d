"""The events of one recording: their order in time, who is inside whom, and one object for each."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from pytest_opprof.capture.recording import FLAG_ASYNC, FLAG_CREDITED, OpKind
from pytest_opprof.events.function_event import FunctionEvent

if TYPE_CHECKING:
    from pytest_opprof.events.recording_view import RecordingView


class EventForest:
    """One recording's trees of events.

    Nothing is made before it is asked for, and nothing is kept that nobody holds: a recording of ten million
    events costs a Python program its columns and no more. What an op's memory is made of is no event here:
    it is in the op's numbers. Memory taken or given back outside of all ops is.

    Attributes:
        recording: The columns.
    """

    __slots__ = ("_first_child", "_next_sibling", "_objects", "_order", "recording")

    def __init__(self, recording: RecordingView) -> None:
        self.recording = recording
        self._objects: WeakValueDictionary[int, FunctionEvent] = WeakValueDictionary()
        self._order: array[int] | None = None
        self._first_child: array[int] | None = None
        self._next_sibling: array[int] | None = None

    def __len__(self) -> int:
        order = self._shown
        return len(self.recording) if order is None else len(order)

    def event(self, index: int) -> FunctionEvent:
        """The event of one index into the columns; always the same object while somebody holds it."""
        event = self._objects.get(index)
        if event is None:
            event = self._objects[index] = FunctionEvent(self, index)
        return event

    def index_at(self, position: int) -> int:
        """The index into the columns of the event that was the position-th to begin."""
        order = self._shown
        return position if order is None else order[position]

    @property
    def _shown(self) -> array[int] | None:
        """The indexes of the events in the order in which they began; None where that is 0, 1, 2..."""
        if self._order is None:
            recording = self.recording
            has_memory = OpKind.MEMORY in bytes(recording.kind)
            if len(recording.threads) <= 1 and not has_memory:
                return None
            flags = bytes(recording.flags)
            shown = (index for index in range(len(recording)) if not flags[index] & FLAG_CREDITED)
            # Each thread is in order already, so that the sort only merges, and a parent stays first.
            self._order = array("q", sorted(shown, key=recording.start_ns.__getitem__))
        return self._order

    def in_order(self) -> Iterator[FunctionEvent]:
        """The events in the order in which they began."""
        for position in range(len(self)):
            yield self.event(self.index_at(position))

    def parent(self, index: int) -> int:
        """The index of the event around one, -1 for none: an async event outlives what it began in."""
        return -1 if self.recording.flags[index] & FLAG_ASYNC else self.recording.parent[index]

    def children(self, index: int) -> list[FunctionEvent]:
        """The events directly inside one."""
        if self._first_child is None or self._next_sibling is None:
            self._first_child, self._next_sibling = self._linked()
        children = []
        child = self._first_child[index]
        while child >= 0:
            children.append(self.event(child))
            child = self._next_sibling[child]
        return children

    def _linked(self) -> tuple[array[int], array[int]]:
        """The parent column turned round: each event's first child, and the next child of its parent."""
        count = len(self.recording)
        first_child = array("q", [-1]) * count
        next_sibling = array("q", [-1]) * count
        for index in range(count - 1, -1, -1):
            parent = self.parent(index)
            if parent >= 0 and not self.recording.flags[index] & FLAG_CREDITED:
                next_sibling[index] = first_child[parent]
                first_child[parent] = index
        return first_child, next_sibling


def losses(forests: Sequence[EventForest]) -> list[str]:
    """What the recordings are known to lack, a sentence each: a table that is incomplete says so."""
    dropped = sum(forest.recording.stats.dropped for forest in forests)
    notes = [f"Events not recorded: {dropped} (they are missing from this table)"] if dropped else []
    if any(forest.recording.stats.truncated for forest in forests):
        notes.append("The recording was cut off when its byte budget was used up")
    return notes
