"""What the events need of a recording, whether from the collector, an imported trace or a test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from pytest_opprof.capture.cpp_stacks import CppFrame
from pytest_opprof.capture.inputs import Inputs
from pytest_opprof.capture.op_groups import OpGroup
from pytest_opprof.capture.window import MemoryChange, OpenCall, RecordingStats, StepInfo, ThreadInfo
from pytest_opprof.events.kineto_event import KinetoResult


class RecordingView(Protocol):
    """One finished window as columns: thread by thread, each thread's events in preorder.

    Each column has one entry per event. Times are nanoseconds, counted from the window's start.
    """

    def __len__(self) -> int:
        """The number of events."""

    @property
    def start_ns(self) -> Sequence[int]:
        """When each event began."""

    @property
    def duration_ns(self) -> Sequence[int]:
        """The duration of each event; -1 if it was still open at the window's end."""

    @property
    def self_ns(self) -> Sequence[int]:
        """The duration of each event less that of the events inside it."""

    @property
    def first_id(self) -> int:
        """Event n has the id ``first_id + 1 + n``, unless Kineto gave it another."""

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
        """The host event that caused each device event; -1 if unknown."""

    @property
    def line(self) -> Sequence[int]:
        """The line that the Python function around each event was at; 0 if unknown."""

    @property
    def open_calls(self) -> Sequence[OpenCall]:
        """The Python calls that were open when the recording began, thread by thread, outermost first."""

    @property
    def kind(self) -> Sequence[int]:
        """The kind of each event: the numbers of ``EventKind``."""

    @property
    def flags(self) -> Sequence[int]:
        """The flags of each event: the bits named ``FLAG_`` in `kinds`."""

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
        """The result of Kineto's that the recording was made from, if any."""

    def kineto_event(self, event: int) -> object | None:
        """An object with some methods of Kineto's events, for `told`; None if there is none."""

    def name(self, event: int) -> str:
        """An event's name."""

    def row_name(self, event: int) -> str:
        """The name an event is summed up under; that of a Python call has no line."""

    def overload_name(self, event: int) -> str:
        """The overload of a torch op; "" if it has none or it was not recorded."""

    def inputs(self, event: int) -> Inputs | None:
        """The inputs of an event, if recorded."""

    def keywords(self, event: int) -> dict[str, Any]:
        """The keyword arguments of an op, if recorded."""

    @property
    def counted(self) -> Sequence[str]:
        """The names of the counters that were recorded."""

    def counters(self, event: int) -> dict[str, int]:
        """The values of an event's counters by name."""

    def cpp_stack(self, event: int) -> Sequence[CppFrame]:
        """The C++ functions that an event began in, innermost first, if recorded."""

    def memory(self, event: int) -> MemoryChange | None:
        """The allocation or free in an event of kind ``MEMORY``; None for other events."""

    @property
    def cpu_memory(self) -> Sequence[int]:
        """Host memory allocated less freed in each event and the events inside it, bytes."""

    @property
    def self_cpu_memory(self) -> Sequence[int]:
        """`cpu_memory` without the events inside."""

    @property
    def device_memory(self) -> Sequence[int]:
        """As `cpu_memory`, for all devices."""

    @property
    def self_device_memory(self) -> Sequence[int]:
        """As `self_cpu_memory`, for all devices."""

    @property
    def flops(self) -> Sequence[int]:
        """FLOPs of each event and the events inside it, if counted."""

    def groups(self, *, by_inputs: bool = False) -> list[OpGroup]:
        """The events summed up by name, in the order in which each name first occurred."""

    def parted_groups(self, *, by_inputs: bool, by_overload: bool, stack_depth: int) -> list[OpGroup] | None:
        """As `groups`, also split by overload and by the `stack_depth` innermost callers.

        None if only the events themselves tell these, as in a trace.
        """
