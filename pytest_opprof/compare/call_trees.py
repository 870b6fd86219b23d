"""The call tree of one side of a test, in the shape in which two sides are aligned.

Python calls and the steps' own ranges are left out, and what ran in them stands in the op or range around:
code that moved to another function or line still runs the same ops.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING

from pytest_opprof.results.names import STEP_NAME
from pytest_opprof.results.run import OpKind

if TYPE_CHECKING:
    from pytest_opprof.results.run import TestResult

ROOT = 0  # the test itself


class CallTree:
    """Who called whom how often; a node is a path of names, the test itself is node 0.

    Attributes:
        names: each node's.
        counts: how often each path was called, over all steps, times the weight.
        children: each node's, by name, in the order in which they were first called.
    """

    def __init__(self, test: TestResult, *, weight: int) -> None:
        """Read a test's tree.

        Args:
            test: one side.
            weight: what calls are multiplied by: the steps of the other side, so that both are over as many.
        """
        self.names = [""]
        self.counts = [0]
        self.children: list[dict[str, int]] = [{}]
        left_out = _names_left_out(test)
        place: list[int] = []
        for node in test.tree:
            above = ROOT if node.parent < 0 else place[node.parent]
            if node.name in left_out:
                place.append(above)
                continue
            mine = self.children[above].setdefault(node.name, len(self.names))
            if mine == len(self.names):
                self.names.append(node.name)
                self.counts.append(0)
                self.children.append({})
            self.counts[mine] += node.count * weight
            place.append(mine)
        self._order = self._in_order()
        self._number_by_order()

    def _in_order(self) -> list[int]:
        """All nodes, each before what it calls, and that before what is called after it."""
        order, waiting = [], [ROOT]
        while waiting:
            node = waiting.pop()
            order.append(node)
            waiting.extend(reversed(self.children[node].values()))
        return order

    def _number_by_order(self) -> None:
        """Note where each node begins and ends in the order, and where the nodes of each name are."""
        self._begin = [0] * len(self.names)
        for number, node in enumerate(self._order):
            self._begin[node] = number
        self._end = [begin + 1 for begin in self._begin]
        for node in reversed(self._order):
            for child in self.children[node].values():
                self._end[node] = max(self._end[node], self._end[child])
        self._numbers: dict[str, list[int]] = {}
        counts: dict[str, list[int]] = {}
        for number, node in enumerate(self._order):
            self._numbers.setdefault(self.names[node], []).append(number)
            counts.setdefault(self.names[node], []).append(self.counts[node])
        self._sums = {name: [0, *accumulate(calls)] for name, calls in counts.items()}

    def calls_inside(self, node: int, name: str) -> int:
        """How often a name was called inside a node."""
        numbers = self._numbers.get(name, [])
        first = bisect_left(numbers, self._begin[node] + 1)
        last = bisect_left(numbers, self._end[node])
        return self._sums[name][last] - self._sums[name][first] if last > first else 0

    def add_calls(self, node: int, found: dict[str, int]) -> None:
        """Add the calls of a node, and of all that is inside it, to the sums by name."""
        for inside in self._order[self._begin[node] : self._end[node]]:
            name = self.names[inside]
            found[name] = found.get(name, 0) + self.counts[inside]


def _names_left_out(test: TestResult) -> set[str]:
    calls = {row.name for row in test.ops if row.kind is OpKind.CALL}
    return (calls - {row.name for row in test.ops if row.kind is not OpKind.CALL}) | {STEP_NAME}
