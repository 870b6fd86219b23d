"""A result of Kineto's as a recording: torch.profiler's own events, with our sums and rules.

Any object with Kineto's methods will do: what torch's ``profile.kineto_results`` is, or what a test made up.
"""

from __future__ import annotations

import functools
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pytest_opprof.capture.event_flags import FLAG_ASYNC, FLAG_CREDITED, FLAG_UNFINISHED, USER_SCOPE
from pytest_opprof.capture.inputs import Inputs
from pytest_opprof.capture.memory import MemoryChange
from pytest_opprof.capture.op_groups import OpGroup
from pytest_opprof.capture.window import OpenCall, RecordingStats, StepInfo, ThreadInfo
from pytest_opprof.errors import UsageError
from pytest_opprof.events.attribution import flops_with_inner, with_inner
from pytest_opprof.events.device import DEVICE_MEMORY, HOST_MEMORY, DeviceType
from pytest_opprof.events.kineto_event import KinetoEvent, KinetoResult, device_of, kind_of, told
from pytest_opprof.events.names import STEP_PREFIX, summed_name
from pytest_opprof.events.row_sums import sum_up
from pytest_opprof.events.stacks import without_line
from pytest_opprof.kinds import EventKind

# A lane is a thread of the host, or a stream of a device: type, index, number.
_Lane = tuple[int, int, int]
# Of a step: a longer one is nobody's, and Python refuses to read thousands of them.
_MOST_DIGITS: Final = 18


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    event: KinetoEvent
    kind: EventKind
    lane: _Lane
    start_ns: int
    end_ns: int
    is_async: bool
    is_unfinished: bool


