"""A finished window, with everything the collector knows about it."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from pytest_opprof.capture.call_sites import CalledFrom, CallSite
from pytest_opprof.capture.cuda import CUDA
from pytest_opprof.capture.inputs import (
    INPUT_KEYS,
    FieldValue,
    Inputs,
    decode_fields,
    decode_inputs,
    decode_text,
    keyword_words,
)
from pytest_opprof.capture.native import ffi, lib
from pytest_opprof.capture.native_calls import check, name_text, value_of
from pytest_opprof.capture.op_groups import DeviceUse, OpGroup, add_device_work, flops_by, read_groups
from pytest_opprof.capture.op_values import (
    OpValue,
    TensorIdentity,
    decode_forward_thread,
    decode_identities,
    decode_outputs,
    decode_values,
)
from pytest_opprof.capture.result_columns import ResultColumns
from pytest_opprof.capture.torch_compile import Compilations
from pytest_opprof.capture.trace_file import json_members, write_natively
from pytest_opprof.capture.window import CallNode, MemoryUse
from pytest_opprof.kinds import EventKind

_GIVEN_KEYWORDS: Final = frozenset({EventKind.RANGE, EventKind.TORCH})

# Torch's names for ``use_device``, by torch's numbers.
_DEVICE_NAMES: Final = {1: "cuda", 12: "xpu", 15: "hpu", 19: "mtia", 20: "privateuseone"}


class Recording(ResultColumns):
    """One finished window of the collector, or what a file says about one."""

    def __init__(self, result: Any, *, sources: tuple[str, ...]) -> None:
        """Take ownership of a native ``op_result``."""
        super().__init__(result)
        self.sources = sources  # the names of the sources that events came from
        # what torch.compile did in each step; empty if nothing watched
        self.compilations: tuple[Compilations, ...] = ()

    @functools.cached_property
    def use_device(self) -> str | None:
        """The kind of device that was recorded, in lower case; None for none."""
        devices = {lane.device_type for lane in self.threads} - {0}
        if devices:
            return _DEVICE_NAMES.get(min(devices), "device")
        return CUDA if CUDA in self.sources else None  # nothing ran there, but memory may have been taken

    def overload_name(self, event: int) -> str:
        """The overload of a torch op, such as ``int`` of ``aten::transpose.int``; "" if it has none.

        Needs overloads to have been recorded.
        """
        return name_text(lib.op_result_overload(self._result, event))

    def _block(self, event: int) -> memoryview[int]:
        return self._block_at(self._args_at[event])

    def inputs(self, event: int) -> Inputs | None:
        """What a torch op, or a range with ``args``, was given; None if shapes were not recorded."""
        return decode_inputs(self._block(event))

    @property
    def kineto_result(self) -> None:
        """None: these events do not come from Kineto."""

    def kineto_event(self, _event: int, /) -> object | None:
        """None for every event, for the same reason."""
        return None

    def identities(self, event: int) -> list[list[TensorIdentity | None]] | None:
        """For each input of a torch op, its tensors; None as in `inputs`. Needs shapes and memory."""
        return decode_identities(self._block(event))

    def values(self, event: int) -> list[OpValue]:
        """A torch op's inputs, with the tensors' identities if outputs were recorded."""
        return decode_values(self._block(event))

    def outputs(self, event: int) -> tuple[str, list[OpValue]]:
        """A torch op's schema and outputs; empty if they were not recorded."""
        schema, values = decode_outputs(self._block_at(lib.op_result_outputs(self._result, event)))
        return name_text(schema) if schema else "", values

    def named_forward_thread(self, event: int) -> int:
        """As `forward_thread`, also for nodes without a forward op, such as AccumulateGrad."""
        return decode_forward_thread(self._block(event))

    def args_text(self, event: int) -> str | None:
        """The ``args`` of a ``record_function``; None if there were none."""
        return decode_text(self._block(event))

    def fields(self, event: int) -> dict[str, FieldValue]:
        """The named values of another library's event, such as its NVTX domain, colour and payload.

        Also the keywords of a `_RecordFunctionFast`. Empty if it has none.
        """
        return decode_fields(self._block(event))

    def keywords(self, event: int) -> dict[str, Any]:
        """The keywords given to an op, such as a launch by torch.compile or Triton.

        Torch's own ranges need recorded shapes.
        """
        if self.kind[event] not in _GIVEN_KEYWORDS:
            return {}
        block = self._block(event)
        found = decode_fields(keyword_words(block) or block)
        return {key: value for key, value in found.items() if key not in INPUT_KEYS}

    def memory_use(self, *, on_device: bool = False) -> tuple[list[MemoryUse], MemoryUse]:
        """The host's memory (or that of all devices) in each step, and in the whole window."""
        rows = ffi.new("op_memory_use **")
        with self._lock:
            check(lib.op_result_memory_use(self._result, on_device, rows))
            *steps, whole = (value_of(MemoryUse, rows[0][i]) for i in range(len(self.steps) + 1))
        return steps, whole

    def count_flops(self, formulas: Mapping[str, Callable[[Inputs], int | None]]) -> None:
        """Count FLOPs, once for each op with distinct inputs; needs recorded shapes.

        From then on `flops` and `groups` have them, and `sources` has "flops". A formula replaces the
        collector's own of the op; it gives None if the FLOPs are unknown.
        """
        with self._lock:
            rows = read_groups(self._result, lib.OP_GROUP_BY_INPUTS, steps=len(self.steps))
            told = [flops_by(formulas.get(row.name), row, self.inputs) for row in rows]
            check(lib.op_result_count_flops(self._result, told, len(told)))
        self.__dict__.pop("flops", None)  # an earlier view is outdated
        self.sources = (*(source for source in self.sources if source != "flops"), "flops")

    def parted_groups(self, *, by_inputs: bool, by_overload: bool, stack_depth: int) -> list[OpGroup] | None:
        """As `groups`, but also grouped by overload and by the `stack_depth` innermost callers.

        Two rows may show the same stack, if different lines read the same.
        """
        by = lib.OP_GROUP_BY_SHAPES if by_inputs else lib.OP_GROUP_BY_NAME
        if by_overload:
            by |= lib.OP_GROUP_BY_OVERLOAD
        with self._lock:
            return read_groups(self._result, by, steps=len(self.steps), stack_depth=stack_depth)

    def groups_with_device_work(self) -> tuple[list[OpGroup], DeviceUse | None]:
        """As `groups`, with what devices did for each row as further columns; and `device_use`."""
        with self._lock:
            groups = read_groups(self._result, lib.OP_GROUP_BY_NAME, steps=len(self.steps))
            return groups, add_device_work(self._result, groups, steps=len(self.steps))

    def device_use(self) -> DeviceUse | None:
        """What devices did; None if none was used."""
        return self.groups_with_device_work()[1]

    def call_tree(self, *, limit: int = 2000) -> list[CallNode]:
        """The costliest call paths in the steps (in the window, if it has none), at most `limit`.

        A path's callers are kept too, and stand before it.
        """
        nodes = ffi.new("op_path **")
        count = ffi.new("uint64_t *")
        with self._lock:
            check(lib.op_result_paths(self._result, limit, nodes, count))
            rows = [nodes[0][i] for i in range(count[0])]
            return [value_of(CallNode, row, name=name_text(row.name)) for row in rows]

    def called_from(self) -> list[CalledFrom]:
        """Each op and range of the steps by its call sites; empty if these were not noted."""
        count = ffi.new("uint64_t *")
        rows = lib.op_result_called_from(self._result, count)
        sites = lib.op_result_sites(self._result, ffi.new("uint32_t *"))

        @functools.cache
        def site_of(number: int) -> CallSite:
            found = sites[number - 1]
            caller = site_of(found.caller) if found.caller else None
            return CallSite(name_text(found.file), name_text(found.function), found.line, caller)

        return [
            CalledFrom(
                name_text(row.name),
                site_of(row.site),
                calls=row.count,
                nbytes=row.bytes,
                nodes=row.nodes,
                flops=row.flops,
                retained=row.retained,
            )
            for row in (rows[i] for i in range(count[0]))
        ]

    def write_chrome_trace(self, path: Any, *, metadata: Mapping[str, str] | None = None) -> None:
        """Write Chrome trace events, whole or not at all; compressed if the name ends in ``.gz``.

        The metadata are top-level members of the trace, as JSON texts; a `ValueError` names one that is not
        JSON.
        """
        _ = self._cpp_rows  # names its frames, under the lock
        told = {key: json.dumps(value) for key, value in self._metadata_of_losses().items()}
        members = json_members({**(metadata or {}), **told}).encode()
        name = str(Path(path)).encode("utf-8", "replace")
        write_natively(path, lambda file: lib.op_result_write_trace(self._result, file, members, name))

    def _metadata_of_losses(self) -> dict[str, Any]:
        return self.stats.as_metadata()
