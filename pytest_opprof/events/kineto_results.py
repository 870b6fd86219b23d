"""Our recordings in the form of torch's ``profile.kineto_results``, for code that reads it."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from pytest_opprof.capture.recording import Recording
from pytest_opprof.events.forest import Children, EventForest
from pytest_opprof.events.kineto_rows import RecordedKinetoEvent, recorded_events, torch_thread
from pytest_opprof.kinds import EventKind


class KinetoResults:
    """The events of a recording in Kineto's form, flat and as a tree, in nanoseconds since the epoch."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._forest = EventForest(recording)

    def trace_start_ns(self) -> int:
        """When the window began."""
        return self._recording.trace_start_ns

    def events(self) -> Sequence[RecordedKinetoEvent]:
        """The events in start order, in Kineto's form."""
        return recorded_events(self._forest, begin_ns=self._recording.trace_start_ns)

    def experimental_event_tree(self) -> list[TreeEvent]:
        """The root events in start order. Unlike in torch, a backward op on its own thread is a root."""
        return [TreeEvent(self._tree, row) for row in self._tree.roots()]

    @functools.cached_property
    def _tree(self) -> EventTree:
        return EventTree(self._forest, self._recording.trace_start_ns)


class EventTree:
    """The tree of rows: inside a host event is what ran in it, inside a launching call its device work."""

    def __init__(self, forest: EventForest, begin_ns: int) -> None:
        self.forest = forest
        self.begin_ns = begin_ns
        self.children = Children(len(forest.recording), self.parent)

    def parent(self, row: int) -> int:
        """The row of the event around one, or of its launching call; -1 for none."""
        recording = self.forest.recording
        on_device = EventKind(recording.kind[row]).is_on_device
        return recording.launcher[row] if on_device else self.forest.parent(row)

    def roots(self) -> list[int]:
        """The rows that are inside no other, in start order."""
        recording = self.forest.recording
        rows = (row for row in range(len(recording)) if self.parent(row) < 0)
        return sorted(rows, key=recording.start_ns.__getitem__)


class TreeEvent:
    """An event of a tree, with those attributes of torch's ``_ProfilerEvent`` for when and where it ran."""

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
        """Its number, unique in the tree."""
        return self._row + 1

    @property
    def name(self) -> str:
        """The name as recorded."""
        return self._tree.forest.recording.name(self._row)

    @property
    def overload_name(self) -> str:
        """The overload of a torch op; "" if it has none or it was not recorded."""
        return self._tree.forest.recording.overload_name(self._row)

    @property
    def kind(self) -> EventKind:
        """Its kind."""
        return EventKind(self._tree.forest.recording.kind[self._row])

    @property
    def correlation_id(self) -> int:
        """Its number among the flat events."""
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
        """When it ended; the window's end if it was still open."""
        return self.start_time_ns + self.duration_time_ns

    @property
    def duration_time_ns(self) -> int:
        """Its duration, up to the window's end if it was still open."""
        recording = self._tree.forest.recording
        duration_ns = recording.duration_ns[self._row]
        open_ns = recording.trace_end_ns - recording.start_ns[self._row]
        return open_ns if duration_ns < 0 else duration_ns

    @property
    def parent(self) -> TreeEvent | None:
        """The event around it, or its launching call."""
        row = self._tree.parent(self._row)
        return None if row < 0 else TreeEvent(self._tree, row)

    @property
    def children(self) -> list[TreeEvent]:
        """The events directly inside it, or launched by it, in start order."""
        return [TreeEvent(self._tree, row) for row in self._tree.children.of(self._row)]
