"""What one cycle of a schedule recorded, as the results are made from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from pytest_opprof.capture.call_tree import CallNode
    from pytest_opprof.capture.device_use import DeviceUse
    from pytest_opprof.capture.memory import MemoryUse
    from pytest_opprof.capture.op_groups import OpGroup
    from pytest_opprof.events.user_frames import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """What one cycle of a schedule recorded.

    Attributes:
        memory: Each step's, of the host.
        device_memory: Each step's, of all devices.
        places: Per op, the user's lines that it was called from, and how often; empty where neither call
            sites nor stacks were recorded.
        callers: By such a line: the user's lines that its function was called from, and theirs in turn; empty
            where they were not noted.
        parts: The same of what calls from each line add to a metric of the op, by the metric.
        device: What devices did; None where none was used.
        totals: Further totals, by the names of `metrics.TOTALS`: a number for each step.
        functions: By such a total, what it consists of in the step with most of it, as in `TestResult`.
        tells_views: Whether torch's schemas were asked which ops are views. A trace has no schemas.
    """

    steps: int
    groups: Sequence[OpGroup]
    tree: Iterable[CallNode] = ()
    memory: Sequence[MemoryUse] = ()
    device_memory: Sequence[MemoryUse] = ()
    places: Mapping[str, Mapping[Place, int]] = field(default_factory=dict)
    callers: Mapping[Place, Collection[Place]] = field(default_factory=dict)
    parts: Mapping[str, Mapping[str, Mapping[Place, int]]] = field(default_factory=dict)
    device: DeviceUse | None = None
    totals: Mapping[str, Sequence[int]] = field(default_factory=dict)
    functions: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    tells_views: bool = False
