"""The events of a profile, as a sequence that creates each event on access."""

from __future__ import annotations

import json
import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, MutableSequence, Sequence
from dataclasses import replace
from itertools import accumulate, chain, count
from typing import Any, overload

from pytest_opprof.capture.sources import StackKind
from pytest_opprof.capture.trace_file import write_text
from pytest_opprof.events.columns import Compat, TableOptions, check_compat, survey
from pytest_opprof.events.folded_stacks import METRICS, folded_lines
from pytest_opprof.events.forest import EventForest, losses_of
from pytest_opprof.events.frames import (
    recordings_to_arrow,
    recordings_to_pandas,
    rows_to_arrow,
    rows_to_pandas,
)
from pytest_opprof.events.function_event import FunctionEvent, own_events
from pytest_opprof.events.function_event_avg import TOTAL, FunctionEventAvg
from pytest_opprof.events.key_averages import Grouping, KeyAverages, average, average_of_events, device_times
from pytest_opprof.events.kineto_recording import RecordingView
from pytest_opprof.events.kineto_results import kineto_events
from pytest_opprof.events.names import summed_name
from pytest_opprof.events.recorded_event import RecordedEvent
from pytest_opprof.events.table import Tabular, build_table
from pytest_opprof.events.torch_rules import nest, torch_events
from pytest_opprof.kinds import EventKind

_WHOLE_STACKS = 1 << 16  # entries; deeper than Python calls can nest


class RecordedEvents(Sequence[RecordedEvent]):
    """The events of recordings, each recording's in start order.

    Events are created from the columns on access. While one is referenced, each access returns that object.
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
        # The range resolves a negative index and rejects one that is too large.
        position = range(len(self))[index]
        place = bisect_right(self._ends, position)
        forest = self.forests[place]
        return forest.event(forest.index_at(position - self._ends[place] + len(forest)))

    def __iter__(self) -> Iterator[RecordedEvent]:
        return chain.from_iterable(forest.in_order() for forest in self.forests)


class EventList(Tabular, MutableSequence[FunctionEvent]):
    """Events, with torch's sums and tables.

    Events of recordings are created on access. The first change of the list creates and keeps all of them.

    Args:
        items: Recordings, or events: ours or torch's.
        use_device: The profiled device of given events, in lower case; recordings know theirs.
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
            if hasattr(given[0], "cpu_children"):
                self._events = own_events(given)
            else:
                self._events = self._recorded = RecordedEvents(given)
        self._tree_built = self._recorded is not None or getattr(items, "_tree_built", False)
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
        """Insert an event before an index."""
        self._to_change().insert(index, value)

    def copy(self) -> list[FunctionEvent]:
        """The events as a list, as in torch."""
        return list(self)

    def __add__(self, other: Iterable[FunctionEvent]) -> list[FunctionEvent]:
        return [*self, *other] if isinstance(other, EventList | list) else NotImplemented

    def __radd__(self, other: list[FunctionEvent]) -> list[FunctionEvent]:
        return [*other, *self]

    def __mul__(self, times: int) -> list[FunctionEvent]:
        return list(self) * times

    __rmul__ = __mul__

    def sort(self, *, key: Callable[[FunctionEvent], Any], reverse: bool = False) -> None:
        """Sort the events in place, as `list.sort` does."""
        self._to_change().sort(key=key, reverse=reverse)

    def _to_change(self) -> list[FunctionEvent]:
        """The events as a list that may be changed; the recordings stay unchanged."""
        if not isinstance(self._events, list):
            self._events = list(self._events)
            self._recorded = None
        return self._events

    def _build_tree(self) -> None:
        """Nest the events by time, as torch's method does; events of recordings are nested already.

        Raises:
            AssertionError: They were nested before. Torch raises the same.
        """
        if self._recorded is None:
            self._events = nest(self._events)
            self._tree_built = True

    def __getstate__(self) -> dict[str, Any]:
        # A recording stays in its process; its events know how to leave it.
        return vars(self) | {"_events": list(self._events), "_recorded": None}

    def __repr__(self) -> str:
        return f"<EventList of {len(self)} events>"

    def as_torch(self) -> EventList:
        """The events that torch would show for the same recordings, nested by its rules, all made at once."""
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
            group_by_input_shapes: Split rows by input shapes. Needs ``record_shapes``.
            group_by_stack_n: Split rows by this many innermost stack entries. Needs ``with_stack``.
            group_by_overload_name: Split rows by overload.
            compat: ``"torch"`` sums up as torch does: it hides helper ops, counts an op that only calls its
                own name once, counts memory for every event of that time, and does not split off background
                threads.

        Returns:
            The rows, in the order in which each name first occurred.

        Raises:
            AssertionError: ``compat="torch"`` needs nested events, and these are not. Torch raises the same.
            UsageError: `compat` is anything else.
        """
        grouping = Grouping(
            shapes=group_by_input_shapes, stack_depth=group_by_stack_n, overloads=group_by_overload_name
        )
        return self.averages(grouping, compat=compat)

    def averages(self, grouping: Grouping, *, compat: Compat | None = None) -> KeyAverages:
        """Sum the events up; see `key_averages`."""
        check_compat(compat)
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
        """Write stacks with their times, for flamegraph.pl and similar tools: ``main;forward 1500``.

        Equal stacks share a line, with the sum of their nanoseconds. Needs ``with_stack``.

        Args:
            path: The file, replaced atomically; compressed if it ends in ``.gz``.
            metric: ``self_cpu_time_total``, or a device time such as ``self_cuda_time_total``.
            compat: ``"torch"`` writes a line for each event, in whole microseconds, as torch does.
            stacks: ``"python"``, ``"cpp"``, or ``"all"``: the Python calls, then the C++ functions inside the
                innermost one.

        Raises:
            ValueError: There is no such metric. Torch raises the same.
            UsageError: There is no such `compat` or kind of stacks, or ``compat="torch"`` lacks it.
            OSError: The file cannot be written.
        """
        check_compat(compat)
        events = self if compat is None else self._torch_events()
        write_text(path, folded_lines(events, metric, compat=compat, stacks=stacks))

    def supported_export_stacks_metrics(self) -> list[str]:
        """The metrics of `export_stacks`."""
        return list(METRICS)

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the events as a JSON list of Chrome trace events, as torch's `EventList` does.

        It has only names, times and an arrow for each kernel. A profile or a loaded trace exports everything.

        Args:
            path: The file, replaced atomically; compressed if it ends in ``.gz``.

        Raises:
            OSError: The file cannot be written.
        """
        write_text(path, _chrome_pieces(self, device=self._use_device))

    def to_arrow(self) -> Any:
        """The events as a ``pyarrow.Table``. Needs ``pip install 'pytest-opprof[frames]'``.

        Recordings give their columns without a copy: `ResultColumns` says what each means, and ``parent`` and
        ``launcher`` count from a recording's first row. Other events give a row with the main attributes.

        Raises:
            UsageError: The package pyarrow is not installed.
        """
        if self._recorded is None:
            return rows_to_arrow(self._events)
        return recordings_to_arrow([forest.recording for forest in self._recorded.forests])

    def to_pandas(self) -> Any:
        """As `to_arrow`, but a ``pandas.DataFrame``.

        Raises:
            UsageError: The package pandas is not installed.
        """
        if self._recorded is None:
            return rows_to_pandas(self._events)
        return recordings_to_pandas([forest.recording for forest in self._recorded.forests])

    def total_average(self) -> FunctionEventAvg:
        """All events as one row, ``Total``. Its total times count a nested event once per level."""
        if self._recorded is not None:
            return KeyAverages(average(self._recorded.forests, Grouping())).total_average()
        total = FunctionEventAvg()
        for event, total_us, self_us in device_times(self._events):
            # As in torch, the last event decides the total's device and other attributes.
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
        # The layout depends on names, shapes and columns, so it needs no object for each event.
        forests = self._recorded.forests
        recordings = [forest.recording for forest in forests]
        has_stacks = any(EventKind.PYTHON_CALL in bytes(forest.recording.kind) for forest in forests)
        depth = _WHOLE_STACKS if has_stacks else 0
        facts = replace(
            survey(average(forests, Grouping(shapes=True, stack_depth=depth, background=False))),
            has_overloads=any(map(_has_overloads, recordings)),
            # Of single events, because sums are larger, or 0 where memory was given back.
            has_device_memory=any(used > 0 for one in recordings for used in one.self_device_memory),
            smallest_flops=min((each for one in recordings for each in one.flops if each > 0), default=None),
        )
        if has_stacks:  # averages name a Python call without its line, which this table shows
            names = {recording.name(row) for recording in recordings for row in range(len(recording))}
            facts = replace(facts, name_length=max(len(summed_name(name)) for name in names))
        return build_table(self._recorded, options, facts=facts, notes=losses_of(forests))


