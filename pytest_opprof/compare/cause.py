"""Where a rise comes from: the user's line if it is known, else what calls the op more often now."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from functools import cached_property

from pytest_opprof.compare.call_sites import CallSites
from pytest_opprof.compare.comparison import CallLine, Change, RowPair
from pytest_opprof.kinds import OpKind
from pytest_opprof.results.names import STEP_NAME
from pytest_opprof.results.run import TestResult

# Autograd's engine runs each node in its own range.
ENGINE = "autograd::engine::"
_NOWHERE = -1


class Causes:
    """The call trees of both sides, read once for all ops that rose."""

    def __init__(self, base: TestResult, head: TestResult) -> None:
        # Calls are over all steps, so each side's are multiplied by the other's number of steps.
        self._weights = (head.steps, base.steps)
        self._sides = base, head
        self._sites = CallSites(base, head)
        self._ranges = {row.name for row in head.ops if row.kind is OpKind.RANGE}

    @cached_property
    def _callers(self) -> tuple[dict[str, Counter[str]], dict[str, Counter[str]]]:
        base, head = map(_callers, self._sides)
        return base, head

    def explained(self, change: Change, pair: RowPair) -> Change:
        """A rise with its cause: the line, the caller, and both in few words.

        The words are such as ``new in Encoder.forward, model.py:41`` or ``called by aten::clone``.
        """
        row = pair.head
        if row is None:
            return change
        if row.kind.is_on_device:
            words = f"launched by {row.parent_op}" if row.parent_op else ""
            return replace(change, cause=words, caller=row.parent_op or "")
        caller = self._caller(row.name) if row.name in self._callers[1] else row.parent_op
        line = self._sites.risen(pair.base, row, metric=change.metric)
        words = self._words(pair, line=line, caller=caller)
        return replace(change, cause=words, line=line, caller=caller or "")

    def _words(self, pair: RowPair, *, line: CallLine | None, caller: str | None) -> str:
        if line is not None:
            place = f"in {line.place}" if line.is_certain else f"perhaps in {line.place}"
        elif not caller:
            place = "" if caller is None else "called by the test"
        else:
            place = f"in range {caller!r}" if caller in self._ranges else f"called by {caller}"
        if pair.base is not None and pair.base.count.high > 0:
            return place
        separator = " " if place.startswith("in ") else ", "
        return f"new{separator}{place}" if place else "new"

    def above(self, op: str) -> frozenset[str] | None:
        """All that was open around the place where an op's calls rose most; None if unknown.

        Of equal rises, the place with the fewest callers counts.
        """
        if op not in self._callers[1]:
            return None
        before, after = self._paths
        caller, (weight_before, weight_after) = self._caller(op), self._weights
        places = {
            place: after.calls[place] * weight_after - before.calls[place] * weight_before
            for place in after.of_op[op]
            if after.caller(place) == caller
        }
        return after.around(max(places, key=lambda place: (places[place], -len(after.around(place)))))

    @cached_property
    def first_calls(self) -> dict[str, int]:
        """Where each op is first called in this run's tree: the smaller number runs first."""
        tree = self._sides[1].tree
        return {node.name: at for at, node in reversed(list(enumerate(tree)))}

    @cached_property
    def _paths(self) -> tuple[_Paths, _Paths]:
        """Both sides' places with shared numbers, made on demand: most tests need none."""
        numbers: dict[tuple[int, str], int] = {}
        base, head = self._sides
        return _Paths(base, numbers), _Paths(head, numbers)

    def _caller(self, op: str) -> str:
        """Who calls an op more often than before, by the largest rise; "" for the test itself.

        A caller in the forward pass is preferred if the op rose half as much there: the backward follows. Of
        equal rises, the op's call of itself comes last: another op called it first.
        """
        before, after = (callers.get(op, Counter()) for callers in self._callers)
        weight_before, weight_after = self._weights
        rises = {
            caller: calls * weight_after - before[caller] * weight_before for caller, calls in after.items()
        }
        forward = {caller: rise for caller, rise in rises.items() if not self._is_node(caller)}
        if 2 * max(forward.values(), default=0) >= max(rises.values(), default=0) > 0:
            rises = forward
        most = max(rises.values(), default=0)
        return min(
            (caller for caller, rise in rises.items() if rise == most),
            key=lambda caller: (caller == op, caller),
            default="",
        )

    def _is_node(self, caller: str) -> bool:
        """Whether it is a node of autograd's, or its engine."""
        around = self._callers[1].get(caller, ())
        return caller.startswith(ENGINE) or (bool(around) and all(name.startswith(ENGINE) for name in around))


class _Paths:
    """The places of a call tree: an op below its callers, each place with a number."""

    def __init__(self, test: TestResult, numbers: dict[tuple[int, str], int]) -> None:
        self.calls: Counter[int] = Counter()  # of each place, over all steps
        self.of_op: defaultdict[str, set[int]] = defaultdict(set)  # its places
        self._names: dict[int, str] = {}
        self._parents: dict[int, int] = {}
        places: list[int] = []
        for node in test.tree:
            parent = places[node.parent] if node.parent >= 0 else _NOWHERE
            place = numbers.setdefault((parent, node.name), len(numbers))
            places.append(place)
            self.calls[place] += node.count
            self.of_op[node.name].add(place)
            self._names[place], self._parents[place] = node.name, parent

    def caller(self, place: int) -> str:
        """What calls the op there; "" for the test itself."""
        name = self._names.get(self._parents[place], "")
        return "" if name == STEP_NAME else name

    def around(self, place: int) -> frozenset[str]:
        """The ops and ranges around it, as far out as the test."""
        found = set()
        while (place := self._parents[place]) != _NOWHERE:
            found.add(self._names[place])
        return frozenset(found - {STEP_NAME})


def _callers(test: TestResult) -> dict[str, Counter[str]]:
    """Per op, how often each caller called it; the caller "" is the test itself."""
    callers: dict[str, Counter[str]] = {}
    for node in test.tree:
        parent = test.tree[node.parent].name if node.parent >= 0 else ""
        callers.setdefault(node.name, Counter())["" if parent == STEP_NAME else parent] += node.count
    return callers
