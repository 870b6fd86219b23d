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

# By the name of a total: the column of the rows' metric that is part of it.
_COLUMNS = {
    whole.name: metric.column or metric.name
    for metric, whole in (
        *zip(device.OP_TIMES, device.TOTAL_TIMES, strict=True),
        *zip(device.OP_COUNTS.values(), device.DEVICE_COUNTS, strict=True),
    )
}
_TIMES = (device.DEVICE_TIME_TOTAL.column, device.SELF_DEVICE_TIME_TOTAL.column)

Sums = dict[str, list[int]]  # by column of `OpGroup.steps`, one number a step; without columns of zeros


def add_cycle(sums: Sums, measured: Mapping[str, Sequence[int]], *, steps: int, first_step: int) -> None:
    """Add the columns of a cycle to those of a test; the cycle's first step is ``first_step`` of the test."""
    for column, values in measured.items():
        if any(values):
            here = sums.setdefault(column, [0] * steps)
            for step, value in enumerate(values, start=first_step):
                here[step] += value


def with_derived(sums: Sums) -> Sums:
    """With the metrics that are sums or ratios of the collector's measures."""
    copies = [sums[name] for key in device.HOST_DIRECTIONS if (name := f"copies_{key}") in sums]
    return sums | {
        "host_copies": [sum(values) for values in zip(*copies, strict=True)],
        device.IDLE_FRACTION.name: _ratio(sums, "idle_ns", "span_ns", scale=EVERY_PPM),
        device.QUEUE_DEPTH.name: _ratio(sums, "depth", "depths", scale=ONE_IN_THOUSANDTHS),
    }


def _ratio(sums: Sums, part: str, whole: str, *, scale: int) -> list[int]:
    wholes = sums.get(whole, [])
    parts = sums.get(part, [0] * len(wholes))
    return [a * scale // b if b else 0 for a, b in zip(parts, wholes, strict=True)]


def device_totals(cycles: Iterable[Cycle], *, steps: int) -> dict[str, list[int]]:
    """All totals of a test, including zeros."""
    sums: Sums = {}
    first_step, unsized, undirected = 0, 0, 0
    for cycle in cycles:
        if cycle.device is not None:
            add_cycle(sums, cycle.device.steps, steps=steps, first_step=first_step)
            unsized, undirected = unsized + cycle.device.unsized, undirected + cycle.device.undirected
        for group in cycle.groups:
            if group.kind.is_work:
                own = dict.fromkeys(_TIMES, group.steps["self_device_ns"])
                add_cycle(sums, own, steps=steps, first_step=first_step)
        first_step += cycle.steps
    sums = with_derived(sums)
    found = {total: sums.get(column) or [0] * steps for total, column in _COLUMNS.items()}
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
