"""Turn a recording's groups into one row per op: its numbers step by step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_opprof.kinds import OpKind
from pytest_opprof.metrics import COUNT, ROW_METRICS
from pytest_opprof.metrics.device import OP_COUNTS
from pytest_opprof.results.device import Sums, add_cycle, with_derived
from pytest_opprof.results.names import MAX_NAME, STEP_NAME, bounded
from pytest_opprof.results.run import OpRow
from pytest_opprof.results.samples import Samples

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_opprof.capture.op_groups import DeviceUse, OpGroup
    from pytest_opprof.capture.window import CallNode, MemoryUse
    from pytest_opprof.events.user_frames import Place

# Beyond this many steps differing counts are kept as a range: they are not certified or gated.
MAX_LISTED_STEPS = 1_000
_UNNAMED = "(unnamed)"

# Of device work: its row's kind already says what it is, so only its bytes are worth a number.
_NOT_OF_WORK = frozenset(name for name in OP_COUNTS if not name.startswith("copied_bytes"))
_RowKey = tuple[str, OpKind, bool]


class _Sums:
    """One row while its groups are added up, step by step, or as a whole outside of steps."""

    def __init__(self, *, length: int) -> None:
        self.is_async = False
        self.length = length
        self.columns: Sums = {COUNT.column: [0] * length}
        self.launched_by: str | None = None

    def add(self, group: OpGroup, *, first_step: int) -> None:
        self.is_async |= group.is_async
        told, first_step = (as_one_step(group.sums), 0) if group.background else (group.steps, first_step)
        add_cycle(self.columns, told, steps=self.length, first_step=first_step)

    def row(self, key: _RowKey, *, steps: int, parents: Mapping[str, str]) -> OpRow:
        name, kind, background = key
        # The tree is the host's; device work has its launcher.
        is_of_tree = not (background or kind.is_on_device)
        make = _spread if background else per_step
        return OpRow(
            name=name,
            kind=kind,
            background=background,
            is_async=self.is_async,
            metrics={name: make(values, steps=steps) for name, values in self._metrics(kind)},
            parent_op=parents.get(name) if is_of_tree else self.launched_by,
        )

    def _metrics(self, kind: OpKind) -> Iterator[tuple[str, list[int]]]:
        sums = with_derived(self.columns)
        for name, metric in ROW_METRICS.items():
            values = sums.get(metric.column or name, [])
            is_told = any(values) and not (kind.is_on_device and name in _NOT_OF_WORK)
            if is_told or name == COUNT.name:
                yield name, values


def rows_of(cycles: Sequence[Cycle], *, steps: int, parents: Mapping[str, str]) -> list[OpRow]:
    """One row for each name, kind and class of threads, over all steps of all cycles."""
    sums: dict[_RowKey, _Sums] = {}
    first_step = 0
    for cycle in cycles:
        for index, group in enumerate(cycle.groups):
            kind = group.kind.op_kind
            if kind is None:
                continue
            kind = OpKind.RANGE if group.is_user_annotation else kind
            # Events that began outside every step are left out.
            if not (group.background or any(group.steps["count"])):
                continue
            key = (name_of(group.name), kind, group.background)
            if key not in sums:
                sums[key] = _Sums(length=1 if group.background else steps)
            sums[key].add(group, first_step=first_step)
            sums[key].launched_by = sums[key].launched_by or _launcher(cycle, index)
        first_step += cycle.steps
    return [row.row(key, steps=steps, parents=parents) for key, row in sums.items()]


def as_one_step(sums: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """Sums of what is in no step, as those of one step."""
    return {column: (total,) for column, total in sums.items()}


def _launcher(cycle: Cycle, index: int) -> str | None:
    """The launcher of most of a group's work; None for the test itself, as for an op."""
    launchers = cycle.device.launchers if cycle.device is not None else {}
    name = cycle.groups[launchers[index]].name if index in launchers else STEP_NAME
    return None if name == STEP_NAME else name_of(name)


def name_of(text: str) -> str:
    """A name for documents; a range's may be empty."""
    return bounded(text, length=MAX_NAME) or _UNNAMED


def per_step(values: Sequence[int], *, steps: int) -> Samples:
    """One number for each step, or their range if there are too many steps."""
    samples = Samples.of(values)
    return samples if steps <= MAX_LISTED_STEPS else samples.summarized()


def _spread(values: Sequence[int], *, steps: int) -> Samples:
    """A sum outside of steps: each step may have nothing or all of it."""
    (total,) = values
    low, high = min(total, 0), max(total, 0)
    return Samples(steps=steps, total=total, low=low, high=high) if steps else Samples.of(())


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """One recorded cycle of a schedule."""

    steps: int
    groups: Sequence[OpGroup]
    tree: Iterable[CallNode] = ()
    memory: Sequence[MemoryUse] = ()  # each step's, on the host
    device_memory: Sequence[MemoryUse] = ()  # each step's, on all devices
    # Per op, the user's lines that called it, and how often; empty if neither call sites nor stacks were
    # recorded.
    places: Mapping[str, Mapping[Place, int]] = field(default_factory=dict)
    # By such a line: the user's lines that called its function, and theirs in turn, each with how many calls
    # of ops were on their way through it; empty if not noted.
    callers: Mapping[Place, Mapping[Place, int]] = field(default_factory=dict)
    # By metric: what calls from each line add to that metric of the op.
    parts: Mapping[str, Mapping[str, Mapping[Place, int]]] = field(default_factory=dict)
    device: DeviceUse | None = None  # device work; None if no device was used
    # Further totals, by the names of `metrics.TOTALS`: a number for each step.
    totals: Mapping[str, Sequence[int]] = field(default_factory=dict)
    # By such a total, its parts in the step with most of it, as in `TestResult`.
    functions: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    # Whether torch's schemas said which ops are views. A trace has no schemas.
    tells_views: bool = False
