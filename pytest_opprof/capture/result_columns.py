"""Typed views of the columns of a native result, and Python objects made when asked for."""

from __future__ import annotations

import functools
import threading
from typing import Any, Final

from pytest_opprof.capture.cpp_stacks import CppFrame, CppStacks
from pytest_opprof.capture.fields import decode_counters
from pytest_opprof.capture.memory import MemoryChange, memory_change
from pytest_opprof.capture.names import name_text
from pytest_opprof.capture.native import ffi, lib
from pytest_opprof.capture.native_calls import check, view_of
from pytest_opprof.capture.op_groups import OpGroup, read_groups
from pytest_opprof.capture.window import (
    OpenCall,
    RecordingStats,
    StepInfo,
    ThreadInfo,
    read_counted,
    read_open_calls,
    read_stats,
    read_steps,
    read_threads,
)

# Of an event that carries nothing: no decoder takes it for its own.
_NO_BLOCK: Final = memoryview(bytes(4)).cast("I")


class ResultColumns:
    """The columns of a native result: thread by thread, the events of each in the order in which they began.

    Columns are read-only memoryviews of native memory, one entry an event; they stay valid as long as
    somebody holds them. Times are integer nanoseconds.

    Attributes:
        start_ns: From `trace_start_ns`.
        duration_ns: -1 for an event that was open when the window closed.
        self_ns: The duration less that of the events inside; 0 for open and asynchronous events.
        sequence_nr: Autograd's numbers; -1 for none.
        forward_thread: Torch's number of the thread that ran the forward op; 0 for none.
        parent: Index of the event around; -1 for none.
        step: Index into `steps`; -1 for none.
        launcher: Of a device event: index of the host event that caused it; -1 for none known.
        line: Of the Python function around the event, where it began; 0 where it is not known, or where the
            event is inside an op that has one. Needs Python calls.
        kind: Numbers of `EventKind`.
        flags: ``FLAG_CROSSING`` (of a call that overlaps an op or range in part), ``FLAG_VIEW`` (an op),
            ``FLAG_ASYNC``, ``FLAG_UNFINISHED``, ``FLAG_BACKGROUND``, ``FLAG_CREDITED``
            (memory that the event around it accounts for).
        scope: Torch's RecordScope; 7 for every user annotation.
        thread: Index into `threads`.
        first_id: Event n has the id ``first_id + 1 + n``, which no other event of the process has.
        trace_start_ns: Nanoseconds since the epoch.
        trace_end_ns: From `trace_start_ns`.
        is_summed: There were more events than were to be kept: it has none, and `groups` by name,
            `steps` and `stats` as if it had them all.
    """

    def __init__(self, result: Any) -> None:
        """Take ownership of a native ``op_result``."""
        self._result = ffi.gc(result, self._free)
        self._lock = threading.Lock()  # of what the native result keeps until it is asked again
        columns = ffi.new("op_columns *")
        lib.op_result_columns(self._result, columns)
        self._count: int = columns.count
        self.start_ns = view_of(self._result, columns.start_ns, count=self._count, code="q")
        self.duration_ns = view_of(self._result, columns.duration_ns, count=self._count, code="q")
        self.self_ns = view_of(self._result, columns.self_ns, count=self._count, code="q")
        self.sequence_nr = view_of(self._result, columns.sequence_nr, count=self._count, code="q")
        self.name_id = view_of(self._result, columns.name, count=self._count, code="I")
        self.thread = view_of(self._result, columns.thread, count=self._count, code="I")
        self.forward_thread = view_of(self._result, columns.forward_thread, count=self._count, code="I")
        self._args_at = view_of(self._result, columns.args, count=self._count, code="I")
        self.parent = view_of(self._result, columns.parent, count=self._count, code="i")
        self.step = view_of(self._result, columns.step, count=self._count, code="i")
        self.launcher = view_of(self._result, columns.launcher, count=self._count, code="i")
        self.line = view_of(self._result, columns.line, count=self._count, code="H")
        self.kind = view_of(self._result, columns.kind, count=self._count, code="B")
        self.flags = view_of(self._result, columns.flags, count=self._count, code="B")
        self.scope = view_of(self._result, columns.scope, count=self._count, code="B")
        self.is_summed = bool(lib.op_result_is_folded(self._result))
        self.first_id: int = lib.op_result_first_id(self._result)
        self.trace_start_ns: int = lib.op_result_trace_start(self._result)
        self.trace_end_ns: int = lib.op_result_trace_duration(self._result)

    def __len__(self) -> int:
        return self._count

    @staticmethod
    def _free(result: Any) -> None:
        lib.op_result_free(result)

    @functools.cached_property
    def threads(self) -> tuple[ThreadInfo, ...]:
        """The threads that recorded, in the order of their first event."""
        return read_threads(self._result)

    @functools.cached_property
    def open_calls(self) -> tuple[OpenCall, ...]:
        """The calls that were open when the recording began, thread by thread, outermost first."""
        return read_open_calls(self._result)

    @functools.cached_property
    def steps(self) -> tuple[StepInfo, ...]:
        """The steps that began in the window."""
        return read_steps(self._result, trace_start_ns=self.trace_start_ns, trace_end_ns=self.trace_end_ns)

    @functools.cached_property
    def stats(self) -> RecordingStats:
        """What was recorded, and what was lost."""
        return read_stats(self._result)

    @functools.cached_property
    def counted(self) -> tuple[str, ...]:
        """The counters that ranges and ops have."""
        return read_counted(self._result)

    def name(self, event: int) -> str:
        """An event's name."""
        return name_text(self.name_id[event])

    def row_name(self, event: int) -> str:
        """The name of the row that an event is summed up in."""
        return name_text(lib.op_name_group(self.name_id[event]))

    def _block_at(self, at: int) -> memoryview[int]:
        return self._args[at - 1 :] if at else _NO_BLOCK

    @functools.cached_property
    def _args(self) -> memoryview[int]:
        words = ffi.new("uint64_t *")
        pointer = lib.op_result_args(self._result, words)
        return view_of(self._result, pointer, count=words[0], code="I")

    def counters(self, event: int) -> dict[str, int]:
        """What was counted in an event, what is inside it included, by the counters' names.

        Empty where nothing was: events of other libraries and calls have no counters, nor has one that is
        asynchronous, or was open at the end.
        """
        return decode_counters(self._block_at(lib.op_result_counters(self._result, event)))

    def cpp_stack(self, event: int) -> tuple[CppFrame, ...]:
        """The C++ functions that an event was begun in, innermost first.

        Empty where they were not recorded: of calls, and of what came from other processes' traces.
        """
        return self._cpp_stacks.stack(event)

    @functools.cached_property
    def _cpp_stacks(self) -> CppStacks:
        with self._lock:
            return CppStacks(self._result)

    def memory(self, event: int) -> MemoryChange | None:
        """What an allocator did in an event; None for any other event."""
        return memory_change(self._result, event)

    @functools.cached_property
    def _memory_columns(self) -> Any:
        columns = ffi.new("op_memory_columns *")
        with self._lock:
            check(lib.op_result_memory_columns(self._result, columns))
        return columns

    @functools.cached_property
    def cpu_memory(self) -> memoryview[int]:
        """Bytes of the host taken less given back in each event, those inside it included."""
        return view_of(self._result, self._memory_columns.cpu, count=self._count, code="q")

    @functools.cached_property
    def self_cpu_memory(self) -> memoryview[int]:
        """The same without the events inside: memory belongs to the innermost event of its thread."""
        return view_of(self._result, self._memory_columns.self_cpu, count=self._count, code="q")

    @functools.cached_property
    def device_memory(self) -> memoryview[int]:
        """The same as `cpu_memory` of all devices."""
        return view_of(self._result, self._memory_columns.device, count=self._count, code="q")

    @functools.cached_property
    def self_device_memory(self) -> memoryview[int]:
        """The same as `self_cpu_memory` of all devices."""
        return view_of(self._result, self._memory_columns.self_device, count=self._count, code="q")

    @functools.cached_property
    def flops(self) -> memoryview[int]:
        """FLOPs of each event with what runs inside it; 0 where nobody counted them."""
        known = lib.op_result_flops(self._result)
        if not known:
            return memoryview(bytes(8 * self._count)).cast("q")
        return view_of(self._result, known, count=self._count, code="q")

    def groups(self, *, by_inputs: bool = False) -> list[OpGroup]:
        """The events summed up by name (and by the shapes of their inputs), in order of first start.

        Args:
            by_inputs: Events whose inputs differ in shape are apart.

        Raises:
            CollectorError: There is no memory to do so.
        """
        by = lib.OP_GROUP_BY_SHAPES if by_inputs else lib.OP_GROUP_BY_NAME
        with self._lock:
            return read_groups(self._result, by, steps=len(self.steps))
