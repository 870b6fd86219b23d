"""Execution traces in the Chakra schema, as torch's own observer writes them.

https://github.com/mlcommons/chakra and torch/csrc/profiler/standalone/execution_trace_observer.cpp
"""

from __future__ import annotations

import bisect
import json
import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pytest_opprof.capture.op_values import OpValue, TensorValue, plain_value
from pytest_opprof.capture.recording import Recording
from pytest_opprof.capture.trace_file import write_text
from pytest_opprof.kinds import BACKWARD_SCOPE, USER_SCOPE, EventKind

SCHEMA: Final = "1.1.1-chakra.0.0.4"

_PROCESS: Final = "[pytorch|profiler|execution_trace|process]"
_THREAD: Final = "[pytorch|profiler|execution_trace|thread]"
_WRAPPER: Final = "autograd::engine::evaluate_function"
_PROCESS_ID: Final = 1
_OP_KINDS: Final = frozenset({EventKind.TORCH, EventKind.RANGE, EventKind.ITT, EventKind.NVTX})
# By attribute name: its type, and its default.
_ATTRS: Final[Mapping[str, tuple[str, int | str]]] = {
    "rf_id": ("uint64", 0),
    "fw_parent": ("uint64", 0),
    "seq_id": ("int64", -1),
    "scope": ("uint64", 0),
    "tid": ("uint64", 0),
    "fw_tid": ("uint64", 0),
    "op_schema": ("string", ""),
    "kernel_backend": ("string", ""),
    "kernel_file": ("string", ""),
    # Empty in torch too, unless an environment variable enables it.
    "tensor_range": ("string", ""),
}


def write_execution_trace(recordings: Sequence[Recording], path: str | os.PathLike[str]) -> None:
    """Write recordings one after the other, compressed if the name ends in ``.gz``."""
    write_text(path, _pieces(recordings))


def _pieces(recordings: Sequence[Recording]) -> Iterator[str]:
    start = recordings[0].trace_start_ns if recordings else time.time_ns()
    end = recordings[-1].trace_start_ns + recordings[-1].trace_end_ns if recordings else start
    local = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(start / 1e9))
    head = {"schema": SCHEMA, "pid": os.getpid(), "time": local, "start_ts": _since_boot_ms(start)}
    yield json.dumps(head)[:-1] + ', "nodes": [\n'
    yield json.dumps(_node(_PROCESS_ID, _PROCESS, control=_PROCESS_ID, attrs=_attrs(scope=USER_SCOPE)))
    nodes = _Nodes()
    for recording in recordings:
        for node in nodes.of(recording):
            yield ",\n" + json.dumps(node)
    yield f'\n], "finish_ts": {_since_boot_ms(end)}}}\n'


def _since_boot_ms(epoch_ns: int) -> int:
    """A time as milliseconds of the steady clock, which torch uses."""
    return (time.monotonic_ns() - (time.time_ns() - epoch_ns)) // 1_000_000


