"""A comparison as values: two runs in pairs, and per test the changes and the verdict."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from fractions import Fraction

from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.kinds import OpKind
from pytest_opprof.metrics import OP_METRICS, TOTALS, Metric, MetricPath
from pytest_opprof.results.names import STEP_NAME
from pytest_opprof.results.run import OpRow, Run, TestResult
from pytest_opprof.results.samples import Samples
from pytest_opprof.wording import listed


class RewriteKind(StrEnum):
    """How ops were replaced by others (`compare.rewrites.alignment` has the rules)."""

    RENAMED = "renamed"  # one op, now another
    FUSED = "fused"  # several ops or calls, now one
    SPLIT = "split"  # one op, now several ops or calls
    WRAPPED = "wrapped"  # the same ops, now inside another op
    UNWRAPPED = "unwrapped"  # the same ops, without the op around them
    ADDED = "added"  # an op with those it calls
    REMOVED = "removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """Ops that became others at the same place of the call tree, shown as one row."""

    kind: RewriteKind
    before: tuple[str, ...]  # the outermost ops that were there; empty if ops were added
    after: tuple[str, ...]  # the outermost ops that are there now; empty if ops were removed

    def __str__(self) -> str:
        """``aten::mul + aten::add -> aten::addcmul``."""
        sides = (listed(side, most=3, separator=" + ", last=" + ") for side in (self.before, self.after))
        return " -> ".join(filter(None, sides))


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLine:
    """The line of the user's own code that calls an op more often."""

    function: str  # its qualified name, ``Block.forward``
    file: str  # its path from where the tests were started, ``src/model.py``
    number: int  # the line's number in the head; 0 if only the function is known
    text: str = ""  # the line's source; empty if unknown
    is_certain: bool = True  # whether the base has call sites; if not, this line calls the op most often
    is_edited: bool = False  # whether it is new or was edited since the base's commit

    @property
    def place(self) -> str:
        """``Block.forward, src/model.py:41``, as rows name it."""
        return f"{self.function}, {self.where}"

    @property
    def location(self) -> str:
        """``src/model.py:41 in Block.forward``."""
        return f"{self.where} in {self.function}"

    @property
    def where(self) -> str:
        """``src/model.py:41``."""
        return f"{self.file}:{self.number}" if self.number else self.file

    @property
    def key(self) -> str:
        """What tells lines apart: one may be of several functions, as a comprehension in Python 3.11."""
        return self.where if self.number else self.place


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One metric of one op, or one total, that changed."""

    # The op's name; None for a total of the test. Of a rewrite, the first of its ops.
    op: str | None
    kind: OpKind | None = None  # what the op is; None for a total
    background: bool = False  # whether it ran outside the steps' threads; such rows never block
    metric: str
    base: Samples | None  # the values before; None for a new row
    head: Samples | None  # the values now; None for a row that is gone
    rule: str = ""  # how it was judged, ``exact`` or ``2%``; empty if only shown
    verdict: Verdict | None  # None if advisory
    cause: str = ""  # where a rise comes from, in words; empty if unknown
    line: CallLine | None = None  # the user's line that it comes from; None if unknown
    # The op or range that calls it more often, or launched it; empty for the test itself or if unknown.
    caller: str = ""
    reason: str = ""  # why it has this verdict, if the numbers do not show it
    rewrite: Rewrite | None = None  # which ops became which; the values are then their sums
    is_free: bool = False  # whether only views changed and no rule gates it: neither better nor worse
    begins: bool = False  # whether a regression begins with this op, not with another op that changed

    @property
    def about(self) -> Metric:
        """The metric itself."""
        return TOTALS[self.metric] if self.op is None else OP_METRICS[self.metric]

    @property
    def path(self) -> MetricPath:
        """The metric's name, as users write it."""
        return MetricPath(op=self.op, metric=self.about)

    @property
    def is_constant(self) -> bool:
        """Whether each side had one value in all of its steps."""
        return all(side is None or side.is_constant for side in (self.base, self.head))

    @property
    def is_slight(self) -> bool:
        """Whether any edit may cause it: it is within the metric's own tolerance."""
        return self.verdict is Verdict.CHANGED and self.about.slack is not None

    @property
    def rise(self) -> int:
        """How much more a step has now than before; negative for less, 0 if the ranges overlap.

        For the background, it is the mean of a step, rounded away from zero.
        """
        if self.background:
            sides = (self.base, self.head)
            before, after = (Fraction(side.total, side.steps or 1) if side else Fraction() for side in sides)
            return math.ceil(after - before) if after > before else math.floor(after - before)
        low, high = (self.base.low, self.base.high) if self.base else (0, 0)
        head_low, head_high = (self.head.low, self.head.high) if self.head else (0, 0)
        if head_low > high:
            return head_low - high
        return min(head_high - low, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitResult:
    """The result of one budget of a test."""

    path: str
    limit: str  # the limit as a reader sees it, ``<= 64 MiB``
    value: Samples | None
    verdict: Verdict  # PASS, REGRESSED (too much) or INCONCLUSIVE
    reason: str = ""  # why, if the value does not show it


@dataclass(frozen=True, slots=True, kw_only=True)
class TestComparison:
    """One test: both sides, what changed, and the verdict."""

    __test__ = False  # not a test class for pytest to collect

    node_id: str
    verdict: Verdict | None  # None if nothing can block, or the test did not run
    reason: str = ""
    changes: tuple[Change, ...] = ()  # the totals first, then ops; within both, the worst first
    limits: tuple[LimitResult, ...] = ()
    advisories: tuple[str, ...] = ()  # sentences about metrics that cannot block
    base: TestResult | None = None  # the baseline's side; None without one
    head: TestResult | None = None  # this run's side; None for a removed test

    @property
    def regressed(self) -> tuple[Change, ...]:
        """The changes that fail it."""
        return tuple(change for change in self.changes if change.verdict is Verdict.REGRESSED)

    @property
    def broken_limits(self) -> tuple[LimitResult, ...]:
        """The limits that it exceeds: no command accepts it."""
        return tuple(limit for limit in self.limits if limit.verdict is Verdict.REGRESSED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two runs side by side."""

    created: datetime
    opprof_version: str
    base: Run | None  # the baseline without its tests (they are in ``tests``); None when there was none
    head: Run  # this run, without its tests
    notes: tuple[str, ...] = ()  # sentences about the whole, such as how the baseline was found
    # Tests of the baseline that this session left out, and tests that failed or were skipped.
    not_run: int = 0
    tests: tuple[TestComparison, ...] = ()  # failures first

    @property
    def counts(self) -> Counter[Verdict]:
        """How many tests got which verdict."""
        return Counter(test.verdict for test in self.tests if test.verdict)

    def test(self, node_id: str) -> TestComparison | None:
        """The comparison of one test."""
        return next((test for test in self.tests if test.node_id == node_id), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class TestPair:
    """A test on both sides; None if a side lacks it."""

    __test__ = False  # not a test class for pytest to collect

    node_id: str
    base: TestResult | None
    head: TestResult | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPair:
    """An op's row on both sides; None if a side lacks it."""

    name: str
    kind: OpKind
    background: bool
    base: OpRow | None
    head: OpRow | None


def pair_tests(base: Run | None, head: Run) -> Iterator[TestPair]:
    """The tests of both runs by node id: the head's in their order, then those that only the base has."""
    before = {test.node_id: test for test in base.tests} if base else {}
    for test in head.tests:
        yield TestPair(node_id=test.node_id, base=before.pop(test.node_id, None), head=test)
    for test in before.values():
        yield TestPair(node_id=test.node_id, base=test, head=None)


def pair_rows(base: TestResult, head: TestResult) -> Iterator[RowPair]:
    """The rows of both sides by name, kind and thread class; the steps' own ranges left out."""
    before = {row.key: row for row in base.ops}
    after = {row.key: row for row in head.ops}
    for key in dict.fromkeys((*after, *before)):
        name, kind, background = key
        if name != STEP_NAME:
            yield RowPair(
                name=name, kind=kind, background=background, base=before.get(key), head=after.get(key)
            )
