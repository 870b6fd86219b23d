"""Turn a recording into a `TestResult`: one row per op, totals, the call tree, within the caps."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING

from pytest_opprof.kinds import OpKind
from pytest_opprof.metrics import OP_METRICS, TOTALS, WATCHED_OPS, Family, Source, device, host
from pytest_opprof.metrics.metric import ColumnSum, RowSum
from pytest_opprof.results.device import device_totals, with_device_gaps
from pytest_opprof.results.names import STEP_NAME, bounded
from pytest_opprof.results.rows import name_of, per_step, rows_of
from pytest_opprof.results.run import OpRow, TestResult, TreeNode
from pytest_opprof.results.samples import Samples
from pytest_opprof.statement import line_below

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_opprof.events.user_frames import Place
    from pytest_opprof.results.rows import Cycle

MAX_OPS = 10_000
MAX_TREE_NODES = 2_000
# Times are kept step by step only for the costliest ops: elsewhere they are ballast.
DETAILED_OPS = 20
MAX_PLACES = 256
MAX_CALLERS = 64
MAX_PLACE = 4_096
MAX_LINES = 2_000
MAX_LINE = 200
MAX_FUNCTIONS = 1_000
_MAX_FUNCTION = 4_096
_LEFT_OUT = -2  # in place of a node's number

_TIMES = frozenset(name for name, metric in OP_METRICS.items() if metric.family is Family.TIME)
# Members of a step's `MemoryUse`, in the order of the memory metrics.
_AMOUNTS = (attrgetter("allocated"), attrgetter("peak"), attrgetter("allocations"))


def with_measurement(
    test: TestResult, cycles: Sequence[Cycle], *, extra_totals: Mapping[str, Samples] | None = None
) -> TestResult:
    """``test`` with the recorded steps, rows, call tree, and the totals that its ``sources`` tell."""
    steps = sum(cycle.steps for cycle in cycles)
    tree = _merged_tree(cycles)
    rows = _with_places(rows_of(cycles, steps=steps, parents=_parents(tree)), cycles)
    kept = _costliest(rows)
    callers = _callers_of_places(cycles)
    return replace(
        test,
        steps=steps,
        capture=with_device_gaps(test.capture, [cycle.device for cycle in cycles]),
        totals=_totals(rows, cycles, sources=test.sources, steps=steps)
        | _memory_totals(cycles, sources=test.sources, steps=steps)
        | _device_totals(cycles, sources=test.sources, steps=steps)
        | dict(extra_totals or {}),
        functions=_functions(cycles),
        ops=kept,
        lines=_lines(kept, callers, cycles),
        callers=callers,
        ops_omitted=len(rows) - len(kept),
        tree=tree,
    )


def _totals(
    rows: Sequence[OpRow], cycles: Sequence[Cycle], *, sources: Iterable[str], steps: int
) -> dict[str, Samples]:
    """Totals that the table of metrics adds up, and the cycles' own."""
    found: dict[str, Samples] = {}
    for metric in TOTALS.values():
        if not metric.answers(sources):
            continue
        match metric.summed:
            case RowSum():
                found[metric.name] = _row_sum(metric.summed, rows, steps=steps)
            case ColumnSum():
                found[metric.name] = _column_sum(metric.summed.column, cycles, steps=steps)
            case None if cycles and all(metric.name in cycle.totals for cycle in cycles):
                told = [value for cycle in cycles for value in cycle.totals[metric.name]]
                found[metric.name] = per_step(told, steps=steps)
    if Source.OPS not in sources or not all(cycle.tells_views for cycle in cycles):
        found.pop(host.VIEWS_COUNT.name, None)
    return found


def _row_sum(total: RowSum, rows: Iterable[OpRow], *, steps: int) -> Samples:
    found = Samples.constant(0, steps=steps)
    for row in rows:
        # A step is a range too, but not the user's.
        is_part = total.kind is None or (row.kind is total.kind and row.name != STEP_NAME)
        if row.background or not is_part or total.metric not in row.metrics:
            continue
        value = row.metrics[total.metric]
        found = found.plus(value.minus(row.metrics[total.less]) if total.less in row.metrics else value)
    return found


def _column_sum(column: str, cycles: Iterable[Cycle], *, steps: int) -> Samples:
    values: list[int] = []
    for cycle in cycles:
        here = [0] * cycle.steps
        for group in cycle.groups:
            for step, value in enumerate(group.steps.get(column, ())):
                here[step] += value
        values += here
    return per_step(values, steps=steps)