class KinetoRecording:
    """The events of a result of Kineto's as columns, nested by their times; hidden ones are left out.

    What a column means is said in `RecordingView`. An event that partly overlaps the one before it is beside
    it, not inside. Memory belongs to the innermost event of its own thread. A range that was open when the
    window closed (Kineto gives it thread 0 to end on) is unfinished, and not asynchronous as torch has it.

    Args:
        use_device: The device profiled, in lower case; empty for none. Unless given, where events ran.

    Raises:
        UsageError: An object of the result has not the methods of an event.
    """

    def __init__(self, result: KinetoResult, *, use_device: str | None = None) -> None:
        self._result = result
        begin_ns = result.trace_start_ns()
        try:
            rows = list(_rows(result, begin_ns))
        except AttributeError as error:
            raise UsageError(
                f"{type(result).__name__}.events() gave something that is not an event of Kineto's: {error}; "
                "give what torch's profile.kineto_results is"
            ) from error
        lanes = {lane: place for place, lane in enumerate(dict.fromkeys(row.lane for row in rows))}
        # The sort is stable: of equal times the one that Kineto names first is around the other.
        rows.sort(key=lambda row: (lanes[row.lane], row.start_ns, -row.end_ns))
        self._rows = rows
        self._lanes = tuple(lanes)
        self._use_device = use_device
        self.first_id: Final = 0  # Kineto told each event's id
        self.trace_start_ns: Final = begin_ns
        self.trace_end_ns: Final = max((row.end_ns for row in rows), default=0)
        self.start_ns: Final = array("q", (row.start_ns for row in rows))
        self.duration_ns: Final = array(
            "q", (-1 if row.is_unfinished else row.end_ns - row.start_ns for row in rows)
        )
        self.thread: Final = array("I", (lanes[row.lane] for row in rows))
        self.kind: Final = array("B", (row.kind for row in rows))
        self.parent: Final = self._parents()
        self.flags: Final = array("B", (self._flags(index) for index in range(len(rows))))
        self.self_ns: Final = self._self_times()

    def __len__(self) -> int:
        return len(self._rows)

    def _parents(self) -> array[int]:
        parents = array("i", [-1]) * len(self._rows)
        around: list[int] = []
        for index, row in enumerate(self._rows):
            if row.is_async or row.kind.is_on_device:
                continue
            while around and not self._is_within(row, self._rows[around[-1]]):
                around.pop()
            if around:
                parents[index] = around[-1]
            if row.kind is not EventKind.MEMORY:
                around.append(index)
        return parents

    @staticmethod
    def _is_within(row: _Row, outer: _Row) -> bool:
        return row.lane == outer.lane and row.start_ns < outer.end_ns and row.end_ns <= outer.end_ns

    def _flags(self, index: int) -> int:
        row = self._rows[index]
        credited = row.kind is EventKind.MEMORY and self.parent[index] >= 0
        return FLAG_ASYNC * row.is_async | FLAG_UNFINISHED * row.is_unfinished | FLAG_CREDITED * credited

    def _self_times(self) -> array[int]:
        times = array("q", (max(time, 0) for time in self.duration_ns))
        for index, parent in enumerate(self.parent):
            if parent >= 0:
                times[parent] -= max(self.duration_ns[index], 0)
        for index, row in enumerate(self._rows):
            if row.is_async or row.is_unfinished:
                times[index] = 0
        return times

    def _told(self, what: str) -> list[Any]:
        return [told(row.event, what) for row in self._rows]

    @functools.cached_property
    def sequence_nr(self) -> Sequence[int]:
        """Autograd's sequence numbers, -1 for none."""
        return array("q", self._told("sequence_nr"))

    @functools.cached_property
    def forward_thread(self) -> Sequence[int]:
        """Torch's number of the thread that ran the forward op, 0 for none."""
        return array("Q", self._told("fwd_thread_id"))

    @functools.cached_property
    def scope(self) -> Sequence[int]:
        """Torch's record scopes; a range is the user's, also where its source knows no scopes."""
        scopes = zip(self._rows, self._told("scope"), strict=True)
        return array("B", (USER_SCOPE if row.kind is EventKind.RANGE else scope for row, scope in scopes))

    @functools.cached_property
    def launcher(self) -> Sequence[int]:
        """Of an event of a device: the event of the host that it names as its cause; -1 for none."""
        causes: dict[int, int] = {}
        for index, row in enumerate(self._rows):
            is_op = not row.kind.is_on_device and not row.is_async
            if is_op and not told(row.event, "linked_correlation_id"):
                causes.setdefault(told(row.event, "correlation_id"), index)
        launchers = array("i", [-1]) * len(self._rows)
        for index, row in enumerate(self._rows):
            cause = told(row.event, "linked_correlation_id")
            if row.kind.is_on_device and cause > 0:
                launchers[index] = causes.get(cause, -1)
        return launchers

    @functools.cached_property
    def line(self) -> Sequence[int]:
        """0 for each event: what lines were running, only its stack says."""
        return array("I", [0]) * len(self._rows)

    @property
    def open_calls(self) -> Sequence[OpenCall]:
        """None: Kineto does not tell which calls were open when the window began."""
        return ()

    @functools.cached_property
    def threads(self) -> Sequence[ThreadInfo]:
        """The threads and streams."""
        return tuple(
            ThreadInfo(
                index=place,
                os_tid=0 if device else number & 0xFFFFFFFF,
                name="",
                torch_thread=0 if device else number,
                device_type=device,
                device_index=index,
                resource=number if device else 0,
            )
            for place, (device, index, number) in enumerate(self._lanes)
        )

    @functools.cached_property
    def steps(self) -> Sequence[StepInfo]:
        """The steps, from the ranges that the profiler opened for them."""
        begin_ns = self.trace_start_ns
        return tuple(
            StepInfo(number=number, start_ns=begin_ns + row.start_ns, end_ns=begin_ns + row.end_ns)
            for row in sorted(self._rows, key=lambda row: row.start_ns)
            if row.kind is EventKind.RANGE and (number := _step_number(row)) is not None
        )

    @functools.cached_property
    def step(self) -> Sequence[int]:
        """The index of the step in which each event began, -1 for none."""
        starts = [step.start_ns - self.trace_start_ns for step in self.steps]
        ends = [step.end_ns - self.trace_start_ns for step in self.steps]
        places = (bisect_right(starts, start) - 1 for start in self.start_ns)
        return array(
            "i",
            (
                place if place >= 0 and start < ends[place] else -1
                for place, start in zip(places, self.start_ns, strict=True)
            ),
        )

    @functools.cached_property
    def self_cpu_memory(self) -> Sequence[int]:
        """Bytes of the host taken less given back by each event itself."""
        return self._memory_of(HOST_MEMORY)

    @functools.cached_property
    def self_device_memory(self) -> Sequence[int]:
        """The same of all devices."""
        return self._memory_of(DEVICE_MEMORY)

    @functools.cached_property
    def cpu_memory(self) -> Sequence[int]:
        """Bytes of the host taken less given back in each event, those inside it included."""
        return with_inner(self, self.self_cpu_memory)

    @functools.cached_property
    def device_memory(self) -> Sequence[int]:
        """The same of all devices."""
        return with_inner(self, self.self_device_memory)

    @functools.cached_property
    def _flops(self) -> tuple[Sequence[int], Sequence[int]]:
        return flops_with_inner(self, [flops or 0 for flops in self._told("flops")])

    @property
    def flops(self) -> Sequence[int]:
        """FLOPs that Kineto counted for each event, or for those inside it where it counted none."""
        return self._flops[0]

    def _memory_of(self, devices: frozenset[DeviceType]) -> array[int]:
        taken = array("q", [0]) * len(self._rows)
        for index, row in enumerate(self._rows):
            if row.kind is EventKind.MEMORY and device_of(row.event) in devices:
                owner = self.parent[index]
                taken[owner if owner >= 0 else index] += told(row.event, "nbytes")
        return taken

    @property
    def kineto_result(self) -> KinetoResult | None:
        """What it was made from."""
        return self._result

    @property
    def use_device(self) -> str | None:
        """The kind of device that was profiled, in lower case; None for none."""
        if self._use_device is None:
            kinds = sorted({device for device, _, _ in self._lanes if device})
            return DeviceType(kinds[0]).name.lower() if kinds else None
        return self._use_device or None

    @property
    def stats(self) -> RecordingStats:
        """How much it is; what Kineto lost it does not say."""
        return RecordingStats(
            events=len(self._rows),
            threads=len(self._lanes),
            names=len({row.event.name() for row in self._rows}),
        )

    def keywords(self, event: int) -> dict[str, Any]:
        """What Kineto tells that an op was given by keyword."""
        told_of: dict[str, Any] = told(self._rows[event].event, "kwinputs")
        return told_of

    @property
    def counted(self) -> tuple[str, ...]:
        """None: Kineto keeps its counters for its traces."""
        return ()

    def counters(self, _event: int, /) -> dict[str, int]:
        """None, for the same reason."""
        return {}

    def cpp_stack(self, _event: int, /) -> tuple[()]:
        """None: Kineto records no C++ stacks."""
        return ()

    def name(self, event: int) -> str:
        """An event's name."""
        return self._rows[event].event.name()

    def row_name(self, event: int) -> str:
        """The name of the row that an event is summed up in. Kineto tells no qualified names."""
        name = summed_name(self.name(event))
        return without_line(name) if self._rows[event].kind is EventKind.PYTHON_CALL else name

    def kineto_event(self, event: int) -> KinetoEvent:
        """What Kineto told of an event."""
        return self._rows[event].event

    def overload_name(self, event: int) -> str:
        """The overload of a torch op; "" where it has none, or where that was not recorded."""
        overload: str = told(self._rows[event].event, "overload_name")
        return overload

    def inputs(self, event: int) -> Inputs | None:
        """What an event was given, where that was recorded."""
        source = self._rows[event].event
        shapes = list(told(source, "structured_input_shapes") or told(source, "shapes"))
        return Inputs(
            shapes=shapes,
            strides=list(told(source, "structured_input_strides")),
            dtypes=list(told(source, "dtypes")),
            concrete=list(told(source, "concrete_inputs")),
        )

    def memory(self, event: int) -> MemoryChange | None:
        """What an allocator did in an event of kind ``MEMORY``; None for any other event."""
        row = self._rows[event]
        if row.kind is not EventKind.MEMORY:
            return None
        return MemoryChange(
            address=0,
            nbytes=told(row.event, "nbytes"),
            total_allocated=-1,
            total_reserved=-1,
            device_type=device_of(row.event),
            device_index=told(row.event, "device_index"),
        )

    def parted_groups(self, *, by_inputs: bool, by_overload: bool, stack_depth: int) -> None:
        """None: each event of Kineto's tells its own stack."""

    def groups(self, *, by_inputs: bool = False, by_values: bool = False) -> list[OpGroup]:
        """The events summed up by name, in the order in which each name first occurred."""
        return sum_up(self, self._flops[1], by_inputs=by_inputs, by_values=by_values)


