"""A finished window: typed views of the native columns, and Python objects made when asked for."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from pytest_opprof.capture.call_sites import CalledFrom, read_called_from
from pytest_opprof.capture.call_tree import CallNode, read_call_tree
from pytest_opprof.capture.cpp_stacks import CppFrame, CppStacks
from pytest_opprof.capture.cuda import CUDA
from pytest_opprof.capture.device_use import DeviceUse, read_device_use
from pytest_opprof.capture.fields import FieldValue, decode_counters, decode_fields
from pytest_opprof.capture.inputs import (
    INPUT_KEYS,
    Inputs,
    TensorIdentity,
    decode_identities,
    decode_inputs,
    decode_text,
    keyword_words,
)
from pytest_opprof.capture.memory import MemoryChange, MemoryUse, memory_change, memory_use
from pytest_opprof.capture.names import name_text
from pytest_opprof.capture.native import ffi, lib
from pytest_opprof.capture.native_calls import check, view_of
from pytest_opprof.capture.op_groups import OpGroup, flops_by, read_groups, sum_up
from pytest_opprof.capture.op_values import (
    OpOutputs,
    OpValue,
    decode_forward_thread,
    decode_outputs,
    decode_values,
)
from pytest_opprof.capture.torch_compile import Compilations
from pytest_opprof.capture.trace_file import write_trace
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
from pytest_opprof.kinds import EventKind

# Of an event that carries nothing: no decoder takes it for its own.
_NO_BLOCK: Final = memoryview(bytes(4)).cast("I")
_GIVEN_KEYWORDS: Final = frozenset({EventKind.RANGE, EventKind.TORCH})

# As torch's ``use_device`` has them, by torch's numbers.
_DEVICE_NAMES: Final = {1: "cuda", 12: "xpu", 15: "hpu", 19: "mtia", 20: "privateuseone"}


class Recording:
    """One finished window: thread by thread, each thread's events in the order in which they began.

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
            `call_tree`, `steps` and `stats` as if it had them all.
        sources: Where events came from, in the collector's words.
        compilations: What torch.compile did in each step, where somebody watched.
    """

    def __init__(self, result: Any, *, sources: tuple[str, ...]) -> None:
        """Take ownership of a native ``op_result``."""
        self._result = ffi.gc(result, self._free)
        self.sources = sources
        self.compilations: tuple[Compilations, ...] = ()
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
    def use_device(self) -> str | None:
        """The kind of device that was recorded, in lower case; None for none."""
        devices = {lane.device_type for lane in self.threads} - {0}
        if devices:
            return _DEVICE_NAMES.get(min(devices), "device")
        return CUDA if CUDA in self.sources else None  # nothing ran there, but memory may have been taken

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

    def overload_name(self, event: int) -> str:
        """The overload of a torch op, such as ``int`` of ``aten::transpose.int``; "" where it has none.

        Needs overloads to have been recorded.
        """
        return name_text(lib.op_result_overload(self._result, event))

    def _block(self, event: int) -> memoryview[int]:
        return self._block_at(self._args_at[event])

    def _block_at(self, at: int) -> memoryview[int]:
        return self._args[at - 1 :] if at else _NO_BLOCK

    @functools.cached_property
    def _args(self) -> memoryview[int]:
        words = ffi.new("uint64_t *")
        pointer = lib.op_result_args(self._result, words)
        return view_of(self._result, pointer, count=words[0], code="I")

    def inputs(self, event: int) -> Inputs | None:
        """What a torch op, or a range with ``args``, was given; None where shapes were not recorded."""
        return decode_inputs(self._block(event))

    @property
    def kineto_result(self) -> None:
        """None: these events were not told by Kineto."""

    def kineto_event(self, _event: int, /) -> object | None:
        """None for every event, for the same reason."""
        return None

    def identities(self, event: int) -> list[list[TensorIdentity | None]] | None:
        """For each input of a torch op, which tensors it is; None as `inputs`. Needs shapes and memory."""
        return decode_identities(self._block(event))

    def values(self, event: int) -> list[OpValue]:
        """What a torch op was given, with the tensors' identities where outputs were recorded."""
        return decode_values(self._block(event))

    def outputs(self, event: int) -> OpOutputs | None:
        """What a torch op gave back; None where outputs were not recorded."""
        return decode_outputs(self._block_at(lib.op_result_outputs(self._result, event)))

    def named_forward_thread(self, event: int) -> int:
        """As `forward_thread`, also of nodes without a forward op, such as AccumulateGrad."""
        return decode_forward_thread(self._block(event))

    def args_text(self, event: int) -> str | None:
        """The ``args`` of a ``record_function``; None where there were none."""
        return decode_text(self._block(event))

    def fields(self, event: int) -> dict[str, FieldValue]:
        """What an event of another library carries, such as its NVTX domain, colour and payload.

        Also what a `_RecordFunctionFast` was given by keyword. Empty where it carries nothing.
        """
        return decode_fields(self._block(event))

    def keywords(self, event: int) -> dict[str, Any]:
        """What an op was given by keyword, as torch.compile's and Triton's launches are.

        Torch's own ranges need recorded shapes.
        """
        if self.kind[event] not in _GIVEN_KEYWORDS:
            return {}
        block = self._block(event)
        found = decode_fields(keyword_words(block) or block)
        return {key: value for key, value in found.items() if key not in INPUT_KEYS}

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

    def memory_use(self, *, on_device: bool = False) -> tuple[list[MemoryUse], MemoryUse]:
        """The host's memory (or that of all devices) in each step, and in the whole window.

        Raises:
            CollectorError: There is no memory to do so.
        """
        with self._lock:
            *steps, whole = memory_use(self._result, len(self.steps) + 1, on_device=on_device)
        return steps, whole

    def count_flops(self, formulas: Mapping[str, Callable[[Inputs], int | None]]) -> None:
        """Evaluate a formula once for each distinct op and its inputs; needs recorded shapes.

        From then on `flops` and `groups` have them, and `sources` has "flops".

        Args:
            formulas: By an op's name, what tells its FLOPs in place of the collector's own formula; None for
                inputs whose FLOPs cannot be told.

        Raises:
            CollectorError: There is no memory to do so.
        """
        with self._lock:
            rows = read_groups(self._result, lib.OP_GROUP_BY_INPUTS, steps=len(self.steps))
            told = [flops_by(formulas.get(row.name), row, self.inputs) for row in rows]
            check(lib.op_result_count_flops(self._result, told, len(told)))
        self.flops = view_of(self._result, lib.op_result_flops(self._result), count=self._count, code="q")
        self.sources = (*(source for source in self.sources if source != "flops"), "flops")

    @functools.cached_property
    def flops(self) -> memoryview[int]:
        """FLOPs of each event with what runs inside it; 0 before `count_flops`."""
        return memoryview(bytes(8 * self._count)).cast("q")

    def groups(self, *, by_inputs: bool = False, by_values: bool = False) -> list[OpGroup]:
        """The events summed up by name (and by the shapes of their inputs), in order of first start.

        Args:
            by_inputs: Events whose inputs differ in shape are apart.
            by_values: Events whose inputs differ in anything are apart: in a type, a stride, a number.

        Raises:
            CollectorError: There is no memory to do so.
        """
        by = lib.OP_GROUP_BY_SHAPES if by_inputs else lib.OP_GROUP_BY_NAME
        if by_values:
            by = lib.OP_GROUP_BY_INPUTS
        with self._lock:
            return read_groups(self._result, by, steps=len(self.steps))

    def parted_groups(self, *, by_inputs: bool, by_overload: bool, stack_depth: int) -> list[OpGroup] | None:
        """The same, with events apart by their overloads and their `stack_depth` innermost callers too.

        Two rows may have the same stack: where lines that differ read the same.

        Raises:
            CollectorError: There is no memory to do so.
        """
        by = lib.OP_GROUP_BY_SHAPES if by_inputs else lib.OP_GROUP_BY_NAME
        if by_overload:
            by |= lib.OP_GROUP_BY_OVERLOAD
        with self._lock:
            return read_groups(self._result, by, steps=len(self.steps), stack_depth=stack_depth)

    def device_use(self) -> DeviceUse | None:
        """What devices did for each row of `groups`; None where none was used.

        Raises:
            CollectorError: There is no memory to do so.
        """
        with self._lock:
            _, groups, _ = sum_up(self._result, lib.OP_GROUP_BY_NAME)
            return read_device_use(self._result, groups=groups, steps=len(self.steps))

    def call_tree(self, *, limit: int = 2000) -> list[CallNode]:
        """The call paths within the steps (all, where there are no steps), at most `limit`, the costliest.

        A kept path's callers are kept too, and stand before it.

        Raises:
            CollectorError: There is no memory to do so.
        """
        with self._lock:
            return read_call_tree(self._result, limit=limit)

    def called_from(self) -> list[CalledFrom]:
        """Each op and range of the steps by its call sites; empty where these were not noted."""
        return read_called_from(self._result)

    def write_chrome_trace(self, path: Any, *, metadata: Mapping[str, str] | None = None) -> None:
        """Write Chrome trace events, whole or not at all; gzip where the name ends in ``.gz``.

        Args:
            path: The file to write. An earlier one is replaced.
            metadata: Top-level members of the trace; values are JSON text.

        Raises:
            ValueError: A metadata value is not JSON.
            OSError: The file cannot be written; an existing file is unchanged.
        """
        _ = self._cpp_stacks  # whose frames are named by one thread alone
        write_trace(self._result, path, metadata=metadata or {})
