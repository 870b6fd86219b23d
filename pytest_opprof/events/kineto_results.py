"""What torch's ``profile.kineto_results`` is, of recordings of ours: for code that asks a profiler for it."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from pytest_opprof.capture.recording import Recording
from pytest_opprof.events.forest import Children, EventForest
from pytest_opprof.events.kineto_rows import RecordedKinetoEvent, recorded_events, torch_thread
from pytest_opprof.kinds import EventKind


class KinetoResults:
    """The events of a recording as torch's C++ code offers those of Kineto: flat, and as a tree.

    Nothing is made before it is asked for. Times are nanoseconds since the epoch.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._forest = EventForest(recording)

    def trace_start_ns(self) -> int:
        """When the window began."""
        return self._recording.trace_start_ns

    def events(self) -> Sequence[RecordedKinetoEvent]:
        """The events in the order of their start, as Kineto would have told of them."""
        return recorded_events(self._forest, begin_ns=self._recording.trace_start_ns)

    def experimental_event_tree(self) -> list[TreeEvent]:
        """The events that are in no other, in the order of their start.

        Unlike torch's tree, an op of a backward pass on a thread of its own is inside nothing.
        """
        return [TreeEvent(self._tree, row) for row in self._tree.roots()]

    @functools.cached_property
    def _tree(self) -> EventTree:
        return EventTree(self._forest, self._recording.trace_start_ns)


class EventTree:
    """Who is inside whom: on the host what ran in an event; of a call that launches, its work on a device.

    Attributes:
        begin_ns: When the window began.
        children: The rows directly inside one, or launched by it.
    """

    def __init__(self, forest: EventForest, begin_ns: int) -> None:
        self.forest = forest
        self.begin_ns = begin_ns
        self.children = Children(len(forest.recording), self.parent)

    def parent(self, row: int) -> int:
        """The row of the event around one, or of what launched it; -1 for none."""
        recording = self.forest.recording
        on_device = EventKind(recording.kind[row]).is_on_device
        return recording.launcher[row] if on_device else self.forest.parent(row)

    def roots(self) -> list[int]:
        """The rows that are in no other, in the order of their start."""
        recording = self.forest.recording
        rows = (row for row in range(len(recording)) if self.parent(row) < 0)
        return sorted(rows, key=recording.start_ns.__getitem__)


class TreeEvent:
    """An event of a tree, with the attributes of torch's ``_ProfilerEvent`` that say when and where it ran.

    Two are equal when they are the same event of the same tree.
    """

    __slots__ = ("_row", "_tree")

    def __init__(self, tree: EventTree, row: int) -> None:
        self._tree = tree
        self._row = row

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TreeEvent):
            return NotImplemented
        return self._row == other._row and self._tree is other._tree

    def __hash__(self) -> int:
        return hash((id(self._tree), self._row))

    def __repr__(self) -> str:
        return f"<TreeEvent {self.name!r} id={self.id}>"

    @property
    def id(self) -> int:
        """Its number, of which no other event of the tree has the same."""
        return self._row + 1

    @property
    def name(self) -> str:
        """As recorded."""
        return self._tree.forest.recording.name(self._row)

    @property
    def overload_name(self) -> str:
        """The overload of a torch op, where that was recorded."""
        return self._tree.forest.recording.overload_name(self._row)

    @property
    def kind(self) -> EventKind:
        """What it is."""
        return EventKind(self._tree.forest.recording.kind[self._row])

    @property
    def correlation_id(self) -> int:
        """The number that it has among the flat events."""
        return self._tree.forest.event(self._row).id

    @property
    def start_tid(self) -> int:
        """Torch's number of its thread."""
        return torch_thread(self._tree.forest.recording, self._row)

    @property
    def start_time_ns(self) -> int:
        """When it began, nanoseconds since the epoch."""
        return self._tree.begin_ns + self._tree.forest.recording.start_ns[self._row]

    @property
    def end_time_ns(self) -> int:
        """When it ended; the window's end where it was open then."""
        return self.start_time_ns + self.duration_time_ns

    @property
    def duration_time_ns(self) -> int:
        """How long it took, to the window's end where it was open then."""
        recording = self._tree.forest.recording
        duration_ns = recording.duration_ns[self._row]
        open_ns = recording.trace_end_ns - recording.start_ns[self._row]
        return open_ns if duration_ns < 0 else duration_ns

    @property
    def parent(self) -> TreeEvent | None:
        """The event around it, or what launched it."""
        row = self._tree.parent(self._row)
        return None if row < 0 else TreeEvent(self._tree, row)

    @property
    def children(self) -> list[TreeEvent]:
        """The events directly inside it, or launched by it, in the order of their start."""
        return [TreeEvent(self._tree, row) for row in self._tree.children.of(self._row)]