def _rows(result: KinetoResult, begin_ns: int) -> Iterator[_Row]:
    events = [event for event in result.events() if not told(event, "is_hidden_event")]
    threads = {
        told(event, "correlation_id"): event.start_thread_id()
        for event in reversed(events)
        if device_of(event) == DeviceType.CPU and not told(event, "linked_correlation_id")
    }
    for event in events:
        kind = kind_of(event)
        thread, end_thread = event.start_thread_id(), event.end_thread_id()
        cause = told(event, "linked_correlation_id")
        if cause and kind in (EventKind.RUNTIME, EventKind.DRIVER):
            # Kineto has the system's number of the thread here, and torch's number for ops.
            thread = end_thread = threads.get(cause, thread)
        on_device = kind.is_on_device
        yield _Row(
            event=event,
            kind=kind,
            lane=(int(device_of(event)), told(event, "device_index"), told(event, "device_resource_id"))
            if on_device
            else (0, -1, thread),
            start_ns=event.start_ns() - begin_ns,
            end_ns=event.end_ns() - begin_ns,
            is_async=not on_device and bool(told(event, "is_async") or end_thread not in (0, thread)),
            is_unfinished=not on_device and end_thread == 0 != thread,
        )


def _step_number(row: _Row) -> int | None:
    name = row.event.name()
    number = name.removeprefix(STEP_PREFIX)
    return int(number) if number != name and number.isdecimal() and len(number) <= _MOST_DIGITS else None
