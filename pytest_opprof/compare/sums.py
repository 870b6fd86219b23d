"""Which total of a test includes a metric of one of its rows."""

from __future__ import annotations

from pytest_opprof.kinds import OpKind
from pytest_opprof.metrics import Metric, device, host
from pytest_opprof.results.run import OpRow

_OF_KIND = {
    OpKind.OP: host.OPS_COUNT,
    OpKind.RANGE: host.RANGES_COUNT,
    OpKind.KERNEL: device.KERNELS_COUNT,
    OpKind.MEMCPY: device.COPIES_COUNT,
    OpKind.MEMSET: device.MEMSETS_COUNT,
}
_OF_METRIC = {
    host.CPU_MEMORY.name: host.CPU_MEMORY_ALLOCATED,
    device.DEVICE_MEMORY.name: device.DEVICE_MEMORY_ALLOCATED,
    host.FLOPS.name: host.FLOPS_TOTAL,
    host.BYTES.name: host.OPS_BYTES,
    host.NODES.name: host.AUTOGRAD_NODES,
    host.RETAINED.name: host.MEMORY_RETAINED,
    **device.TOTAL_OF_COUNT,
}
_PART = {total.name: metric for metric, total in _OF_METRIC.items()}


def total_of(metric: str, kind: OpKind | None) -> Metric | None:
    """The total that includes a metric of rows of this kind; None if there is none."""
    return _OF_METRIC.get(metric) or (_OF_KIND.get(kind) if kind else None)


def part_metric(total: Metric) -> str:
    """The metric of rows that a total adds up; empty if there is none."""
    return host.COUNT.name if total in _OF_KIND.values() else _PART.get(total.name, "")


def part_of(total: Metric, row: OpRow) -> float:
    """A row's part of a total, as the mean of a step; inner rows may be included in several."""
    if total in _OF_KIND.values():
        return row.not_views.mean if _OF_KIND.get(row.kind) is total else 0.0
    part = part_metric(total)
    return row.samples(part).mean if part and not row.kind.is_on_device else 0.0
