"""Device work of each row and of the whole test, step by step, as metrics."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_opprof.metrics.device import (
    BUSY_TIME,
    DEVICE_TIME_TOTAL,
    DIRECTIONS,
    HOST_DIRECTIONS,
    IDLE_FRACTION,
    OP_COUNTS,
    OP_TIMES,
    QUEUE_DEPTH,
    SELF_DEVICE_TIME_TOTAL,
    TOTAL_OF_COUNT,
    TOTAL_TIMES,
)
from pytest_opprof.units import EVERY_PPM, ONE_IN_THOUSANDTHS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_opprof.capture.op_groups import DeviceUse, DeviceWork, OpGroup
    from pytest_opprof.results.run import CaptureStats

# A metric's name, by the collector's name of the measure.
_MEASURE_OF = {name: name.replace("copied_bytes", "bytes") for name in OP_COUNTS if name != "host_copies"} | {
    BUSY_TIME.name: "busy_ns",
    DEVICE_TIME_TOTAL.name: DEVICE_TIME_TOTAL.name,
    SELF_DEVICE_TIME_TOTAL.name: SELF_DEVICE_TIME_TOTAL.name,
}
# The total that includes a row's metric, by their names.
_WHOLE = {time.name: whole.name for time, whole in zip(OP_TIMES, TOTAL_TIMES, strict=True)} | {
    name: metric.name for name, metric in TOTAL_OF_COUNT.items()
}

Values = dict[str, list[int]]  # by metric, one number a step


class DeviceSums:
    """Device work of one row, or of a whole test, summed over the cycles of a schedule."""

    def __init__(self, *, steps: int) -> None:
        self._steps = steps
        self._sums: Values = {}

    def add(self, work: DeviceWork, *, first_step: int) -> None:
        """Add one cycle; its first step is ``first_step`` of the test."""
        for measure, values in work.steps.items():
            self._put(measure, values, first_step=first_step)

    def add_outside(self, work: DeviceWork) -> None:
        """Add work outside of steps, as one step."""
        for measure, value in work.outside.items():
            self._put(measure, (value,), first_step=0)

    def add_times(self, total_ns: Sequence[int], self_ns: Sequence[int], *, first_step: int) -> None:
        """Add device time of a cycle's row."""
        self._put(DEVICE_TIME_TOTAL.name, total_ns, first_step=first_step)
        self._put(SELF_DEVICE_TIME_TOTAL.name, self_ns, first_step=first_step)

    def _put(self, name: str, values: Sequence[int], *, first_step: int) -> None:
        if not any(values):
            return
        sums = self._sums.setdefault(name, [0] * self._steps)
        for step, value in enumerate(values, start=first_step):
            sums[step] += value

    def metrics(self) -> Values:
        """By metric, one number for each step; metrics that are always 0 are left out."""
        sums = self._sums
        if not sums:
            return {}  # like without devices
        found = {name: sums.get(measure) for name, measure in _MEASURE_OF.items()}
        copies = [sums[name] for direction in HOST_DIRECTIONS if (name := f"copies_{direction}") in sums]
        found["host_copies"] = [sum(values) for values in zip(*copies, strict=True)]
        found[IDLE_FRACTION.name] = self._ratio("idle_ns", "span_ns", scale=EVERY_PPM)
        found[QUEUE_DEPTH.name] = self._ratio("depth", "depths", scale=ONE_IN_THOUSANDTHS)
        return {name: values for name, values in found.items() if values and any(values)}

    def _ratio(self, part: str, whole: str, *, scale: int) -> list[int]:
        wholes = self._sums.get(whole, [])
        parts = self._sums.get(part, [0] * len(wholes))
        return [a * scale // b if b else 0 for a, b in zip(parts, wholes, strict=True)]


def device_totals(cycles: Iterable[tuple[DeviceUse | None, Sequence[OpGroup], int]], *, steps: int) -> Values:
    """All totals of a test, by the names of `metrics.TOTALS`, including zeros.

    Args:
        cycles: Each cycle's device work, its groups, and its number of steps.
        steps: Of all cycles.
    """
    sums = DeviceSums(steps=steps)
    first_step, unsized, undirected = 0, 0, 0
    for use, groups, count in cycles:
        if use is not None:
            sums.add(use.whole, first_step=first_step)
            unsized, undirected = unsized + use.unsized, undirected + use.undirected
        for group in groups:
            if group.kind.is_work:
                own = group.steps["self_device_ns"]
                sums.add_times(own, own, first_step=first_step)
        first_step += count
    metrics = sums.metrics()
    found = {whole: metrics.get(name, [0] * steps) for name, whole in _WHOLE.items()}
    return {name: values for name, values in found.items() if not _unknown(name, unsized, undirected)}


def _unknown(total: str, unsized: int, undirected: int) -> bool:
    """Whether incomplete copies leave out a total: better none than one too low."""
    told_by_direction = total.startswith(("host_copies", *(f"copies_{key}" for key in DIRECTIONS)))
    return (unsized > 0 and total.endswith(".bytes")) or (undirected > 0 and told_by_direction)


def with_device_gaps(capture: CaptureStats, uses: Iterable[DeviceUse | None]) -> CaptureStats:
    """``capture`` with the gaps in the record of devices."""
    known = [use for use in uses if use is not None]
    return replace(
        capture,
        unmatched_launches=sum(use.unmatched_launches for use in known),
        unmatched_kernels=sum(use.unmatched_kernels for use in known),
        untimed_work=sum(use.untimed for use in known),
    )
