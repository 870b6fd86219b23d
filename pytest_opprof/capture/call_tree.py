"""The call paths of a recording, summed up by the collector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pytest_opprof.capture.names import name_text
from pytest_opprof.capture.native import ffi, lib
from pytest_opprof.capture.native_calls import check, value_of


@dataclass(frozen=True, slots=True, kw_only=True)
class CallNode:
    """One path of the call tree; `parent` is the index of the caller's node, -1 for a root."""

    parent: int
    name: str
    count: int
    total_ns: int
    self_ns: int


def read_call_tree(result: Any, *, limit: int) -> list[CallNode]:
    """A native result's costliest paths, at most `limit`; no other thread may query it meanwhile.

    Raises:
        CollectorError: Out of memory.
    """
    nodes = ffi.new("op_path **")
    count = ffi.new("uint64_t *")
    check(lib.op_result_paths(result, limit, nodes, count))
    return [
        value_of(CallNode, node, name=name_text(node.name)) for node in (nodes[0][i] for i in range(count[0]))
    ]