def _chrome_pieces(events: Iterable[FunctionEvent], *, device: str | None) -> Iterator[str]:
    """The JSON text of a list, in microseconds: each event with a trace name, an arrow for each kernel.

    Arrows lead to `device`; without one, to the event's own, or to ``cuda``.
    """
    arrows = count()
    before = "["
    for event in events:
        if event.trace_name is None:
            continue
        name, thread = json.dumps(event.trace_name), event.thread
        track = json.dumps(f" node_id:{event.node_id}, thread_id:{thread} ") if event.is_remote else thread
        begin = event.time_range.start
        yield (
            f'{before}{{"name": {name}, "ph": "X", "ts": {begin}, "dur": {event.time_range.elapsed_us()}, '
            f'"tid": {track}, "pid": "CPU functions", "args": {{}}}}'
        )
        before = ", "
        category = f"cpu_to_{device or event.use_device or 'cuda'}"
        for _ in event.kernels:
            yield (
                f', {{"name": {name}, "ph": "s", "ts": {begin}, "tid": {thread}, "pid": "CPU functions", '
                f'"id": {next(arrows)}, "cat": "{category}", "args": {{}}}}'
            )
    yield "]" if before == ", " else "[]"


def _has_overloads(recording: RecordingView) -> bool:
    groups = recording.parted_groups(by_inputs=False, by_overload=True, stack_depth=0)
    rows = range(len(recording)) if groups is None else (group.first_event for group in groups)
    return any(recording.overload_name(row) for row in rows)
