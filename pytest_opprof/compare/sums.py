"""Which total of a test includes a metric of one of its rows."""

from __future__ import annotations

from pytest_opprof.kinds import OpKind
from pytest_opprof.metrics import (
    AUTOGRAD_NODES,
    BYTES,
    COUNT,
    CPU_MEMORY,
    CPU_MEMORY_ALLOCATED,
    FLOPS,
    FLOPS_TOTAL,
    MEMORY_RETAINED,
    NODES,
    OPS_BYTES,
    OPS_COUNT,
    RANGES_COUNT,
    RETAINED,
    Metric,
)
from pytest_opprof.metrics.device import (
    COPIES_COUNT,
    DEVICE_MEMORY,
    DEVICE_MEMORY_ALLOCATED,
    KERNELS_COUNT,
    MEMSETS_COUNT,
    TOTAL_OF_COUNT,
)
from pytest_opprof.results.run import OpRow

_OF_KIND = {
    OpKind.OP: OPS_COUNT,
    OpKind.RANGE: RANGES_COUNT,
    OpKind.KERNEL: KERNELS_COUNT,
    OpKind.MEMCPY: COPIES_COUNT,
    OpKind.MEMSET: MEMSETS_COUNT,
}
_OF_METRIC = {
    CPU_MEMORY.name: CPU_MEMORY_ALLOCATED,
    DEVICE_MEMORY.name: DEVICE_MEMORY_ALLOCATED,
    FLOPS.name: FLOPS_TOTAL,
    BYTES.name: OPS_BYTES,
    NODES.name: AUTOGRAD_NODES,
    RETAINED.name: MEMORY_RETAINED,
    **TOTAL_OF_COUNT,
}
_PART = {total.name: metric for metric, total in _OF_METRIC.items()}


def total_of(metric: str, kind: OpKind | None) -> Metric | None:
    """The total that includes a metric of rows of this kind; None if there is none."""
    return _OF_METRIC.get(metric) or (_OF_KIND.get(kind) if kind else None)


def part_metric(total: Metric) -> str:
    """The metric of rows that a total adds up; empty if there is none."""
    return COUNT.name if total in _OF_KIND.values() else _PART.get(total.name, "")


def part_of(total: Metric, row: OpRow) -> float:
    """A row's part of a total, as the mean of a step; inner rows may be included in several."""
    if total in _OF_KIND.values():
        return row.samples(COUNT.name).mean if _OF_KIND.get(row.kind) is total else 0.0
    part = part_metric(total)
    return row.samples(part).mean if part and not row.kind.is_on_device else 0.0
