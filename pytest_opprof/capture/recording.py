"""A finished window: typed views of the native columns, and Python objects made when asked for."""

from __future__ import annotations

import enum
import functools
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from pytest_opprof._collector import ffi, lib
from pytest_opprof.capture.fields import FieldValue, decode_counters, decode_fields
from pytest_opprof.capture.inputs import (
    Inputs,
    TensorIdentity,
    decode_identities,
    decode_inputs,
    decode_text,
)
from pytest_opprof.capture.memory import MemoryChange, MemoryUse, memory_change, memory_use
from pytest_opprof.capture.native_calls import check
from pytest_opprof.capture.op_values import (
    OpOutputs,
    OpValue,
    decode_forward_thread,
    decode_outputs,
    decode_values,
)
from pytest_opprof.capture.sampling import EVERY_OP
from pytest_opprof.capture.trace_file import write_trace

FLAG_CROSSING: Final = 0x01
FLAG_ASYNC: Final = 0x10
FLAG_UNFINISHED: Final = 0x20
FLAG_BACKGROUND: Final = 0x40
USER_SCOPE: Final = 7  # torch's RecordScope::USER_SCOPE: a range that somebody named
FLAG_CREDITED: Final = 0x80
_MOST_FLOPS: Final = 2**53 - 1  # of one event; what documents can hold

# As torch's ``use_device`` has them, by torch's numbers.
_DEVICE_NAMES: Final = {1: "cuda", 12: "xpu", 15: "hpu", 19: "mtia", 20: "privateuseone"}


