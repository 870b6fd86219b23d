"""The recording of one cycle of a schedule, from which results are made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_opprof.capture.op_groups import DeviceUse, OpGroup
    from pytest_opprof.capture.window import CallNode, MemoryUse
    from pytest_opprof.events.user_frames import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """One recorded cycle of a schedule.

    Attributes:
        memory: Each step's, on the host.
        device_memory: Each step's, on all devices.
        places: Per op, the user's lines that called it, and how often; empty if neither call sites nor stacks
            were recorded.
        callers: By such a line: the user's lines that called its function, and theirs in turn, each with how
            many calls of ops were on their way through it; empty if not noted.
        parts: By metric: what calls from each line add to that metric of the op.
        device: Device work; None if no device was used.
        totals: Further totals, by the names of `metrics.TOTALS`: a number for each step.
        functions: By such a total, its parts in the step with most of it, as in `TestResult`.
        tells_views: Whether torch's schemas said which ops are views. A trace has no schemas.
    """

    steps: int
    groups: Sequence[OpGroup]
    tree: Iterable[CallNode] = ()
    memory: Sequence[MemoryUse] = ()
    device_memory: Sequence[MemoryUse] = ()
    places: Mapping[str, Mapping[Place, int]] = field(default_factory=dict)
    callers: Mapping[Place, Mapping[Place, int]] = field(default_factory=dict)
    parts: Mapping[str, Mapping[str, Mapping[Place, int]]] = field(default_factory=dict)
    device: DeviceUse | None = None
    totals: Mapping[str, Sequence[int]] = field(default_factory=dict)
    functions: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    tells_views: bool = False
