"""Compare two traces op by op."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_opprof.analysis.collectives import is_collective
from pytest_opprof.events.kineto_recording import RecordingView


@dataclass(frozen=True, slots=True, kw_only=True)
class OpFigures:
    """An op's figures in one trace: per step, or of the whole trace if the comparison is not by steps."""

    count: float = 0.0
    self_cpu_ns: float = 0.0  # time on the host, without the ops inside
    self_device_ns: float = 0.0  # time of the device work it launched; for device work, its own duration


@dataclass(frozen=True, slots=True, kw_only=True)
class OpDifference:
    """One op in both traces."""

    name: str
    is_on_device: bool
    is_annotation: bool  # it is a named range, not an op
    base: OpFigures
    head: OpFigures

    @property
    def is_collective(self) -> bool:
        """Whether its device time includes waiting for other ranks."""
        return self.is_on_device and (is_collective(self.name) or self.name.startswith("nccl:"))

    @property
    def change_ns(self) -> float:
        """How much longer it takes in the head: device time for device work, else self CPU time."""
        if self.is_on_device:
            return self.head.self_device_ns - self.base.self_device_ns
        return self.head.self_cpu_ns - self.base.self_cpu_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceDifference:
    """Two traces side by side."""

    ops: tuple[OpDifference, ...]  # the ops of both, largest change of time first
    base_steps: int  # the base's steps, by which its figures are divided; 0 if either trace has none
    head_steps: int  # the same for the head


_Key = tuple[str, int, bool]


def difference(base: RecordingView, head: RecordingView) -> TraceDifference:
    """Compare two recordings per step, or as a whole if either has no steps."""
    by_steps = bool(base.steps and head.steps)
    sides = [_figures(recording, by_steps=by_steps) for recording in (base, head)]
    ops = [
        OpDifference(
            name=key[0],
            is_on_device=bool(key[1]),
            is_annotation=key[2],
            base=sides[0].get(key, OpFigures()),
            head=sides[1].get(key, OpFigures()),
        )
        for key in sides[0] | sides[1]
    ]
    ops.sort(key=lambda op: (-abs(op.change_ns), -abs(op.head.count - op.base.count), op.name))
    return TraceDifference(
        ops=tuple(ops),
        base_steps=len(base.steps) if by_steps else 0,
        head_steps=len(head.steps) if by_steps else 0,
    )


def _figures(recording: RecordingView, *, by_steps: bool) -> dict[_Key, OpFigures]:
    found: dict[_Key, OpFigures] = {}
    for group in recording.groups():
        count, self_ns, device_ns = (
            sum(group.steps[name]) / len(recording.steps) if by_steps else group.sums[name]
            for name in ("count", "self_ns", "self_device_ns")
        )
        if count:
            figures = OpFigures(count=count, self_cpu_ns=self_ns, self_device_ns=device_ns)
            found[group.name, group.device_type, group.is_user_annotation] = figures
    return found
