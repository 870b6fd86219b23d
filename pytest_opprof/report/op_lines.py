"""What the lines that call an op did before: how often, and whether autograd recorded it there."""

from __future__ import annotations

import re
from typing import Final

from pytest_opprof.compare.call_sites import CallSites
from pytest_opprof.compare.comparison import CallLine
from pytest_opprof.metrics import NODES
from pytest_opprof.results.run import TestResult

# Python 3.12 has no functions of their own for them.
_COMPREHENSIONS: Final = re.compile(r"(?:\.<locals>\.<(?:listcomp|setcomp|dictcomp|genexpr)>)+, ")
# A loop replaced an op that a line calls this many times as often as before.
LOOP: Final = 4


class OpLines:
    """The lines that call a test's ops, on both sides."""

    def __init__(self, base: TestResult, head: TestResult) -> None:
        self._calls = head.calls
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

    def is_called_anew(self, op: str, line: CallLine | None) -> bool:
        """Whether `line`, or lines that did not call an op before, call most of its new calls.

        Not if lines that always called it only run more often because of `line`, unless they stand below it.
        If lines are unknown, they may be new.
        """
        before, after = (rows.get(op) for rows in self._rows)
        if line is None or after is None or not after.places or (before is not None and not before.places):
            return True
        is_above, function = line.text.endswith(":"), _function(line.place)
        weight_before, weight_after = self._weights
        rise = anew = 0
        for place, calls in after.places.items():
            earlier = self._sites.calls_before(place, before)
            more = calls * weight_after - earlier * weight_before
            rise += more
            if (
                not earlier
                or place.endswith(f", {line.where}")
                or (is_above and _function(place) == function)
            ):
                anew += more
        return 2 * anew >= rise

    def are_looped(self, op: str, line: CallLine | None) -> bool:
        """Whether a line of the function of `line` repeats an op now, in each call of the function.

        Functions whose calls were not counted are the tests themselves.
        """
        if line is None or not self._calls:
            return False
        before, after = (rows.get(op) for rows in self._rows)
        steps_after, steps_before = self._weights
        function = _function(line.place)
        each = sum(self._calls.get(function, {}).values()) or 1
        return any(
            calls
            >= LOOP * each * steps_after * max(1, self._sites.calls_before(place, before) / steps_before)
            for place, calls in (after.places.items() if after else ())
            if _function(place) == function
        )


def _function(place: str) -> str:
    """The function of a place, with the comprehensions in it."""
    return _COMPREHENSIONS.sub(", ", place).rpartition(":")[0]