def _memory_totals(cycles: Sequence[Cycle], *, sources: Iterable[str], steps: int) -> dict[str, Samples]:
    on_host = [use for cycle in cycles for use in cycle.memory]
    on_device = [use for cycle in cycles for use in cycle.device_memory]
    uses = {
        (host.CPU_MEMORY_ALLOCATED, host.CPU_MEMORY_PEAK, host.CPU_MEMORY_ALLOCATIONS): on_host,
        device.DEVICE_AMOUNTS: on_device,
    }
    found = {
        metric.name: per_step([amount(use) for use in of_steps], steps=steps)
        for metrics, of_steps in uses.items()
        for metric, amount in zip(metrics, _AMOUNTS, strict=True)
        if metric.answers(sources)
    }
    if host.CPU_MEMORY_ALLOCATED.answers(sources):  # then also without an op or range around
        both = zip(on_host, on_device, strict=True)
        left = [sum(use.allocated - use.freed for use in of_step) for of_step in both]
        found[host.MEMORY_RETAINED.name] = per_step(left, steps=steps)
    return found


def most_of(counts: Mapping[str, int]) -> dict[str, int]:
    """The parts of a total for `TestResult.functions`: the largest."""
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return {bounded(name, length=_MAX_FUNCTION): count for name, count in ranked[:MAX_FUNCTIONS]}


def with_calls(test: TestResult, noted: Iterable[tuple[str, Place, int]]) -> TestResult:
    """The test with the calls of functions by places, the busiest, and with the text of these places."""
    found = defaultdict[str, Counter[str]](Counter)
    called_from: set[Place] = set()
    for function, place, count in sorted(noted):  # so that equal code has equal documents
        found[bounded(function, length=_MAX_FUNCTION)][bounded(place.name, length=MAX_PLACE)] += count
        called_from.add(place)
    kept = most_of({function: places.total() for function, places in found.items()})
    calls = {name: dict(sorted(found[name].most_common(MAX_PLACES))) for name in sorted(kept)}
    named = {place: None for places in calls.values() for place in places}
    lines = {**test.lines, **_texts(named, called_from)}
    return replace(test, calls=calls, lines=dict(islice(lines.items(), MAX_LINES)))


def _functions(cycles: Iterable[Cycle]) -> dict[str, dict[str, int]]:
    """Over all cycles, each part's largest count."""
    found = defaultdict[str, Counter[str]](Counter)
    for cycle in cycles:
        for total, counts in cycle.functions.items():
            found[total] |= Counter(counts)
    return {total: most_of(counts) for total, counts in found.items()}


def _device_totals(cycles: Sequence[Cycle], *, sources: Iterable[str], steps: int) -> dict[str, Samples]:
    if not device.TOTAL_BUSY_TIME.answers(sources):
        return {}
    totals = device_totals(cycles, steps=steps)
    return {name: per_step(values, steps=steps) for name, values in totals.items()}


def _cost_ns(row: OpRow) -> int:
    """A row's cost where it runs."""
    if row.kind.is_on_device:
        return row.samples(device.SELF_DEVICE_TIME_TOTAL.name).total
    return row.self_cpu_time_total_ns.total


def _costliest(rows: Sequence[OpRow]) -> tuple[OpRow, ...]:
    """The rows to keep, costliest first; ties by name, so that documents are reproducible.

    Python calls come last: whether they are recorded changes nothing about the ops.
    """
    ranked = sorted(rows, key=lambda row: (row.kind is OpKind.CALL, -_cost_ns(row), row.key))
    detailed, others = ranked[:DETAILED_OPS], ranked[DETAILED_OPS:]
    if len(ranked) > MAX_OPS:
        # A watched op is gated however cheap it is.
        others.sort(key=lambda row: (row.kind is OpKind.CALL, row.name not in WATCHED_OPS))
        del others[MAX_OPS - DETAILED_OPS :]
    return (*detailed, *(_without_step_times(row) for row in others))


def _without_step_times(row: OpRow) -> OpRow:
    varying = [name for name, samples in row.metrics.items() if name in _TIMES and not samples.is_constant]
    return row.with_metrics(**{name: row.metrics[name].summarized() for name in varying}) if varying else row


