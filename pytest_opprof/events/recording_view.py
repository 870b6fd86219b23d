"""What the events need of a recording, whoever made it: the collector, an imported trace, a test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from pytest_opprof.capture.cpp_stacks import CppFrame
from pytest_opprof.capture.inputs import Inputs
from pytest_opprof.capture.memory import MemoryChange
from pytest_opprof.capture.op_groups import OpGroup
from pytest_opprof.capture.window import OpenCall, RecordingStats, StepInfo, ThreadInfo
from pytest_opprof.events.kineto_event import KinetoResult


class RecordingView(Protocol):
    """One finished window as columns: thread by thread, each thread's events in preorder.

    Each column has one entry per event. Times are nanoseconds; starts count from the window's start, and
    the duration of an event that was open at its end is -1.
    """

    def __len__(self) -> int:
        """The number of events."""

    @property
    def start_ns(self) -> Sequence[int]:
        """When each event began."""

    @property
    def duration_ns(self) -> Sequence[int]:
        """How long each event took, -1 for one that never ended."""

    @property
    def self_ns(self) -> Sequence[int]:
        """The same, less the events inside it."""

    @property
    def first_id(self) -> int:
        """Event n has the id ``first_id + 1 + n``, where nobody told another."""

    @property
    def trace_end_ns(self) -> int:
        """When the window ended."""

    @property
    def parent(self) -> Sequence[int]:
        """The event around each event, -1 for none."""

    @property
    def thread(self) -> Sequence[int]:
        """The index of each event's thread."""

    @property
    def sequence_nr(self) -> Sequence[int]:
        """Autograd's sequence numbers, -1 for none."""

    @property
    def forward_thread(self) -> Sequence[int]:
        """Torch's number of the thread that ran the forward op, 0 for none."""

    @property
    def step(self) -> Sequence[int]:
        """The index of the step that each event belongs to, -1 for none."""

    @property
    def launcher(self) -> Sequence[int]:
        """Of a device event: the host event that caused it; -1 for none known."""

    @property
    def line(self) -> Sequence[int]:
        """The line of the Python function around each event, 0 where it is not known."""

    @property
    def open_calls(self) -> Sequence[OpenCall]:
        """The Python calls that were open when the recording began, thread by thread, outermost first."""

    @property
    def kind(self) -> Sequence[int]:
        """What each event is: the numbers of ``OpKind``."""

    @property
    def flags(self) -> Sequence[int]:
        """``FLAG_ASYNC``, ``FLAG_UNFINISHED`` and ``FLAG_CREDITED``."""

    @property
    def scope(self) -> Sequence[int]:
        """Torch's record scopes."""

    @property
    def threads(self) -> Sequence[ThreadInfo]:
        """The threads that recorded."""

    @property
    def steps(self) -> Sequence[StepInfo]:
        """The steps of the window."""

    @property
    def stats(self) -> RecordingStats:
        """What was recorded, and what was lost."""

    @property
    def use_device(self) -> str | None:
        """The kind of device that was recorded, in lower case; None for none."""

    @property
    def kineto_result(self) -> KinetoResult | None:
        """What the recording was made from, where it was made from a result of Kineto's."""

    def kineto_event(self, event: int) -> object | None:
        """What Kineto told of an event, by some of the methods of Kineto's events; None for nothing."""

    def name(self, event: int) -> str:
        """An event's name."""

    def row_name(self, event: int) -> str:
        """The name of the row that an event is summed up in; a Python call's has no line."""

    def overload_name(self, event: int) -> str:
        """The overload of a torch op; "" where it has none, or where that was not recorded."""

    def inputs(self, event: int) -> Inputs | None:
        """What an event was given, where that was recorded."""

    def keywords(self, event: int) -> dict[str, Any]:
        """What an op was given by keyword, where that was recorded."""

    @property
    def counted(self) -> Sequence[str]:
        """The counters that ranges and ops have, where some were counted."""

    def counters(self, event: int) -> dict[str, int]:
        """What was counted in an event, by the counters' names."""

    def cpp_stack(self, event: int) -> Sequence[CppFrame]:
        """The C++ functions that an event was begun in, innermost first, where they were recorded."""

    def memory(self, event: int) -> MemoryChange | None:
        """What an allocator did in an event of kind ``MEMORY``; None for any other event."""

    @property
    def cpu_memory(self) -> Sequence[int]:
        """Bytes of the host taken less given back in each event, those inside it included."""

    @property
    def self_cpu_memory(self) -> Sequence[int]:
        """The same without the events inside."""

    @property
    def device_memory(self) -> Sequence[int]:
        """The same as `cpu_memory` of all devices."""

    @property
    def self_device_memory(self) -> Sequence[int]:
        """The same as `self_cpu_memory` of all devices."""

    @property
    def flops(self) -> Sequence[int]:
        """FLOPs of each event with what runs inside it, where they were counted."""

    def groups(self, *, by_inputs: bool = False) -> list[OpGroup]:
        """The events summed up by name, in the order in which each name first occurred."""

    def parted_groups(self, *, by_inputs: bool, by_overload: bool, stack_depth: int) -> list[OpGroup] | None:
        """The same, with events apart by their overloads and their `stack_depth` innermost callers too.

        None where only the events can tell these: what a trace says of them one by one.
        """