class _Nodes:
    """Numbers the nodes of a file, and its tensors and storages by their addresses."""

    def __init__(self) -> None:
        self._last = _PROCESS_ID
        self._threads: dict[int, int] = {}
        self._tensors: dict[int, int] = {}
        self._storages: dict[int, int] = {}

    def of(self, recording: Recording) -> Iterator[dict[str, Any]]:
        """The nodes of a window: each thread's own node, then its ops in start order."""
        numbers: dict[int, int] = {}
        forward = _OpenOps(recording)
        for event in range(len(recording)):
            if recording.kind[event] not in _OP_KINDS:
                continue
            thread = recording.threads[recording.thread[event]]
            if thread.os_tid not in self._threads:
                self._threads[thread.os_tid] = self._next()
                attrs = _attrs(scope=USER_SCOPE, tid=thread.torch_thread)
                yield _node(self._threads[thread.os_tid], _THREAD, control=_PROCESS_ID, attrs=attrs)
            numbers[event] = self._next()
            parent = _op_around(recording, event)
            control = self._threads[thread.os_tid] if parent < 0 else numbers[parent]
            yield self._op(recording, event, numbers, control, forward)

    def _next(self) -> int:
        self._last += 1
        return self._last

    def _op(
        self, recording: Recording, event: int, numbers: dict[int, int], control: int, forward: _OpenOps
    ) -> dict[str, Any]:
        name, scope = recording.name(event), recording.scope[event]
        schema, outputs = recording.outputs(event)
        forward_thread = recording.named_forward_thread(event) if scope == BACKWARD_SCOPE else 0
        caller = control if forward_thread else 0
        thread = recording.threads[recording.thread[event]]
        if forward_thread and forward_thread != thread.torch_thread:
            around = forward.around(forward_thread, recording.start_ns[event])
            caller = numbers.get(around, _PROCESS_ID)
        text = recording.args_text(event)
        values = recording.values(event) if text is None else [plain_value("String", text)]
        backend, file, more = _kernel(recording.keywords(event))
        attrs = _attrs(
            rf_id=event + 1,
            fw_parent=caller,
            seq_id=-1 if name.startswith(_WRAPPER) else recording.sequence_nr[event],
            scope=scope,
            tid=thread.torch_thread,
            fw_tid=forward_thread,
            op_schema=schema,
            kernel_backend=backend,
            kernel_file=file,
        )
        return _node(
            numbers[event],
            name,
            control=control,
            attrs=attrs,
            inputs=self._values([*values, *more]),
            outputs=self._values(outputs),
        )

    def _values(self, values: Sequence[OpValue]) -> dict[str, list[Any]]:
        return {
            "values": [self._value(value.value) for value in values],
            "shapes": [value.shape for value in values],
            "types": [value.type for value in values],
            "strides": [value.strides for value in values],
        }

    def _value(self, value: Any) -> Any:
        if isinstance(value, TensorValue):
            tensor, storage = self._id(self._tensors, value.tensor), self._id(self._storages, value.storage)
            return [tensor, storage, value.offset, value.elements, value.item_bytes, value.device]
        if isinstance(value, list):
            return [self._value(member) for member in value]
        if isinstance(value, float) and not math.isfinite(value):
            return str(value)  # JSON has neither infinity nor NaN
        return "<None>" if value is None else value

    def _id(self, known: dict[int, int], address: int) -> int:
        if address == 0:
            return 0
        if address not in known:
            known[address] = self._next()
        return known[address]


class _OpenOps:
    """Finds the op that a thread was in at a time."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._rows: dict[int, list[int]] = {}

    def around(self, torch_thread: int, at_ns: int) -> int:
        """The innermost op that was open on the thread; -1 for none."""
        recording = self._recording
        if torch_thread not in self._rows:
            threads = {i for i, t in enumerate(recording.threads) if t.torch_thread == torch_thread}
            self._rows[torch_thread] = [
                event
                for event in range(len(recording))
                if recording.thread[event] in threads and recording.kind[event] in _OP_KINDS
            ]
        rows = self._rows[torch_thread]
        place = bisect.bisect_right(rows, at_ns, key=lambda row: recording.start_ns[row])
        row = rows[place - 1] if place else -1
        while row >= 0 and 0 <= recording.duration_ns[row] <= at_ns - recording.start_ns[row]:
            row = _op_around(recording, row)
        return row


def _op_around(recording: Recording, event: int) -> int:
    parent: int = recording.parent[event]
    while parent >= 0 and recording.kind[parent] not in _OP_KINDS:
        parent = recording.parent[parent]
    return parent


def _kernel(keywords: Mapping[str, Any]) -> tuple[str, str, list[OpValue]]:
    """The kernel backend, the kernel file and more inputs of a launch by torch.compile or Triton.

    As in torch, only a Triton kernel has a file name, and its stream as one more input.
    """
    backend, file, stream = (keywords.get(key) for key in ("kernel_backend", "kernel_file", "stream"))
    if backend != "triton":
        return backend if isinstance(backend, str) else "", "", []
    name = file.rpartition("/")[2] if isinstance(file, str) else ""
    return backend, name, [plain_value("Int", stream)] if isinstance(stream, int) else []


def _node(
    number: int,
    name: str,
    *,
    control: int,
    attrs: list[dict[str, Any]],
    inputs: dict[str, list[Any]] | None = None,
    outputs: dict[str, list[Any]] | None = None,
) -> dict[str, Any]:
    nothing: dict[str, list[Any]] = {"values": [], "shapes": [], "types": [], "strides": []}
    return {
        "id": number,
        "name": name,
        "ctrl_deps": control,
        "inputs": inputs or nothing,
        "outputs": outputs or nothing,
        "attrs": attrs,
    }


def _attrs(**known: int | str) -> list[dict[str, Any]]:
    return [
        {"name": name, "type": kind, "value": known.get(name, otherwise)}
        for name, (kind, otherwise) in _ATTRS.items()
    ]
