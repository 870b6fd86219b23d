"""Typed views of a native result's columns, and Python objects made on demand."""

from __future__ import annotations

import functools
import threading
from typing import Any, Final

from pytest_opprof.capture.cpp_stacks import CppFrame
from pytest_opprof.capture.inputs import decode_fields
from pytest_opprof.capture.native import ffi, lib
from pytest_opprof.capture.native_calls import check, name_text, text_at, value_of, view_of
from pytest_opprof.capture.op_groups import OpGroup, read_groups
from pytest_opprof.capture.window import MemoryChange, OpenCall, RecordingStats, StepInfo, ThreadInfo

# For an event without a block: no decoder accepts it.
_NO_BLOCK: Final = memoryview(bytes(4)).cast("I")


class ResultColumns:
    """The columns of a native result: thread by thread, the events of each in the order in which they began.

    Columns are read-only memoryviews of native memory with one entry per event, valid as long as they are
    referenced. Times are integer nanoseconds. Event n has the id ``first_id + 1 + n``, unique in the process.
    """

    def __init__(self, result: Any) -> None:
        """Take ownership of a native ``op_result``."""
        self._result = ffi.gc(result, self._free)
        self._lock = threading.Lock()  # for what the native result keeps only until the next query
        self._cpp_frames: dict[int, CppFrame] = {}
        columns = ffi.new("op_columns *")
        lib.op_result_columns(self._result, columns)
        self._count: int = columns.count
        view = functools.partial(view_of, self._result, count=self._count)
        self.start_ns = view(columns.start_ns, code="q")  # since `trace_start_ns`
        self.duration_ns = view(columns.duration_ns, code="q")  # -1 if it was open when the window closed
        # the duration less that of the events inside; 0 for open and asynchronous events
        self.self_ns = view(columns.self_ns, code="q")
        self.sequence_nr = view(columns.sequence_nr, code="q")  # autograd's numbers; -1 for none
        self.name_id = view(columns.name, code="I")
        self.thread = view(columns.thread, code="I")  # index into `threads`
        # torch's number of the thread that ran the forward op; 0 for none
        self.forward_thread = view(columns.forward_thread, code="I")
        self._args_at = view(columns.args, code="I")
        self.parent = view(columns.parent, code="i")  # index of the enclosing event; -1 for none
        self.step = view(columns.step, code="i")  # index into `steps`; -1 for none
        self.launcher = view(columns.launcher, code="i")  # the host event that caused a device event; or -1
        # the line of the enclosing Python function at which it began; 0 if unknown, or if an op around it has
        # one; needs Python calls
        self.line = view(columns.line, code="H")
        self.kind = view(columns.kind, code="B")  # numbers of `EventKind`
        self.flags = view(columns.flags, code="B")  # see ``FLAG_*`` in `kinds`
        self.scope = view(columns.scope, code="B")  # torch's RecordScope; 7 for every user annotation
        # there were too many events to keep: only `groups` by name, `steps` and `stats` cover them
        self.is_summed = bool(lib.op_result_is_folded(self._result))
        self.first_id: int = lib.op_result_first_id(self._result)
        self.trace_start_ns: int = lib.op_result_trace_start(self._result)  # since the epoch
        self.trace_end_ns: int = lib.op_result_trace_duration(self._result)  # since `trace_start_ns`

    def __len__(self) -> int:
        return self._count

    @staticmethod
    def _free(result: Any) -> None:
        lib.op_result_free(result)

    @functools.cached_property
    def threads(self) -> tuple[ThreadInfo, ...]:
        """The threads that recorded, in the order of their first event."""
        count = ffi.new("uint32_t *")
        rows = lib.op_result_threads(self._result, count)
        return tuple(
            value_of(ThreadInfo, rows[i], index=i, name=text_at(rows[i].name)) for i in range(count[0])
        )

    @functools.cached_property
    def open_calls(self) -> tuple[OpenCall, ...]:
        """The calls that were open when the recording began, thread by thread, outermost first."""
        count = ffi.new("uint32_t *")
        rows = lib.op_result_open_calls(self._result, count)
        return tuple(value_of(OpenCall, rows[i], name=name_text(rows[i].name)) for i in range(count[0]))

    @functools.cached_property
    def steps(self) -> tuple[StepInfo, ...]:
        """The steps that began in the window."""
        count = ffi.new("uint32_t *")
        rows = lib.op_result_steps(self._result, count)
        return tuple(
            StepInfo(
                number=rows[i].number,
                start_ns=self.trace_start_ns + rows[i].start_ns,
                end_ns=self.trace_start_ns + (rows[i].end_ns if rows[i].end_ns >= 0 else self.trace_end_ns),
            )
            for i in range(count[0])
        )

    @functools.cached_property
    def stats(self) -> RecordingStats:
        """What was recorded, and what was lost."""
        native = self._native_stats
        return value_of(
            RecordingStats,
            native,
            truncated=bool(native.truncated),
            crash_recovery=bool(native.crash_recovery),
            uncounted_threads=native.uncounted,
            device_partial=native.cuda == lib.OP_CUDA_PARTIAL,
        )

    @functools.cached_property
    def _native_stats(self) -> Any:
        native = ffi.new("op_stats *")
        lib.op_result_stats(self._result, native)
        return native

    @functools.cached_property
    def counted(self) -> tuple[str, ...]:
        """The counters that ranges and ops have."""
        native = self._native_stats
        return tuple(text_at(lib.op_counter_name(number)) for number in native.counters[0 : native.counted])

    def name(self, event: int) -> str:
        """An event's name."""
        return name_text(self.name_id[event])

    def row_name(self, event: int) -> str:
        """The name of an event's row in `groups`."""
        return name_text(lib.op_name_group(self.name_id[event]))

    def _block_at(self, at: int) -> memoryview[int]:
        return self._args[at - 1 :] if at else _NO_BLOCK

    @functools.cached_property
    def _args(self) -> memoryview[int]:
        words = ffi.new("uint64_t *")
        pointer = lib.op_result_args(self._result, words)
        return view_of(self._result, pointer, count=words[0], code="I")

    def counters(self, event: int) -> dict[str, int]:
        """The counters of an event, including events inside, by the counters' names.

        Empty for events of other libraries, for calls, and for events that are asynchronous or were open at
        the end.
        """
        values = decode_fields(self._block_at(lib.op_result_counters(self._result, event)))
        return {name: value for name, value in values.items() if isinstance(value, int)}

    def cpp_stack(self, event: int) -> tuple[CppFrame, ...]:
        """The C++ functions in which an event began, innermost first.

        Empty if they were not recorded, as for calls and for events of other processes' traces.
        """
        found = []
        rows = self._cpp_rows
        at: int = lib.op_result_cpp_stack(self._result, event) - 1
        while at >= 0:
            row = rows[at]
            if at not in self._cpp_frames:
                self._cpp_frames[at] = CppFrame(
                    function=name_text(row.symbol) if row.symbol else "",
                    module=name_text(row.module) if row.module else "",
                    offset=row.offset,
                    address=row.address,
                )
            found.append(self._cpp_frames[at])
            at = row.caller
        return tuple(found)

    @functools.cached_property
    def _cpp_rows(self) -> Any:
        """All frames of C++ stacks; this looks up their names."""
        rows = ffi.new("op_cpp_frame **")
        with self._lock:
            check(lib.op_result_cpp_frames(self._result, rows, ffi.new("uint64_t *")))
        return rows[0]

    def memory(self, event: int) -> MemoryChange | None:
        """What an allocator did in an event; None for any other event."""
        change = ffi.new("op_memory *")
        if not lib.op_result_memory(self._result, event, change):
            return None
        return value_of(MemoryChange, change, nbytes=change.bytes)

    @functools.cached_property
    def _memory_columns(self) -> Any:
        columns = ffi.new("op_memory_columns *")
        with self._lock:
            check(lib.op_result_memory_columns(self._result, columns))
        return columns

    @functools.cached_property
    def cpu_memory(self) -> memoryview[int]:
        """Host bytes taken less given back in each event, including events inside."""
        return view_of(self._result, self._memory_columns.cpu, count=self._count, code="q")

    @functools.cached_property
    def self_cpu_memory(self) -> memoryview[int]:
        """`cpu_memory` without events inside: memory belongs to the innermost event of its thread."""
        return view_of(self._result, self._memory_columns.self_cpu, count=self._count, code="q")

    @functools.cached_property
    def device_memory(self) -> memoryview[int]:
        """`cpu_memory` of all devices."""
        return view_of(self._result, self._memory_columns.device, count=self._count, code="q")

    @functools.cached_property
    def self_device_memory(self) -> memoryview[int]:
        """`self_cpu_memory` of all devices."""
        return view_of(self._result, self._memory_columns.self_device, count=self._count, code="q")

    @functools.cached_property
    def flops(self) -> memoryview[int]:
        """FLOPs of each event, including events inside; 0 if they were not counted."""
        known = lib.op_result_flops(self._result)
        if not known:
            return memoryview(bytes(8 * self._count)).cast("q")
        return view_of(self._result, known, count=self._count, code="q")

    def groups(self, *, by_inputs: bool = False) -> list[OpGroup]:
        """The events summed up by name, in order of first start.

        Args:
            by_inputs: Also group by the shapes of inputs.

        Raises:
            CollectorError: Out of memory.
        """
        by = lib.OP_GROUP_BY_SHAPES if by_inputs else lib.OP_GROUP_BY_NAME
        with self._lock:
            return read_groups(self._result, by, steps=len(self.steps))
