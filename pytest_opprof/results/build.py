"""From what a recording says to a `TestResult`: one row per op, totals, the call tree, within the caps."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pytest_opprof.metrics import (
    CPU_MEMORY_ALLOCATED,
    CPU_MEMORY_ALLOCATIONS,
    CPU_MEMORY_PEAK,
    FLOPS_TOTAL,
    OPS_COUNT,
    RANGES_COUNT,
    TOTAL_SELF_CPU_TIME,
    WATCHED_OPS,
)
from pytest_opprof.results.names import MAX_NAME, bounded
from pytest_opprof.results.run import OpKind, OpRow, TestResult, TreeNode
from pytest_opprof.results.samples import Samples

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_opprof.capture.call_tree import CallNode
    from pytest_opprof.capture.memory import MemoryUse
    from pytest_opprof.capture.op_groups import OpGroup

MAX_OPS = 10_000
MAX_TREE_NODES = 2_000
# Times are kept step by step for the costliest ops only: they are evidence there, and ballast elsewhere.
DETAILED_OPS = 20
# Past so many steps even differing counts are kept as a range: they are uncertified and gate nothing.
MAX_LISTED_STEPS = 1_000
# How a recording groups the ranges that mark the steps themselves.
STEP_NAME = "ProfilerStep*"
_UNNAMED = "(unnamed)"
MAX_PLACES = 16
MAX_PLACE = 4_096

_KINDS = {
    "TORCH": OpKind.OP,
    "PYTHON_CALL": OpKind.CALL,
    "C_CALL": OpKind.CALL,
    "RUNTIME": OpKind.CALL,
    "DRIVER": OpKind.CALL,
}
_INSTANTS = frozenset({"MARK", "MEMORY"})
_RowKey = tuple[str, OpKind, bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """What one cycle of a schedule recorded.

    Attributes:
        steps: its active steps.
        memory: each step's.
        places: per op, the user's lines that it was called from, and how often; empty without stacks.
    """

    steps: int
    groups: Sequence[OpGroup]
    tree: Iterable[CallNode] = ()
    memory: Sequence[MemoryUse] = ()
    places: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def with_measurement(
    test: TestResult, cycles: Sequence[Cycle], *, extra_totals: Mapping[str, Samples] | None = None
) -> TestResult:
    """``test`` with the steps, rows, totals and call tree of what was recorded.

    Args:
        test: everything else about the test; its ``sources`` decide which totals it has.
        cycles: what each cycle of the schedule recorded, in order.
        extra_totals: further totals, by the names of `metrics.TOTALS`.
    """
    steps = sum(cycle.steps for cycle in cycles)
    tree = _merged_tree(cycles)
    rows = _with_places(_with_parents(_rows(cycles, steps=steps), tree), cycles)
    kept = _costliest(rows)
    return replace(
        test,
        steps=steps,
        totals=_totals(rows, sources=test.sources, steps=steps)
        | _memory_totals(cycles, sources=test.sources, steps=steps)
        | _flops_total(cycles, sources=test.sources, steps=steps)
        | dict(extra_totals or {}),
        ops=kept,
        ops_omitted=len(rows) - len(kept),
        tree=tree,
    )


class _Sums:
    """One row while its groups are added up: step by step, or as a whole for what belongs to no step."""

    def __init__(self, *, length: int) -> None:
        self.is_async = False
        self.counts = [0] * length
        self.totals_ns = [0] * length
        self.selfs_ns = [0] * length
        self.cpu_memory = [0] * length
        self.flops = [0] * length

    def add(self, group: OpGroup, *, first_step: int) -> None:
        self.is_async |= group.is_async
        if group.background:
            self.counts[0] += group.count
            self.totals_ns[0] += group.total_ns
            self.selfs_ns[0] += group.self_ns
            self.cpu_memory[0] += group.cpu_memory
            self.flops[0] += group.flops
            return
        parts = (
            group.step_counts,
            group.step_total_ns,
            group.step_self_ns,
            group.step_cpu_memory,
            group.step_flops,
        )
        places = (self.counts, self.totals_ns, self.selfs_ns, self.cpu_memory, self.flops)
        for sums, values in zip(places, parts, strict=True):
            for step, value in enumerate(values, start=first_step):
                sums[step] += value

    def row(self, key: _RowKey, *, steps: int) -> OpRow:
        name, kind, background = key
        make = _spread if background else _per_step
        return OpRow(
            name=name,
            kind=kind,
            background=background,
            is_async=self.is_async,
            count=make(self.counts, steps=steps),
            cpu_time_total_ns=make(self.totals_ns, steps=steps),
            self_cpu_time_total_ns=make(self.selfs_ns, steps=steps),
            cpu_memory=make(self.cpu_memory, steps=steps) if any(self.cpu_memory) else None,
            flops=make(self.flops, steps=steps) if any(self.flops) else None,
        )


def _rows(cycles: Sequence[Cycle], *, steps: int) -> list[OpRow]:
    sums: dict[_RowKey, _Sums] = {}
    first_step = 0
    for cycle in cycles:
        for group in cycle.groups:
            # Instants have no duration, devices a time of their own, and what began outside every step
            # is nobody's.
            if group.kind.name in _INSTANTS or group.device_type:
                continue
            if not (group.background or any(group.step_counts)):
                continue
            key = (_name(group.name), _kind(group), group.background)
            if key not in sums:
                sums[key] = _Sums(length=1 if group.background else steps)
            sums[key].add(group, first_step=first_step)
        first_step += cycle.steps
    return [row.row(key, steps=steps) for key, row in sums.items()]


def _name(text: str) -> str:
    """A name as documents hold it; a range may well have been given none."""
    return bounded(text, length=MAX_NAME) or _UNNAMED


def _kind(group: OpGroup) -> OpKind:
    return OpKind.RANGE if group.is_user_annotation else _KINDS.get(group.kind.name, OpKind.RANGE)


def _per_step(values: Sequence[int], *, steps: int) -> Samples:
    samples = Samples.of(values)
    return samples if steps <= MAX_LISTED_STEPS else samples.summarized()


def _spread(values: Sequence[int], *, steps: int) -> Samples:
    """A sum that belongs to no step: anything from nothing to all of it in each."""
    (total,) = values
    low, high = min(total, 0), max(total, 0)
    return Samples(steps=steps, total=total, low=low, high=high) if steps else Samples.of(())


def _totals(rows: Iterable[OpRow], *, sources: Iterable[str], steps: int) -> dict[str, Samples]:
    ops = ranges = self_ns = Samples.constant(0, steps=steps)
    for row in rows:
        if row.background:
            continue
        self_ns = self_ns.plus(row.self_cpu_time_total_ns)
        if row.kind is OpKind.OP:
            ops = ops.plus(row.count)
        elif row.kind is OpKind.RANGE and row.name != STEP_NAME:
            ranges = ranges.plus(row.count)
    found = {TOTAL_SELF_CPU_TIME: self_ns, OPS_COUNT: ops, RANGES_COUNT: ranges}
    return {metric.name: value for metric, value in found.items() if metric.answers(sources)}


def _memory_totals(cycles: Sequence[Cycle], *, sources: Iterable[str], steps: int) -> dict[str, Samples]:
    if not CPU_MEMORY_ALLOCATED.answers(sources):
        return {}
    uses = [use for cycle in cycles for use in cycle.memory]
    found = {
        CPU_MEMORY_ALLOCATED: [use.allocated for use in uses],
        CPU_MEMORY_PEAK: [use.peak for use in uses],
        CPU_MEMORY_ALLOCATIONS: [use.allocations for use in uses],
    }
    return {metric.name: _per_step(values, steps=steps) for metric, values in found.items()}


def _flops_total(cycles: Sequence[Cycle], *, sources: Iterable[str], steps: int) -> dict[str, Samples]:
    if not FLOPS_TOTAL.answers(sources):
        return {}
    flops: list[int] = []
    for cycle in cycles:
        here = [0] * cycle.steps
        for group in cycle.groups:
            for step, counted in enumerate(group.step_counted_flops):
                here[step] += counted
        flops += here
    return {FLOPS_TOTAL.name: _per_step(flops, steps=steps)}


def _costliest(rows: Sequence[OpRow]) -> tuple[OpRow, ...]:
    """The rows to keep, costliest first; ties by name, so that a document is the same when written again.

    Python calls come last: whether they are recorded changes nothing about the ops.
    """
    ranked = sorted(
        rows, key=lambda row: (row.kind is OpKind.CALL, -row.self_cpu_time_total_ns.total, row.key)
    )
    detailed, others = ranked[:DETAILED_OPS], ranked[DETAILED_OPS:]
    if len(ranked) > MAX_OPS:
        # A watched op gates however cheap it was.
        others.sort(key=lambda row: (row.kind is OpKind.CALL, row.name not in WATCHED_OPS))
        del others[MAX_OPS - DETAILED_OPS :]
    return (*detailed, *(_without_step_times(row) for row in others))


def _without_step_times(row: OpRow) -> OpRow:
    return replace(
        row,
        cpu_time_total_ns=row.cpu_time_total_ns.summarized(),
        self_cpu_time_total_ns=row.self_cpu_time_total_ns.summarized(),
    )


def _merged_tree(cycles: Sequence[Cycle]) -> tuple[TreeNode, ...]:
    """One call tree of all cycles: nodes of one path are one node. Parents stay before their children."""
    merged: list[TreeNode] = []
    places: dict[tuple[int, str], int] = {}
    for cycle in cycles:
        here: list[int | None] = []
        for node in cycle.tree:
            parent = -1 if node.parent < 0 else here[node.parent]
            place = None
            if parent is not None:
                key = (parent, _name(node.name))
                place = places.get(key)
                if place is None and len(merged) < MAX_TREE_NODES:
                    place = places[key] = len(merged)
                    merged.append(TreeNode(parent=parent, name=key[1], count=0, self_ns=0))
            if place is not None:
                known = merged[place]
                count, self_ns = known.count + node.count, known.self_ns + node.self_ns
                merged[place] = replace(known, count=count, self_ns=self_ns)
            here.append(place)
    return tuple(merged)


def _with_parents(rows: Iterable[OpRow], tree: Sequence[TreeNode]) -> list[OpRow]:
    callers: dict[str, Counter[str]] = {}
    for node in tree:
        if node.parent >= 0 and tree[node.parent].name != STEP_NAME:
            callers.setdefault(node.name, Counter())[tree[node.parent].name] += node.count
    parents = {name: min(counts, key=lambda op: (-counts[op], op)) for name, counts in callers.items()}
    return [row if row.background else replace(row, parent_op=parents.get(row.name)) for row in rows]


def _with_places(rows: Iterable[OpRow], cycles: Sequence[Cycle]) -> list[OpRow]:
    counts: dict[str, Counter[str]] = {}
    for cycle in cycles:
        for name, places in cycle.places.items():
            here = counts.setdefault(_name(name), Counter())
            for place, calls in places.items():
                here[bounded(place, length=MAX_PLACE)] += calls
    return [_with_most_common(row, counts.get(row.name)) for row in rows]


def _with_most_common(row: OpRow, counts: Counter[str] | None) -> OpRow:
    if not counts or row.kind is OpKind.CALL or row.background:
        return row
    # Ties by name, so that a document is the same when written again.
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return replace(row, source=ranked[0][0], places=dict(ranked[:MAX_PLACES]))
