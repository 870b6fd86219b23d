"""The call tree of one side of a test, prepared for alignment.

Python calls and the steps' own ranges are left out, and the ops in them belong to the op or range around:
code that moved to another function or line still runs the same ops.
"""

from __future__ import annotations

from pytest_opprof.kinds import OpKind
from pytest_opprof.results.names import STEP_NAME
from pytest_opprof.results.run import TestResult

ROOT = 0  # the test itself


class CallTree:
    """Who called whom how often; a node is a path of names, the test itself is node 0.

    Attributes:
        names: Of nodes.
        counts: How often each path was called, over all steps, times the weight.
        children: Each node's, by name, in the order in which they were first called.
    """

    def __init__(self, test: TestResult, *, weight: int) -> None:
        """Read a test's tree.

        Args:
            weight: The factor of calls: the other side's steps, so that both sides have as many.
        """
        self.names = [""]
        self.counts = [0]
        self.children: list[dict[str, int]] = [{}]
        calls = {row.name for row in test.ops if row.kind is OpKind.CALL}
        left_out = calls - {row.name for row in test.ops if row.kind is not OpKind.CALL} | {STEP_NAME}
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

    def add_calls(self, node: int, found: dict[str, int]) -> None:
        """Add the calls of a node, and of all nodes inside it, to the sums by name."""
        waiting = [node]  # not by recursion: a tree may be as deep as it has nodes
        while waiting:
            inside = waiting.pop()
            name = self.names[inside]
            found[name] = found.get(name, 0) + self.counts[inside]
            waiting.extend(reversed(self.children[inside].values()))
