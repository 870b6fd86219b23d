"""From the groups of a recording to one row per op: its numbers step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_opprof.metrics.device import OP_TIMES
from pytest_opprof.results.device import DeviceSums
from pytest_opprof.results.names import MAX_NAME, STEP_NAME, bounded
from pytest_opprof.results.run import OpKind, OpRow
from pytest_opprof.results.samples import Samples

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_opprof.capture.device_use import DeviceWork
    from pytest_opprof.capture.op_groups import OpGroup
    from pytest_opprof.results.cycle import Cycle

# Past so many steps even differing counts are kept as a range: they are uncertified and gate nothing.
MAX_LISTED_STEPS = 1_000
_UNNAMED = "(unnamed)"

_KINDS = {
    "TORCH": OpKind.OP,
    "PYTHON_CALL": OpKind.CALL,
    "C_CALL": OpKind.CALL,
    "RUNTIME": OpKind.CALL,
    "DRIVER": OpKind.CALL,
    "KERNEL": OpKind.KERNEL,
    "MEMCPY": OpKind.MEMCPY,
    "MEMSET": OpKind.MEMSET,
}
# Instants have no duration, waits are no work, and a range on a device is made of kernels that have rows.
_NO_ROWS = frozenset({"MARK", "MEMORY", "SYNC", "DEVICE_RANGE"})
_TIMES = frozenset(metric.name for metric in OP_TIMES)
_RowKey = tuple[str, OpKind, bool]


class _Sums:
    """One row while its groups are added up: step by step, or as a whole for what belongs to no step."""

    def __init__(self, *, length: int) -> None:
        self.is_async = False
        self.counts = [0] * length
        self.views = [0] * length
        self.totals_ns = [0] * length
        self.selfs_ns = [0] * length
        self.cpu_memory = [0] * length
        self.device_memory = [0] * length
        self.flops = [0] * length
        self.device = DeviceSums(steps=length)
        self.launched_by: str | None = None

    def add(self, group: OpGroup, work: DeviceWork | None, *, first_step: int) -> None:
        self.is_async |= group.is_async
        self._add_device(group, work, first_step=first_step)
        if group.background:
            self.counts[0] += group.count
            self.views[0] += group.views
            self.totals_ns[0] += group.total_ns
            self.selfs_ns[0] += group.self_ns
            self.cpu_memory[0] += group.cpu_memory
            self.device_memory[0] += group.device_memory
            self.flops[0] += group.flops
            return
        parts = (
            group.step_counts,
            group.step_views,
            group.step_total_ns,
            group.step_self_ns,
            group.step_cpu_memory,
            group.step_device_memory,
            group.step_flops,
        )
        places = (
            self.counts,
            self.views,
            self.totals_ns,
            self.selfs_ns,
            self.cpu_memory,
            self.device_memory,
            self.flops,
        )
        for sums, values in zip(places, parts, strict=True):
            for step, value in enumerate(values, start=first_step):
                sums[step] += value

    def _add_device(self, group: OpGroup, work: DeviceWork | None, *, first_step: int) -> None:
        if group.background:
            self.device.add_times((group.device_total_ns,), (group.self_device_ns,), first_step=0)
        else:
            own = group.step_self_device_ns
            self.device.add_times(group.step_device_total_ns, own, first_step=first_step)
        if work is not None and group.background:
            self.device.add_outside(work)
        elif work is not None:
            self.device.add(work, first_step=first_step)

    def row(self, key: _RowKey, *, steps: int, parents: Mapping[str, str]) -> OpRow:
        name, kind, background = key
        # The tree is of the host: what ran on a device knows its launcher.
        is_of_tree = not (background or kind.is_on_device)
        make = _spread if background else per_step
        return OpRow(
            name=name,
            kind=kind,
            background=background,
            is_async=self.is_async,
            count=make(self.counts, steps=steps),
            views=make(self.views, steps=steps) if any(self.views) else None,
            cpu_time_total_ns=make(self.totals_ns, steps=steps),
            self_cpu_time_total_ns=make(self.selfs_ns, steps=steps),
            cpu_memory=make(self.cpu_memory, steps=steps) if any(self.cpu_memory) else None,
            device_memory=make(self.device_memory, steps=steps) if any(self.device_memory) else None,
            flops=make(self.flops, steps=steps) if any(self.flops) else None,
            device={name: make(values, steps=steps) for name, values in self._device_metrics(kind)},
            parent_op=parents.get(name) if is_of_tree else self.launched_by,
        )

    def _device_metrics(self, kind: OpKind) -> Iterator[tuple[str, list[int]]]:
        """What a row tells of devices. Work itself has bytes and times: that it is a kernel its kind says."""
        for name, values in self.device.metrics().items():
            if not kind.is_on_device or name.startswith("copied_bytes") or name in _TIMES:
                yield name, values


def rows_of(cycles: Sequence[Cycle], *, steps: int, parents: Mapping[str, str]) -> list[OpRow]:
    """One row for each name, kind and class of threads, over all steps of all cycles.

    Args:
        cycles: What was recorded.
        steps: Of all cycles.
        parents: What called each op most often, by name.
    """
    sums: dict[_RowKey, _Sums] = {}
    first_step = 0
    for cycle in cycles:
        works = cycle.device.rows if cycle.device is not None else {}
        for index, group in enumerate(cycle.groups):
            if group.kind.name in _NO_ROWS:
                continue
            # What began outside every step is nobody's.
            if not (group.background or any(group.step_counts)):
                continue
            key = (name_of(group.name), _kind(group), group.background)
            if key not in sums:
                sums[key] = _Sums(length=1 if group.background else steps)
            sums[key].add(group, works.get(index), first_step=first_step)
            sums[key].launched_by = sums[key].launched_by or _launcher(cycle, index)
        first_step += cycle.steps
    return [row.row(key, steps=steps, parents=parents) for key, row in sums.items()]


def _launcher(cycle: Cycle, index: int) -> str | None:
    """What launched most of the work that a group is; None for what the test itself did, as of an op."""
    launchers = cycle.device.launchers if cycle.device is not None else {}
    name = cycle.groups[launchers[index]].name if index in launchers else STEP_NAME
    return None if name == STEP_NAME else name_of(name)


def name_of(text: str) -> str:
    """A name as documents hold it; a range may well have been given none."""
    return bounded(text, length=MAX_NAME) or _UNNAMED


def _kind(group: OpGroup) -> OpKind:
    return OpKind.RANGE if group.is_user_annotation else _KINDS.get(group.kind.name, OpKind.RANGE)


def per_step(values: Sequence[int], *, steps: int) -> Samples:
    """One number for each step, or their range where the steps are too many."""
    samples = Samples.of(values)
    return samples if steps <= MAX_LISTED_STEPS else samples.summarized()


def _spread(values: Sequence[int], *, steps: int) -> Samples:
    """A sum that belongs to no step: anything from nothing to all of it in each."""
    (total,) = values
    low, high = min(total, 0), max(total, 0)
    return Samples(steps=steps, total=total, low=low, high=high) if steps else Samples.of(())
