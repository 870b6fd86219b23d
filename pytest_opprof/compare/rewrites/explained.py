"""Which rewritings tell all of the difference of each row that they would stand for."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.kinds import OpKind
from pytest_opprof.metrics import COUNT

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_opprof.compare.comparison import Change
    from pytest_opprof.compare.rewrites.alignment import Key, Rewriting
    from pytest_opprof.results.run import OpRow, TestResult

    _Rows: TypeAlias = dict[Key, list[OpRow]]

_UNKNOWN = frozenset({None, Verdict.INCONCLUSIVE, Verdict.ERROR})


class Book:
    """Both sides' ops, by name.

    Attributes:
        steps: Of the base and of the head.
        places: The user's line of most calls of an op.
        counts: The changes of counts that may be shown with others.
        risen: The ops with a gate of their own that ran more often.
        others: The same of other metrics.
    """

    def __init__(self, changes: Iterable[Change], base: TestResult, head: TestResult) -> None:
        self.steps = base.steps, head.steps
        self.places = {row.name: row.source for row in head.ops if row.source}
        self.ranges = {row.name for test in (base, head) for row in test.ops if row.kind is OpKind.RANGE}
        self._sides = base, head
        self.counts: dict[Key, Change] = {}
        self.others: dict[str, list[Change]] = defaultdict(list)
        self.risen: set[Key] = set()
        self._unknown: set[Key] = set()
        for change in changes:
            if change.op is None or change.kind is None or change.background:
                continue
            key = change.op, change.kind.is_on_device
            is_count = change.metric == COUNT.name
            is_known = change.verdict not in _UNKNOWN and change.is_constant
            if is_count and not is_known:
                self._unknown.add(key)
            elif is_count and change.rule and change.rise > 0:
                self.risen.add(key)
            elif is_count and not change.rule:
                self.counts[key] = change
            elif is_known and not change.rule:
                self.others[change.op].append(change)

    @cached_property
    def _rows(self) -> tuple[_Rows, _Rows]:
        """Both sides' rows, made on demand: most tests need none."""
        base, head = self._sides
        return _rows_by_name(base), _rows_by_name(head)

    def explained(self, found: Sequence[Rewriting]) -> list[Rewriting]:
        """The rewritings that fully account for every row they replace."""
        sums: dict[Key, int] = defaultdict(int)
        moved: dict[Key, int] = defaultdict(int)
        by_op: dict[Key, list[Rewriting]] = defaultdict(list)
        for rewriting in found:
            for op, rise in rewriting.net().items():
                sums[op] += rise
                moved[op] += abs(rise)
                by_op[op].append(rewriting)
        # An op that goes at one place and comes at another is neither gone nor new.
        waiting = [
            op for op in by_op if not self._is_explained(op, sums[op], is_both=moved[op] > abs(sums[op]))
        ]
        refused: set[int] = set()
        seen = set(waiting)
        # A refused rewriting leaves its other ops unexplained, and so other rewritings of these.
        while waiting:
            for rewriting in by_op[waiting.pop()]:
                refused.add(id(rewriting))
                more = [op for op in rewriting.net() if op not in seen and op in self.counts]
                seen.update(more)
                waiting += more
        return [rewriting for rewriting in found if id(rewriting) not in refused]

    def _is_explained(self, op: Key, rise: int, *, is_both: bool) -> bool:
        before, after = (rows.get(op, ()) for rows in self._rows)
        if len(before) > 1 or len(after) > 1 or not (before or after) or op in self._unknown:
            return False
        known = after[0].count.total * self.steps[0] if after else 0
        known -= before[0].count.total * self.steps[1] if before else 0
        # An op with a gate of its own always keeps its row.
        return (rise == known and not is_both) or (known != 0 and op not in self.counts)

    def is_whole(self, op: Key) -> bool:
        """Whether only one side has an op."""
        return not all(op in rows for rows in self._rows)

    def kind(self, op: Key) -> OpKind | None:
        """An op's kind; None without a row."""
        return next((row.kind for rows in self._rows for row in rows.get(op, ())), None)


def _rows_by_name(test: TestResult) -> _Rows:
    rows: _Rows = defaultdict(list)
    for row in test.ops:
        if not row.background and row.kind is not OpKind.CALL and row.count.high:
            rows[row.name, row.kind.is_on_device].append(row)
    return rows
