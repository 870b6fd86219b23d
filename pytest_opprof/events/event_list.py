"""The events of a profile, as a sequence that makes an event when it is asked for."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, MutableSequence, Sequence
from dataclasses import replace
from itertools import accumulate, chain
from typing import Any, overload

from pytest_opprof.capture.stack_kinds import StackKind
from pytest_opprof.capture.trace_file import write_text
from pytest_opprof.events.chrome_list import trace_pieces
from pytest_opprof.events.columns import Compat, TableOptions
from pytest_opprof.events.folded_stacks import METRICS, folded_lines
from pytest_opprof.events.forest import EventForest, losses_of
from pytest_opprof.events.frames import (
    recordings_to_arrow,
    recordings_to_pandas,
    rows_to_arrow,
    rows_to_pandas,
)
from pytest_opprof.events.function_event import FunctionEvent
from pytest_opprof.events.function_event_avg import TOTAL, FunctionEventAvg
from pytest_opprof.events.key_averages import Grouping, KeyAverages, average, average_of_events, device_times
from pytest_opprof.events.kineto_rows import kineto_events
from pytest_opprof.events.names import summed_name
from pytest_opprof.events.recorded_event import RecordedEvent
from pytest_opprof.events.recording_view import RecordingView
from pytest_opprof.events.table import Tabular, build_table
from pytest_opprof.events.table_row import survey
from pytest_opprof.events.torch_rules import torch_events
from pytest_opprof.events.torch_tree import nest
from pytest_opprof.kinds import EventKind

_WHOLE_STACKS = 1 << 16  # entries; deeper than Python lets calls nest


class RecordedEvents(Sequence[RecordedEvent]):
    """The events of recordings, each recording's in the order in which they began.

    It holds no events: they are made from the recording's columns as they are asked for, and the same object
    is given for the same event as long as somebody holds it.
    """

    def __init__(self, recordings: Iterable[RecordingView]) -> None:
        self.forests = [EventForest(recording) for recording in recordings]
        self._ends = list(accumulate(len(forest) for forest in self.forests))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, index: int) -> RecordedEvent: ...
    @overload
    def __getitem__(self, index: slice) -> list[RecordedEvent]: ...
    def __getitem__(self, index: int | slice) -> RecordedEvent | list[RecordedEvent]:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        # Lets a range say what an index is and when it is too large.
        position = range(len(self))[index]
        place = bisect_right(self._ends, position)
        forest = self.forests[place]
        return forest.event(forest.index_at(position - self._ends[place] + len(forest)))

    def __iter__(self) -> Iterator[RecordedEvent]:
        return chain.from_iterable(forest.in_order() for forest in self.forests)


class EventList(Tabular, MutableSequence[FunctionEvent]):
    """Events, with torch's sums and tables of them.

    Of recordings it holds no events: they are made as they are asked for. Once it is changed it holds all.

    Args:
        items: Recordings, or events as torch's own list is made of.
        use_device: Of events: the device profiled, in lower case; recordings know theirs.
        profile_memory: Tables have memory columns.
        with_flops: Tables have a FLOPs column.
    """

    def __init__(
        self,
        items: Iterable[RecordingView] | Iterable[FunctionEvent] | Iterable[FunctionEventAvg] = (),
        *,
        use_device: str | None = None,
        profile_memory: bool = False,
        with_flops: bool = False,
    ) -> None:
        given: list[Any] = list(items)
        self._recorded: RecordedEvents | None = None
        self._events: Sequence[FunctionEvent] = given
        if given and not isinstance(given[0], FunctionEvent | FunctionEventAvg):
            self._events = self._recorded = RecordedEvents(given)
        self._tree_built = self._recorded is not None
        self._use_device = use_device
        self._profile_memory = profile_memory
        self._with_flops = with_flops

    def __len__(self) -> int:
        return len(self._events)

    @overload
    def __getitem__(self, index: int) -> FunctionEvent: ...
    @overload
    def __getitem__(self, index: slice) -> list[FunctionEvent]: ...
    def __getitem__(self, index: int | slice) -> FunctionEvent | Sequence[FunctionEvent]:
        return self._events[index]

    def __iter__(self) -> Iterator[FunctionEvent]:
        return iter(self._events)

    @overload
    def __setitem__(self, index: int, value: FunctionEvent) -> None: ...
    @overload
    def __setitem__(self, index: slice, value: Iterable[FunctionEvent]) -> None: ...
    def __setitem__(self, index: Any, value: Any) -> None:
        self._to_change()[index] = value

    def __delitem__(self, index: int | slice) -> None:
        del self._to_change()[index]

    def insert(self, index: int, value: FunctionEvent) -> None:
        """Put an event before another."""
        self._to_change().insert(index, value)

    def sort(self, *, key: Callable[[FunctionEvent], Any], reverse: bool = False) -> None:
        """Put the events into another order, as a list's method does."""
        self._to_change().sort(key=key, reverse=reverse)

    def _to_change(self) -> list[FunctionEvent]:
        """The events as a list that may be changed; what they are read from stays as it is."""
        if not isinstance(self._events, list):
            self._events = list(self._events)
            self._recorded = None
        return self._events

    def _build_tree(self) -> None:
        """Nest the events by their times, as torch's method does; those of recordings are nested.

        Raises:
            AssertionError: They were nested before. Torch raises the same.
        """
        if self._recorded is None:
            self._events = nest(self._events)
            self._tree_built = True

    def __repr__(self) -> str:
        return f"<EventList of {len(self)} events>"

    def as_torch(self) -> EventList:
        """The events that torch would have shown of the same recordings, nested by its rules.

        They are made all at once, which for many takes as long as it does there.
        """
        torchs = EventList(
            self._torch_events(),
            use_device=self._use_device,
            profile_memory=self._profile_memory,
            with_flops=self._with_flops,
        )
        torchs._tree_built = self._tree_built
        return torchs

    def _torch_events(self) -> Sequence[FunctionEvent]:
        if self._recorded is None:
            return self._events
        events: list[FunctionEvent] = []
        for forest in self._recorded.forests:
            told, trace_start_ns = kineto_events(forest)
            device = forest.recording.use_device
            events += nest(torch_events(told, trace_start_ns=trace_start_ns, use_device=device))
        return events

    def key_averages(
        self,
        group_by_input_shapes: bool = False,  # noqa: FBT001, FBT002  # torch's signature
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,  # noqa: FBT001, FBT002  # torch's signature
        *,
        compat: Compat | None = None,
    ) -> KeyAverages:
        """Sum the events up by name.

        Args:
            group_by_input_shapes: One row for each name and shapes. Needs ``record_shapes``.
            group_by_stack_n: One row for each name and this many innermost entries of the stack. Needs
                ``with_stack``.
            group_by_overload_name: One row for each overload.
            compat: ``"torch"`` sums up as torch does: without the helper ops it hides, with an op that only
                calls its own name counted once, with memory counted for every event of that time, and with
                background threads among the rest.

        Returns:
            The rows, in the order in which each name first occurred.

        Raises:
            AssertionError: With ``compat="torch"``, of events that nobody nested. Torch raises the same.
        """
        grouping = Grouping(
            shapes=group_by_input_shapes, stack_depth=group_by_stack_n, overloads=group_by_overload_name
        )
        return self.averages(grouping, compat=compat)

    def averages(self, grouping: Grouping, *, compat: Compat | None = None) -> KeyAverages:
        """Sum the events up; see `key_averages`."""
        if self._recorded is not None and compat is None:
            return self._tabular(
                average(self._recorded.forests, grouping), notes=losses_of(self._recorded.forests)
            )
        if compat == "torch" and not self._tree_built:
            raise AssertionError("Expected tree to be built before calling key_averages")
        return self._tabular(average_of_events(self._torch_events(), grouping))

    def _tabular(self, rows: Iterable[FunctionEventAvg], *, notes: Sequence[str] = ()) -> KeyAverages:
        return KeyAverages(
            rows, profile_memory=self._profile_memory, with_flops=self._with_flops, notes=notes
        )

    def export_stacks(
        self,
        path: str | os.PathLike[str],
        metric: str = "self_cpu_time_total",
        *,
        compat: Compat | None = None,
        stacks: StackKind = "python",
    ) -> None:
        """Write the events' stacks and what each cost, for flamegraph.pl and its like: ``main;forward 1500``.

        Equal stacks are one line, with the sum of their nanoseconds. Needs ``with_stack``.

        Args:
            path: The file, replaced whole or not at all; compressed where it ends in ``.gz``.
            metric: ``self_cpu_time_total``, or ``self_cuda_time_total`` and its like for time on a device.
            compat: ``"torch"`` writes a line for each event, with whole microseconds, as torch does.
            stacks: Which: ``"python"``, ``"cpp"``, or ``"all"``, which has the C++ functions inside of the
                innermost Python call above its stack.

        Raises:
            ValueError: There is no such metric. Torch raises the same.
            UsageError: There is no such kind of stacks, or torch does not write it.
            OSError: The file cannot be written.
        """
        events = self if compat is None else self._torch_events()
        write_text(path, folded_lines(events, metric, compat=compat, stacks=stacks))

    def supported_export_stacks_metrics(self) -> list[str]:
        """The metrics of `export_stacks`."""
        return list(METRICS)

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the events as a JSON list of Chrome trace events, as torch's `EventList` does.

        A profile and a loaded trace write all that is known of their events; this writes names, times and an
        arrow for each kernel.

        Args:
            path: The file, replaced whole or not at all; compressed where it ends in ``.gz``.

        Raises:
            OSError: The file cannot be written.
        """
        write_text(path, trace_pieces(self, device=self._use_device))

    def to_arrow(self) -> Any:
        """The events as a ``pyarrow.Table``. Needs ``pip install pytest-opprof[frames]``.

        Of recordings it is their columns, a row each, without a copy: `RecordingView` says what each means,
        and ``parent`` and ``launcher`` count from a recording's first row. Of other events it is a row for
        each, with the main attributes.

        Raises:
            UsageError: There is no pyarrow.
        """
        if self._recorded is None:
            return rows_to_arrow(self._events)
        return recordings_to_arrow([forest.recording for forest in self._recorded.forests])

    def to_pandas(self) -> Any:
        """The same as a ``pandas.DataFrame``.

        Raises:
            UsageError: There is no pandas.
        """
        if self._recorded is None:
            return rows_to_pandas(self._events)
        return recordings_to_pandas([forest.recording for forest in self._recorded.forests])

    def total_average(self) -> FunctionEventAvg:
        """All events as one row, ``Total``. Its total times count nested events once for each level."""
        if self._recorded is not None:
            return KeyAverages(average(self._recorded.forests, Grouping())).total_average()
        total = FunctionEventAvg()
        for event, total_us, self_us in device_times(self._events):
            # As torch has it, each event in turn says of what device and so on the total is.
            total.key = None
            total.add_with_device_time(event, total_us, self_us)
        total.key = total.name = TOTAL
        return total

    @property
    def self_cpu_time_total(self) -> float:
        """Self CPU time of all events, microseconds."""
        if self._recorded is not None:
            return self.total_average().self_cpu_time_total
        return sum(event.self_cpu_time_total for event in self._events)

    def _table(self, options: TableOptions) -> str:
        if not self:
            return ""
        if self._recorded is None or options.compat == "torch":
            return build_table(self._torch_events(), options)
        # The distinct names and shapes say all that the layout depends on, without an object for each event.
        forests = self._recorded.forests
        has_stacks = any(EventKind.PYTHON_CALL in bytes(forest.recording.kind) for forest in forests)
        depth = _WHOLE_STACKS if has_stacks else 0
        facts = survey(average(forests, Grouping(shapes=True, stack_depth=depth, background=False)))
        if has_stacks:  # the row of a Python call has a name of its own
            recordings = [forest.recording for forest in forests]
            names = {recording.name(row) for recording in recordings for row in range(len(recording))}
            facts = replace(facts, name_length=max(len(summed_name(name)) for name in names))
        return build_table(self._recorded, options, facts=facts, notes=losses_of(forests))
