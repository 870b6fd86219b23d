"""The events of a profile, as a sequence that makes an event when it is asked for."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, chain
from typing import TYPE_CHECKING, overload

from pytest_opprof.events.columns import Compat, TableOptions
from pytest_opprof.events.forest import EventForest, losses
from pytest_opprof.events.function_event import FunctionEvent
from pytest_opprof.events.key_averages import FunctionEventAvg, KeyAverages, average
from pytest_opprof.events.table import Tabular, build_table
from pytest_opprof.events.table_row import survey
from pytest_opprof.events.times import microseconds

if TYPE_CHECKING:
    from pytest_opprof.events.recording_view import RecordingView


class EventList(Tabular, Sequence[FunctionEvent]):
    """The events of one or more recordings, each recording's in the order in which they began.

    It holds no events: they are made from the recording's columns as they are asked for, and the same object
    is given for the same event as long as somebody holds it.

    Args:
        recordings: What to show the events of.
        profile_memory: Tables have memory columns.
    """

    def __init__(self, recordings: Iterable[RecordingView], *, profile_memory: bool = False) -> None:
        self._profile_memory = profile_memory
        self._forests = [EventForest(recording) for recording in recordings]
        self._ends = list(accumulate(len(forest) for forest in self._forests))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, index: int) -> FunctionEvent: ...
    @overload
    def __getitem__(self, index: slice) -> list[FunctionEvent]: ...
    def __getitem__(self, index: int | slice) -> FunctionEvent | list[FunctionEvent]:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        # Lets a range say what an index is and when it is too large.
        position = range(len(self))[index]
        place = bisect_right(self._ends, position)
        forest = self._forests[place]
        return forest.event(forest.index_at(position - self._ends[place] + len(forest)))

    def __iter__(self) -> Iterator[FunctionEvent]:
        return chain.from_iterable(forest.in_order() for forest in self._forests)

    def __repr__(self) -> str:
        return f"<EventList of {len(self)} events>"

    def key_averages(
        self,
        *,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        compat: Compat | None = None,
    ) -> KeyAverages:
        """Sum the events up by name.

        Args:
            group_by_input_shapes: One row for each name and shapes. Needs ``record_shapes``.
            group_by_stack_n: One row for each name and this many innermost entries of the stack. No stacks
                are recorded yet, so it parts nothing.
            group_by_overload_name: One row for each overload. None are recorded yet, so it parts nothing.
            compat: ``"torch"`` sums up as torch does: without the helper ops it hides, with an op that only
                calls its own name counted once, and with background threads among the rest.

        Returns:
            The rows, in the order in which each name first occurred.
        """
        del group_by_stack_n, group_by_overload_name
        return average(
            self._forests,
            by_shapes=group_by_input_shapes,
            compat=compat,
            profile_memory=self._profile_memory,
        )

    def total_average(self) -> FunctionEventAvg:
        """All events as one row, ``Total``."""
        return average(self._forests).total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """Self CPU time of all events, microseconds."""
        return microseconds(self.total_average().self_cpu_time_total_ns)

    def _table(self, options: TableOptions) -> str:
        if not self:
            return ""
        # The distinct names and shapes say all that the layout depends on, without an object for each event.
        facts = survey(average(self._forests, by_shapes=True, apart=False))
        columns = replace(options, profile_memory=self._profile_memory)
        return build_table(self, columns, facts=facts, notes=losses(self._forests))
