"""Groups and calls made without a recording, as the input of results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from pytest_opprof.kinds import EventKind
from pytest_opprof.results.rows import Cycle
from pytest_opprof.results.run import OpRow, TestResult

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_opprof.capture.op_groups import OpGroup
    from pytest_opprof.capture.window import CallNode


@dataclass(frozen=True, kw_only=True)
class Group:
    """Stands in for `capture.op_groups.OpGroup`."""

    name: str
    kind: EventKind = EventKind.TORCH
    is_user_annotation: bool = False
    background: bool = False
    is_async: bool = False
    count: int = 0
    views: int = 0
    total_ns: int = 0
    self_ns: int = 0
    cpu_memory: int = 0
    device_memory: int = 0
    flops: int = 0
    device_type: int = 0
    device_total_ns: int = 0
    self_device_ns: int = 0
    kernels: int = 0
    steps: Mapping[str, tuple[int, ...]]

    @property
    def sums(self) -> dict[str, int]:
        """The sums of the columns, in steps or not."""
        return {column: getattr(self, column) for column in COLUMNS}


@dataclass(frozen=True, kw_only=True)
class Node:
    """Stands in for `capture.window.CallNode`."""

    parent: int
    name: str
    count: int = 1
    self_ns: int = 0


COLUMNS = (
    "count",
    "views",
    "total_ns",
    "self_ns",
    "cpu_memory",
    "device_memory",
    "flops",
    "device_total_ns",
    "self_device_ns",
    "kernels",
)
EMPTY = TestResult(node_id="tests/test_a.py::test_x", sources=("ranges", "ops"))


def op(
    name: str, *counts: int, each_step: Mapping[str, tuple[int, ...]] | None = None, **others: object
) -> Group:
    """A group with N calls in each step; a call takes 9 ns, 5 of them its own."""
    steps = dict.fromkeys(("views", "cpu_memory", "device_memory", "flops"), (0,) * len(counts))
    steps |= {
        "count": counts,
        "total_ns": tuple(9 * c for c in counts),
        "self_ns": tuple(5 * c for c in counts),
    }
    return Group(name=name, steps=steps | dict(each_step or {}), **others)  # type: ignore[arg-type]


def cycle(*groups: Group, steps: int = 2, tree: tuple[Node, ...] = ()) -> Cycle:
    """A recorded cycle."""
    return Cycle(steps=steps, groups=cast("list[OpGroup]", groups), tree=cast("list[CallNode]", tree))


def row(test: TestResult, name: str) -> OpRow:
    """The one row of that name."""
    (found,) = (row for row in test.ops if row.name == name)
    return found