class OpKind(enum.IntEnum):
    """Where an event comes from."""

    RANGE = 1
    TORCH = 2
    ITT = 3
    NVTX = 4
    PYTHON_CALL = 5
    C_CALL = 6
    MARK = 7
    MEMORY = 8
    RUNTIME = 9
    DRIVER = 10
    KERNEL = 11
    MEMCPY = 12
    MEMSET = 13
    SYNC = 14
    DEVICE_RANGE = 15

    @property
    def is_on_device(self) -> bool:
        """It ran on a device and not on the host."""
        return self >= OpKind.KERNEL


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadInfo:
    """A thread that recorded at least one event, or a stream of a device that ran one.

    Attributes:
        torch_thread: Torch's own number for it, as `Recording.forward_thread` has them; 0 where it ran no op.
        device_type: Torch's number of the kind of device; 0 for the host.
        device_index: Which device of that kind; -1 for the host.
        resource: Of a device: the stream.
    """

    index: int
    os_tid: int
    name: str
    torch_thread: int = 0
    device_type: int = 0
    device_index: int = -1
    resource: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StepInfo:
    """One step of the schedule.

    Attributes:
        number: As the schedule counts, from 0.
        start_ns: Nanoseconds since the epoch.
        end_ns: Nanoseconds since the epoch; the window's end for a step that was open then.
    """

    number: int
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCall:
    """A Python call that was open when its thread came to the window: what the events lie in.

    Attributes:
        thread: Index into `Recording.threads`.
        line: That it was at when the thread came; 0 for not known.
        end_ns: When it ended, nanoseconds from `Recording.trace_start_ns`; -1 if it did not.
    """

    thread: int
    name: str
    line: int
    end_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingStats:
    """What was recorded, and what was lost.

    Attributes:
        events: Events in the columns.
        dropped: Events for which there was no room.
        truncated: The byte budget or the disk ended the recording early.
        threads: Threads that recorded.
        names: Distinct names known to this process.
        spilled_bytes: Written to the spill file.
        unmatched_ends: Ends whose begin is not on record, as of ranges begun before the window.
        names_overflowed: Events since the process began that share the name "(overflow)".
        crash_recovery: Had the process died, a later one could have read the recording.
        sampling: The share of torch's ops that was recorded, drawn at random; 1 for all.
        uncounted_threads: Threads whose counters the kernel refused, though others' were opened.
    """

    events: int
    dropped: int
    truncated: bool
    threads: int
    names: int
    spilled_bytes: int
    unmatched_ends: int
    names_overflowed: int
    crash_recovery: bool
    sampling: float = EVERY_OP
    uncounted_threads: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OpGroup:
    """One row of the key averages.

    Attributes:
        name: The op's; all ``ProfilerStep#k`` are ``ProfilerStep*``.
        first_event: Index of the earliest event.
        background: Run during steps, by threads that are no part of them.
        is_async: The earliest event ended out of order or on another thread.
        total_ns: Sum of durations, those of nested events of the same name included.
        self_ns: The same less what was spent in the events inside.
        min_ns: The shortest duration.
        max_ns: The longest.
        step_counts: Per step of the recording.
        step_total_ns: Per step of the recording.
        step_self_ns: Per step of the recording.
        device_type: Torch's number of where the events ran; 0 for the host. Events of a device have device
            time only, and `total_ns` 0.
        device_total_ns: Sum of the kernels, copies and fills launched in the events.
        self_device_ns: The same for what was launched by them, and by no op or range inside.
        step_device_total_ns: Per step of the recording.
        step_self_device_ns: Per step of the recording.
        args_event: Index of an event with this row's inputs.
        cpu_memory: Bytes of the host taken less given back, in events inside too.
        self_cpu_memory: The same, by the events themselves.
        device_memory: The same as `cpu_memory` of all devices.
        self_device_memory: The same as `self_cpu_memory` of all devices.
        flops: FLOPs of the events with what runs inside them; 0 until `Recording.count_flops`.
        counted_flops: What of these is not also in an event around: these add up to a whole.
        step_cpu_memory: Per step of the recording.
        step_flops: Per step of the recording.
        step_counted_flops: Per step of the recording.
    """

    name: str
    kind: OpKind
    scope: int
    is_user_annotation: bool
    background: bool
    is_async: bool
    count: int
    total_ns: int
    self_ns: int
    min_ns: int
    max_ns: int
    first_event: int
    step_counts: tuple[int, ...]
    step_total_ns: tuple[int, ...]
    step_self_ns: tuple[int, ...]
    device_type: int = 0
    device_total_ns: int = 0
    self_device_ns: int = 0
    step_device_total_ns: tuple[int, ...] = ()
    step_self_device_ns: tuple[int, ...] = ()
    args_event: int = 0
    cpu_memory: int = 0
    self_cpu_memory: int = 0
    device_memory: int = 0
    self_device_memory: int = 0
    step_cpu_memory: tuple[int, ...] = ()
    flops: int = 0
    counted_flops: int = 0
    step_flops: tuple[int, ...] = ()
    step_counted_flops: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CallNode:
    """One path of the call tree; `parent` is the index of the caller's node, -1 for a root."""

    parent: int
    name: str
    count: int
    total_ns: int
    self_ns: int


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
        kind: Numbers of `OpKind`.
        flags: ``FLAG_CROSSING`` (of a call that overlaps an op or range in part), ``FLAG_ASYNC``,
            ``FLAG_UNFINISHED``, ``FLAG_BACKGROUND``, ``FLAG_CREDITED``
            (memory that the event around it accounts for).
        scope: Torch's RecordScope; 7 for every user annotation.
        thread: Index into `threads`.
        trace_start_ns: Nanoseconds since the epoch.
        trace_end_ns: From `trace_start_ns`.
        sources: Where events came from, in the collector's words.
        counted: The counters that ranges and ops have.
    """

    def __init__(
        self,
        result: Any,
        *,
        sources: tuple[str, ...],
        sampling: float = EVERY_OP,
        counted: tuple[str, ...] = (),
    ) -> None:
        """Take ownership of a native ``op_result``."""
        self._result = ffi.gc(result, lib.op_result_free)
        self.sources = sources
        self.counted = counted
        self._sampling = sampling
        self._lock = threading.Lock()  # of what the native result keeps until it is asked again
        columns = ffi.new("op_columns *")
        lib.op_result_columns(self._result, columns)
        self._count: int = columns.count
        self.start_ns = self._view(columns.start_ns, "q")
        self.duration_ns = self._view(columns.duration_ns, "q")
        self.self_ns = self._view(columns.self_ns, "q")
        self.sequence_nr = self._view(columns.sequence_nr, "q")
        self.name_id = self._view(columns.name, "I")
        self.thread = self._view(columns.thread, "I")
        self.forward_thread = self._view(columns.forward_thread, "I")
        self._args_at = self._view(columns.args, "I")
        self.parent = self._view(columns.parent, "i")
        self.step = self._view(columns.step, "i")
        self.launcher = self._view(columns.launcher, "i")
        self.line = self._view(columns.line, "H")
        self.kind = self._view(columns.kind, "B")
        self.flags = self._view(columns.flags, "B")
        self.scope = self._view(columns.scope, "B")
        self.trace_start_ns: int = lib.op_result_trace_start(self._result)
        self.trace_end_ns: int = lib.op_result_trace_duration(self._result)

    def __len__(self) -> int:
        return self._count

    def _view(self, pointer: Any, code: Literal["q", "I", "i", "H", "B"]) -> memoryview[int]:
        item = {"q": 8, "I": 4, "i": 4, "H": 2, "B": 1}[code]
        # A view may outlive this object: through its pointer it keeps the native result alive.
        held = ffi.gc(ffi.cast("char *", pointer), functools.partial(_hold, self._result))
        return memoryview(ffi.buffer(held, self._count * item)).toreadonly().cast(code)

    @functools.cached_property
    def threads(self) -> tuple[ThreadInfo, ...]:
        """The threads that recorded, in the order of their first event."""
        count = ffi.new("uint32_t *")
        rows = lib.op_result_threads(self._result, count)
        return tuple(
            ThreadInfo(
                index=i,
                os_tid=rows[i].os_tid,
                name=ffi.string(rows[i].name).decode("utf-8", "replace"),
                torch_thread=rows[i].torch_thread,
                device_type=rows[i].device_type,
                device_index=rows[i].device_index,
                resource=rows[i].resource,
            )
            for i in range(count[0])
        )

    @functools.cached_property
    def use_device(self) -> str | None:
        """The kind of device that was recorded, in lower case; None for none."""
        devices = {lane.device_type for lane in self.threads} - {0}
        return _DEVICE_NAMES.get(min(devices), "device") if devices else None

    @functools.cached_property
    def open_calls(self) -> tuple[OpenCall, ...]:
        """The calls that were open when the recording began, thread by thread, outermost first."""
        count = ffi.new("uint32_t *")
        rows = lib.op_result_open_calls(self._result, count)
        return tuple(
            OpenCall(
                thread=rows[i].thread, name=name_text(rows[i].name), line=rows[i].line, end_ns=rows[i].end_ns
            )
            for i in range(count[0])
        )

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
        native = ffi.new("op_stats *")
        lib.op_result_stats(self._result, native)
        return RecordingStats(
            events=native.events,
            dropped=native.dropped,
            truncated=bool(native.truncated),
            threads=native.threads,
            names=native.names,
            spilled_bytes=native.spilled_bytes,
            unmatched_ends=native.unmatched_ends,
            names_overflowed=native.names_overflowed,
            crash_recovery=bool(native.crash_recovery),
            sampling=self._sampling,
            uncounted_threads=native.uncounted,
        )

    def name(self, event: int) -> str:
        """An event's name."""
        return name_text(self.name_id[event])

    def overload_name(self, event: int) -> str:
        """The overload of a torch op, such as ``int`` of ``aten::transpose.int``; "" where it has none.

        Needs overloads to have been recorded.
        """
        return name_text(lib.op_result_overload(self._result, event))

    def _block(self, event: int) -> memoryview[int] | None:
        at = self._args_at[event]
        return None if at == 0 else self._args[at - 1 :]

    @functools.cached_property
    def _args(self) -> memoryview[int]:
        words = ffi.new("uint64_t *")
        pointer = lib.op_result_args(self._result, words)
        held = ffi.gc(ffi.cast("char *", pointer), functools.partial(_hold, self._result))
        return memoryview(ffi.buffer(held, words[0] * 4)).toreadonly().cast("I")

    def inputs(self, event: int) -> Inputs | None:
        """What a torch op was given; None where shapes were not recorded or it is no torch op."""
        block = self._block(event)
        return None if block is None else decode_inputs(block)

    @property
    def kineto_result(self) -> None:
        """None: these events were not told by Kineto."""

    def kineto_event(self, _event: int, /) -> object | None:
        """None for every event, for the same reason."""
        return None

    def identities(self, event: int) -> list[list[TensorIdentity | None]] | None:
        """For each input of a torch op, which tensors it is; None as `inputs`. Needs shapes and memory."""
        block = self._block(event)
        return None if block is None else decode_identities(block)

    def values(self, event: int) -> list[OpValue]:
        """What a torch op was given, with the tensors' identities where outputs were recorded."""
        block = self._block(event)
        return [] if block is None else decode_values(block)

    def outputs(self, event: int) -> OpOutputs | None:
        """What a torch op gave back; None where outputs were not recorded."""
        at = lib.op_result_outputs(self._result, event)
        return None if at == 0 else decode_outputs(self._args[at - 1 :])

    def named_forward_thread(self, event: int) -> int:
        """As `forward_thread`, also of nodes without a forward op, such as AccumulateGrad."""
        block = self._block(event)
        return 0 if block is None else decode_forward_thread(block)

    def args_text(self, event: int) -> str | None:
        """The ``args`` of a ``record_function``; None where there were none."""
        block = self._block(event)
        return None if block is None else decode_text(block)

    def fields(self, event: int) -> dict[str, FieldValue]:
        """What an event of another library carries, such as its NVTX domain, colour and payload.

        Also what a `_RecordFunctionFast` was given by keyword. Empty where it carries nothing.
        """
        block = self._block(event)
        return {} if block is None else decode_fields(block, name_text)

    def counters(self, event: int) -> dict[str, int]:
        """What was counted in an event, what is inside it included, by the counters' names.

        Empty where nothing was: events of other libraries and calls have no counters, nor has one that is
        asynchronous, or was open at the end.
        """
        at = lib.op_result_counters(self._result, event)
        return {} if at == 0 else decode_counters(self._args[at - 1 :], name_text)

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
        return self._view(self._memory_columns.cpu, "q")

    @functools.cached_property
    def self_cpu_memory(self) -> memoryview[int]:
        """The same without the events inside: memory belongs to the innermost event of its thread."""
        return self._view(self._memory_columns.self_cpu, "q")

    @functools.cached_property
    def device_memory(self) -> memoryview[int]:
        """The same as `cpu_memory` of all devices."""
        return self._view(self._memory_columns.device, "q")

    @functools.cached_property
    def self_device_memory(self) -> memoryview[int]:
        """The same as `self_cpu_memory` of all devices."""
        return self._view(self._memory_columns.self_device, "q")

    def memory_use(self, *, on_device: bool = False) -> tuple[list[MemoryUse], MemoryUse]:
        """The host's memory (or that of all devices) in each step, and in the whole window.

        Raises:
            CollectorError: There is no memory to do so.
        """
        with self._lock:
            *steps, whole = memory_use(self._result, len(self.steps) + 1, on_device=on_device)
        return steps, whole

    def count_flops(self, formula: Callable[[str, Inputs], int | None]) -> None:
        """Evaluate a formula once for each distinct op and its inputs; needs recorded shapes.

        From then on `flops` and `groups` have them, and `sources` has "flops".

        Args:
            formula: From an op's name and inputs to its FLOPs; None for what has no formula.

        Raises:
            CollectorError: There is no memory to do so.
        """
        with self._lock:
            rows = self._groups(lib.OP_GROUP_BY_INPUTS)
            told = [self._flops_by(formula, row) for row in rows]
            check(lib.op_result_count_flops(self._result, told, len(told)))
        self.flops = self._view(lib.op_result_flops(self._result), "q")
        self.sources = (*(source for source in self.sources if source != "flops"), "flops")

    def _flops_by(self, formula: Callable[[str, Inputs], int | None], row: OpGroup) -> int:
        inputs = self.inputs(row.args_event)
        flops = None if inputs is None else formula(row.name, inputs)
        return -1 if flops is None or flops > _MOST_FLOPS else flops

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
        by = (
            lib.OP_GROUP_BY_INPUTS
            if by_values
            else lib.OP_GROUP_BY_SHAPES
            if by_inputs
            else lib.OP_GROUP_BY_NAME
        )
        with self._lock:
            return self._groups(by)

    def parted_groups(self, *, by_inputs: bool, by_overload: bool, stack_depth: int) -> list[OpGroup] | None:
        """The same, with events apart by their overloads and their `stack_depth` innermost callers too.

        Two rows may have the same stack: where lines that differ read the same.

        Raises:
            CollectorError: There is no memory to do so.
        """
        by = lib.OP_GROUP_BY_SHAPES if by_inputs else lib.OP_GROUP_BY_NAME
        with self._lock:
            return self._groups(by | (lib.OP_GROUP_BY_OVERLOAD if by_overload else 0), stack_depth)

    def _groups(self, by: int, stack_depth: int = 0) -> list[OpGroup]:
        rows = ffi.new("op_group **")
        count = ffi.new("uint64_t *")
        samples = ffi.new("int64_t **")
        check(lib.op_result_groups(self._result, by, stack_depth, rows, count, samples))
        n, steps = count[0], len(self.steps)
        flat = ffi.unpack(samples[0], 8 * n * steps) if n * steps else []
        planes = [flat[i * n * steps : (i + 1) * n * steps] for i in range(8)]

        def of(plane: int, row: int) -> tuple[int, ...]:
            return tuple(planes[plane][row * steps : (row + 1) * steps])

        groups = []
        for i in range(n):
            row = rows[0][i]
            groups.append(
                OpGroup(
                    name=name_text(row.name),
                    kind=OpKind(row.kind),
                    scope=row.scope,
                    is_user_annotation=bool(row.is_user_annotation),
                    background=bool(row.background),
                    is_async=bool(row.is_async),
                    count=row.count,
                    total_ns=row.total_ns,
                    self_ns=row.self_ns,
                    min_ns=row.min_ns,
                    max_ns=row.max_ns,
                    first_event=row.first_event,
                    step_counts=of(0, i),
                    step_total_ns=of(1, i),
                    step_self_ns=of(2, i),
                    device_type=row.device_type,
                    device_total_ns=row.device_total_ns,
                    self_device_ns=row.self_device_ns,
                    step_device_total_ns=of(3, i),
                    step_self_device_ns=of(4, i),
                    args_event=row.args_event,
                    cpu_memory=row.cpu_memory,
                    self_cpu_memory=row.self_cpu_memory,
                    device_memory=row.device_memory,
                    self_device_memory=row.self_device_memory,
                    step_cpu_memory=of(5, i),
                    flops=row.flops,
                    counted_flops=row.counted_flops,
                    step_flops=of(6, i),
                    step_counted_flops=of(7, i),
                )
            )
        return groups

    def call_tree(self, *, limit: int = 2000) -> list[CallNode]:
        """The call paths within the steps (all, where there are no steps), at most `limit`, the costliest.

        A kept path's callers are kept too, and stand before it.

        Raises:
            CollectorError: There is no memory to do so.
        """
        nodes = ffi.new("op_path **")
        count = ffi.new("uint64_t *")
        with self._lock:
            check(lib.op_result_paths(self._result, limit, nodes, count))
            return [
                CallNode(
                    parent=node.parent,
                    name=name_text(node.name),
                    count=node.count,
                    total_ns=node.total_ns,
                    self_ns=node.self_ns,
                )
                for node in (nodes[0][i] for i in range(count[0]))
            ]

    def write_chrome_trace(self, path: Any, *, metadata: Mapping[str, str] | None = None) -> None:
        """Write Chrome trace events, whole or not at all; gzip where the name ends in ``.gz``.

        Args:
            path: The file to write. An earlier one is replaced.
            metadata: Top-level members of the trace; values are JSON text.

        Raises:
            ValueError: A metadata value is no JSON.
            OSError: The file cannot be written; an earlier file is as it was.
        """
        write_trace(self._result, path, metadata=metadata or {})


def _hold(_owner: object, _pointer: object) -> None:
    """The destructor of a borrowed pointer: what it keeps alive until then is its first argument."""


@functools.lru_cache(maxsize=1 << 16)
def name_text(name_id: int) -> str:
    """The text of an interned name."""
    length = ffi.new("uint32_t *")
    pointer = lib.op_name_text(name_id, length)
    raw = bytes(ffi.buffer(pointer, length[0]))
    try:
        return raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:  # a C library's range, in an encoding of its own
        return raw.decode("utf-8", "backslashreplace")
