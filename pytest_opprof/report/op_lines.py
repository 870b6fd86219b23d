"""What the lines that call an op did before: whether autograd recorded it there."""

from __future__ import annotations

from pytest_opprof.compare.call_sites import CallSites
from pytest_opprof.metrics import NODES
from pytest_opprof.results.run import TestResult


class OpLines:
    """The lines that call a test's ops, on both sides."""

    def __init__(self, base: TestResult, head: TestResult) -> None:
        self._sites = CallSites(base, head)
        self._weights = (head.steps, base.steps)
        self._rows = tuple({row.name: row for row in side.ops if not row.background} for side in (base, head))

    def are_recorded_anew(self, op: str) -> bool:
        """Whether each line that adds more nodes to autograd's graph left out calls of the op before.

        A call may add several nodes, so more nodes alone do not show it.
        """
        before, after = (rows.get(op) for rows in self._rows)
        weight_before, weight_after = self._weights
        risen = []
        for place, nodes in (after.parts.get(NODES.name, {}) if after else {}).items():
            nodes_before = self._sites.calls_before(place, before, metric=NODES.name)
            if nodes * weight_after > nodes_before * weight_before:
                risen.append(nodes_before < self._sites.calls_before(place, before))
        return bool(risen) and all(risen)