def _merged_tree(cycles: Sequence[Cycle]) -> tuple[TreeNode, ...]:
    """One call tree of all cycles: one node per path. Parents stay before children."""
    found: dict[tuple[int, str], list[int]] = {}  # by parent and name: its place, its calls, its self time
    for cycle in cycles:
        here: list[int] = []
        for node in cycle.tree:
            parent = -1 if node.parent < 0 else here[node.parent]
            key = (parent, name_of(node.name))
            if parent == _LEFT_OUT or (key not in found and len(found) == MAX_TREE_NODES):
                here.append(_LEFT_OUT)
                continue
            sums = found.setdefault(key, [len(found), 0, 0])
            sums[1] += node.count
            sums[2] += node.self_ns
            here.append(sums[0])
    return tuple(
        TreeNode(parent=parent, name=name, count=count, self_ns=self_ns)
        for (parent, name), (_, count, self_ns) in found.items()
    )


def _parents(tree: Sequence[TreeNode]) -> dict[str, str]:
    """Each op's most frequent caller."""
    callers: dict[str, Counter[str]] = {}
    for node in tree:
        if node.parent >= 0 and tree[node.parent].name != STEP_NAME:
            callers.setdefault(node.name, Counter())[tree[node.parent].name] += node.count
    return {name: min(counts, key=lambda op: (-counts[op], op)) for name, counts in callers.items()}


def _with_places(rows: Iterable[OpRow], cycles: Sequence[Cycle]) -> list[OpRow]:
    calls = _by_place((name_of(op), places) for cycle in cycles for op, places in cycle.places.items())
    parts = {
        metric: _by_place(
            (name_of(op), places) for cycle in cycles for op, places in cycle.parts.get(metric, {}).items()
        )
        for metric in {metric for cycle in cycles for metric in cycle.parts}
    }
    return [
        _with_most_common(
            row,
            calls.get(row.name),
            {metric: of_ops[row.name] for metric, of_ops in sorted(parts.items()) if row.name in of_ops},
        )
        for row in rows
    ]


def _by_place(measured: Iterable[tuple[str, Mapping[Place, int]]]) -> dict[str, Counter[str]]:
    """Per op or line, the sums for each place."""
    found: dict[str, Counter[str]] = {}
    for name, places in measured:
        here = found.setdefault(name, Counter())
        for place, amount in places.items():
            here[bounded(place.name, length=MAX_PLACE)] += amount
    return found


def _callers_of_places(cycles: Sequence[Cycle]) -> dict[str, tuple[str, ...]]:
    found = _by_place(
        (bounded(place.name, length=MAX_PLACE), callers)
        for cycle in cycles
        for place, callers in cycle.callers.items()
    )
    return {
        place: tuple(sorted(found[place], key=lambda one: (-found[place][one], one))[:MAX_CALLERS])
        for place in sorted(found)[:MAX_LINES]
    }


def _lines(
    rows: Iterable[OpRow], callers: Mapping[str, Iterable[str]], cycles: Sequence[Cycle]
) -> dict[str, str]:
    """The text of the lines that rows and callers name."""
    named = {place for row in rows for place in row.places}.union(*callers.values())
    recorded = {
        place
        for cycle in cycles
        for places in (*cycle.places.values(), *cycle.callers.values())
        for place in places
    }
    return dict(islice(_texts(sorted(named), recorded).items(), MAX_LINES))


def _texts(named: Iterable[str], recorded: Iterable[Place]) -> dict[str, str]:
    """The text of the named places, then of the lines that are shown with them."""
    known = {bounded(place.name, length=MAX_PLACE): place for place in recorded}
    found = {name: known[name].text for name in named if name in known}
    for place in [known[name] for name in found]:
        for number, text in enumerate(place.rest, start=1):
            found.setdefault(bounded(line_below(place.name, number), length=MAX_PLACE), text)
    return {name: text[:MAX_LINE] for name, text in found.items() if text}


def _with_most_common(row: OpRow, counts: Counter[str] | None, parts: Mapping[str, Counter[str]]) -> OpRow:
    if not counts or row.background:
        return row
    # Ties by name, so that documents are reproducible.
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    places = dict(ranked[:MAX_PLACES])
    return replace(
        row,
        source=ranked[0][0],
        places=places,
        parts={
            metric: {place: of_places[place] for place in places if of_places[place]}
            for metric, of_places in parts.items()
        },
    )
