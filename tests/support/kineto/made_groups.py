"""Groups and calls as a recording gives them, without one: what results are made of."""

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from pytest_opprof.results.cycle import Cycle
from pytest_opprof.results.run import OpRow, TestResult

if TYPE_CHECKING:
    from pytest_opprof.capture.call_tree import CallNode
    from pytest_opprof.capture.op_groups import OpGroup


class Kind(enum.IntEnum):
    """As `capture.op_kind.OpKind`, which needs the built collector."""

    RANGE = 1
    TORCH = 2
    PYTHON_CALL = 5
    MARK = 7
    MEMORY = 8
    RUNTIME = 9
    KERNEL = 11
    MEMCPY = 12
    MEMSET = 13
    SYNC = 14
    DEVICE_RANGE = 15


@dataclass(frozen=True, kw_only=True)
class Group:
    """As `capture.op_groups.OpGroup`."""

    name: str
    kind: Kind = Kind.TORCH
    is_user_annotation: bool = False
    background: bool = False
    is_async: bool = False
    count: int = 0
    views: int = 0
    total_ns: int = 0
    self_ns: int = 0
    step_counts: tuple[int, ...]
    step_views: tuple[int, ...] = ()
    step_total_ns: tuple[int, ...] = ()
    step_self_ns: tuple[int, ...] = ()
    cpu_memory: int = 0
    step_cpu_memory: tuple[int, ...] = ()
    device_memory: int = 0
    step_device_memory: tuple[int, ...] = ()
    flops: int = 0
    step_flops: tuple[int, ...] = ()
    step_counted_flops: tuple[int, ...] = ()
    device_type: int = 0
    device_total_ns: int = 0
    self_device_ns: int = 0
    step_device_total_ns: tuple[int, ...] = ()
    step_self_device_ns: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Node:
    """As `capture.call_tree.CallNode`."""

    parent: int
    name: str
    count: int = 1
    self_ns: int = 0


EMPTY = TestResult(node_id="tests/test_a.py::test_x", sources=("ranges", "ops"))


def op(name: str, *counts: int, **others: object) -> Group:
    """A group with so many calls in each step; a call takes 9 ns, 5 of them its own."""
    fields = {
        "step_views": (0,) * len(counts),
        "step_total_ns": tuple(9 * c for c in counts),
        "step_self_ns": tuple(5 * c for c in counts),
        "step_cpu_memory": (0,) * len(counts),
        "step_device_memory": (0,) * len(counts),
        "step_flops": (0,) * len(counts),
    }
    return Group(name=name, step_counts=counts, **(fields | others))  # type: ignore[arg-type]


def cycle(*groups: Group, steps: int = 2, tree: tuple[Node, ...] = ()) -> Cycle:
    """What a cycle recorded."""
    return Cycle(steps=steps, groups=cast("list[OpGroup]", groups), tree=cast("list[CallNode]", tree))


def row(test: TestResult, name: str) -> OpRow:
    """The one row of that name."""
    (found,) = (row for row in test.ops if row.name == name)
    return found
