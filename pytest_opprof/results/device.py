"""Device work of each row and of the whole test, step by step, as metrics."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_opprof.metrics import device
from pytest_opprof.units import EVERY_PPM, ONE_IN_THOUSANDTHS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_opprof.capture.op_groups import DeviceUse
    from pytest_opprof.results.rows import Cycle
    from pytest_opprof.results.run import CaptureStats

# A metric's name, by the collector's name of the measure.
_MEASURE_OF = {
    name: name.replace("copied_bytes", "bytes") for name in device.OP_COUNTS if name != "host_copies"
} | {
    device.BUSY_TIME.name: "busy_ns",
    device.DEVICE_TIME_TOTAL.name: device.DEVICE_TIME_TOTAL.name,
    device.SELF_DEVICE_TIME_TOTAL.name: device.SELF_DEVICE_TIME_TOTAL.name,
}
# The total that includes a row's metric, by their names.
_WHOLE = {time.name: whole.name for time, whole in zip(device.OP_TIMES, device.TOTAL_TIMES, strict=True)} | {
    name: metric.name for name, metric in device.TOTAL_OF_COUNT.items()
}

Values = dict[str, list[int]]  # by metric, one number a step


class DeviceSums:
    """Device work of one row, or of a whole test, summed over the cycles of a schedule."""

    def __init__(self, *, steps: int) -> None:
        self._steps = steps
        self._sums: Values = {}

    def add(self, measured: Mapping[str, Sequence[int]], *, first_step: int = 0) -> None:
        """Add one cycle, by measure; its first step is ``first_step`` of the test."""
        for measure, values in measured.items():
            if any(values):
                sums = self._sums.setdefault(measure, [0] * self._steps)
                for step, value in enumerate(values, start=first_step):
                    sums[step] += value

    def metrics(self) -> Values:
        """By metric, one number for each step; metrics that are always 0 are left out."""
        sums = self._sums
        if not sums:
            return {}  # like without devices
        found = {name: sums.get(measure) for name, measure in _MEASURE_OF.items()}
        copies = [
            sums[name] for direction in device.HOST_DIRECTIONS if (name := f"copies_{direction}") in sums
        ]
        found["host_copies"] = [sum(values) for values in zip(*copies, strict=True)]
        found[device.IDLE_FRACTION.name] = self._ratio("idle_ns", "span_ns", scale=EVERY_PPM)
        found[device.QUEUE_DEPTH.name] = self._ratio("depth", "depths", scale=ONE_IN_THOUSANDTHS)
        return {name: values for name, values in found.items() if values and any(values)}

    def _ratio(self, part: str, whole: str, *, scale: int) -> list[int]:
        wholes = self._sums.get(whole, [])
        parts = self._sums.get(part, [0] * len(wholes))
        return [a * scale // b if b else 0 for a, b in zip(parts, wholes, strict=True)]


def device_totals(cycles: Iterable[Cycle], *, steps: int) -> Values:
    """All totals of a test, including zeros."""
    sums = DeviceSums(steps=steps)
    times = (device.DEVICE_TIME_TOTAL.name, device.SELF_DEVICE_TIME_TOTAL.name)
    first_step, unsized, undirected = 0, 0, 0
    for cycle in cycles:
        if cycle.device is not None:
            sums.add(cycle.device.whole.steps, first_step=first_step)
            unsized, undirected = unsized + cycle.device.unsized, undirected + cycle.device.undirected
        for group in cycle.groups:
            if group.kind.is_work:
                own = group.steps["self_device_ns"]
                sums.add(dict.fromkeys(times, own), first_step=first_step)
        first_step += cycle.steps
    metrics = sums.metrics()
    found = {whole: metrics.get(name, [0] * steps) for name, whole in _WHOLE.items()}
    return {name: values for name, values in found.items() if not _unknown(name, unsized, undirected)}


def _unknown(total: str, unsized: int, undirected: int) -> bool:
    """Whether incomplete copies leave out a total: better none than one too low."""
    told_by_direction = total.startswith(("host_copies", *(f"copies_{key}" for key in device.DIRECTIONS)))
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
