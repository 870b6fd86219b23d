"""Which of a test's changes get a row, because device metrics say one thing many times.

One more kernel is one more launch. A copy to the host is a copy, a host copy, one by its direction, and
bytes. Each op around the launching op has all of that too. A table has a row for the clearest: the op that
runs more often, else the innermost op with more device work, and the kernel.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from pytest_opprof.compare.comparison import Change, TestComparison
from pytest_opprof.kinds import OpKind
from pytest_opprof.metrics import COUNT
from pytest_opprof.metrics.device import DIRECTIONS, OP_COUNTS, TOTAL_OF_COUNT
from pytest_opprof.results.run import TestResult

_BY_DIRECTION = tuple(f"copies_{key}" for key in DIRECTIONS)
# Metrics of an op that say it better if they change as much, by name.
_BETTER = {
    "launches": ("kernels",),
    "copies": _BY_DIRECTION,
    "host_copies": _BY_DIRECTION,
    "copied_bytes": tuple(f"copied_bytes_{key}" for key in DIRECTIONS),
}
_BETTER_OF = _BETTER | {
    TOTAL_OF_COUNT[name].name: tuple(TOTAL_OF_COUNT[other].name for other in better)
    for name, better in _BETTER.items()
}
_OF_DEVICES = {*OP_COUNTS, *_BETTER_OF}
_Key = tuple[str | None, OpKind | None, bool]


def telling_changes(test: TestComparison) -> list[Change]:
    """The changes of a test, in order, without those that another says better."""
    if not any(change.metric in _OF_DEVICES for change in test.changes):
        return list(test.changes)
    by_key: dict[_Key, dict[str, Change]] = defaultdict(dict)
    for change in test.changes:
        by_key[_key(change)][change.metric] = change
    inside = _names_inside(test.head)
    return [
        change
        for change in test.changes
        if not (_is_told_by_its_own(change, by_key[_key(change)]) or _is_told_inside(change, by_key, inside))
    ]


def _key(change: Change) -> _Key:
    return (change.op, change.kind, change.background)


def _is_told_by_its_own(change: Change, others: dict[str, Change]) -> bool:
    """Whether another metric of the op, or a total, says it."""
    if not change.rise:
        return False
    if change.op is not None and change.metric in OP_COUNTS:
        # An op that runs more often does more.
        calls = others.get(COUNT.name)
        copies = others.get(change.metric.replace("copied_bytes", "copies"))
        if _goes_along(calls, change) or (copies is not change and _goes_along(copies, change)):
            return True
    better = [other for metric in _BETTER_OF.get(change.metric, ()) if (other := others.get(metric))]
    alike = [other.rise for other in better if other.verdict == change.verdict]
    return bool(alike) and sum(alike) == change.rise


def _is_told_inside(
    change: Change, by_key: Mapping[_Key, Mapping[str, Change]], inside: Mapping[str, set[str]]
) -> bool:
    """Whether an op inside it has the same, or itself runs more often."""
    if change.op is None or change.metric not in OP_COUNTS or change.op not in inside:
        return False
    return any(
        _goes_along(by_key[key].get(metric), change)
        for name in inside[change.op]
        for kind in OpKind
        if (key := (name, kind, False)) in by_key
        for metric in (COUNT.name, change.metric)
    )


def _goes_along(other: Change | None, change: Change) -> bool:
    return other is not None and other.rise * change.rise > 0


def _names_inside(test: TestResult | None) -> dict[str, set[str]]:
    """By an op's name, the ops that ran inside it, without recursion."""
    inside: dict[str, set[str]] = defaultdict(set)
    around: list[frozenset[str]] = []
    for node in test.tree if test is not None else ():
        above = around[node.parent] if node.parent >= 0 else frozenset()
        for name in above - {node.name}:
            inside[name].add(node.name)
        around.append(above | {node.name})
    return inside
