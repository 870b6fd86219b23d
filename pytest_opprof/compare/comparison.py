"""A comparison as values: two runs, and per test what changed and what that means."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from fractions import Fraction

from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.kinds import OpKind
from pytest_opprof.metrics import OP_METRICS, TOTALS, Metric
from pytest_opprof.results.run import Run, TestResult
from pytest_opprof.results.samples import Samples
from pytest_opprof.wording import listed


class RewriteKind(StrEnum):
    """What became of ops that others stand for now (`compare.rewrites.alignment` has the rules)."""

    RENAMED = "renamed"  # one op, another one as often
    FUSED = "fused"  # several ops or calls, one now
    SPLIT = "split"  # one op, several ops or calls now
    WRAPPED = "wrapped"  # the same ops, inside another one now
    UNWRAPPED = "unwrapped"  # the same ops, without the one around them
    ADDED = "added"  # an op with those that it calls
    REMOVED = "removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """Ops that became others at the same place of the call tree: many rows told as one.

    Attributes:
        before: The outermost ops that were there; none for what was added.
        after: The outermost ops that are there now; none for what was removed.
    """

    kind: RewriteKind
    before: tuple[str, ...]
    after: tuple[str, ...]

    def __str__(self) -> str:
        """``aten::mul + aten::add -> aten::addcmul``."""
        sides = (listed(side, most=3, separator=" + ", last=" + ") for side in (self.before, self.after))
        return " -> ".join(filter(None, sides))


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLine:
    """The line of the user's own code that calls an op more often.

    Attributes:
        function: Its qualified name, ``Block.forward``.
        file: As seen from where the tests were started, ``src/model.py``.
        number: Of the line, in the head; 0 where the function is known and no line.
        text: What stands in it; empty where that is unknown.
        is_certain: Whether the base says from where it called the op; else this line calls it most often.
        is_edited: Whether it is new, or was edited, since the base's commit.
    """

    function: str
    file: str
    number: int
    text: str = ""
    is_certain: bool = True
    is_edited: bool = False

    @property
    def place(self) -> str:
        """``Block.forward, src/model.py:41``, as rows name it."""
        return f"{self.function}, {self._where}"

    @property
    def location(self) -> str:
        """``src/model.py:41 in Block.forward``."""
        return f"{self._where} in {self.function}"

    @property
    def _where(self) -> str:
        return f"{self.file}:{self.number}" if self.number else self.file


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One metric of one op, or one total, that is not as it was.

    Attributes:
        op: The op's name; None for a total of the test. Of a rewrite, the first of its ops.
        kind: What the op is; None for a total.
        background: Whether it ran outside the steps' threads; such rows never block.
        base: The values before; None for a row that was not there.
        head: The values now; None for a row that is gone.
        rule: How it was judged, ``exact`` or ``2%``; empty for what is only shown.
        verdict: None for what is advisory.
        cause: Where a rise comes from, in words; empty where nothing is known.
        line: The user's line that it comes from; None where no line is known.
        caller: The op or range that calls it more often, or launched it; empty for the test itself, and where
            nobody knows.
        reason: Why the verdict is what it is, where the numbers do not say it.
        rewrite: Which ops became which; the values are then those of all of them together.
        is_free: Whether it is by views alone, and nobody gates it: neither better nor worse.
        begins: Whether a regression begins with this op, and not with another one that changed.
    """

    op: str | None
    kind: OpKind | None = None
    background: bool = False
    metric: str
    base: Samples | None
    head: Samples | None
    rule: str = ""
    verdict: Verdict | None
    cause: str = ""
    line: CallLine | None = None
    caller: str = ""
    reason: str = ""
    rewrite: Rewrite | None = None
    is_free: bool = False
    begins: bool = False

    @property
    def about(self) -> Metric:
        """The metric itself."""
        return TOTALS[self.metric] if self.op is None else OP_METRICS[self.metric]

    @property
    def is_constant(self) -> bool:
        """Whether each side had one value in all of its steps."""
        return all(side is None or side.is_constant for side in (self.base, self.head))

    @property
    def is_slight(self) -> bool:
        """Whether it may come of any edit: a metric that tolerates some moved by no more than that."""
        return self.verdict is Verdict.CHANGED and self.about.slack is not None

    @property
    def rise(self) -> int:
        """How much a step has more now than before; below zero for less, and 0 where the ranges overlap.

        Of the background, which belongs to no step, the mean of a step, rounded away from zero.
        """
        if self.background:
            return _rise_of_means(self.base, self.head)
        low, high = (self.base.low, self.base.high) if self.base else (0, 0)
        head_low, head_high = (self.head.low, self.head.high) if self.head else (0, 0)
        if head_low > high:
            return head_low - high
        return min(head_high - low, 0)


def _rise_of_means(base: Samples | None, head: Samples | None) -> int:
    before, after = (Fraction(side.total, side.steps or 1) if side else Fraction() for side in (base, head))
    rise = after - before
    return math.ceil(rise) if rise > 0 else math.floor(rise)


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitResult:
    """What became of one budget of a test.

    Attributes:
        limit: The limit as a reader sees it, ``<= 64 MiB``.
        verdict: PASS, REGRESSED (it is over) or INCONCLUSIVE.
        reason: Why, where the value does not say it.
    """

    path: str
    limit: str
    value: Samples | None
    verdict: Verdict
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestComparison:
    """One test: both sides, what changed, and the verdict.

    Attributes:
        verdict: None where nothing was asked to block, or the test did not run.
        changes: The totals first, then ops; within both, the worst first.
        advisories: Sentences about what cannot block.
        base: The baseline's side; None without one.
        head: This run's side; None for a test that is gone.
    """

    __test__ = False  # not a test class for pytest to collect

    node_id: str
    verdict: Verdict | None
    reason: str = ""
    changes: tuple[Change, ...] = ()
    limits: tuple[LimitResult, ...] = ()
    advisories: tuple[str, ...] = ()
    base: TestResult | None = None
    head: TestResult | None = None

    @property
    def regressed(self) -> tuple[Change, ...]:
        """The changes that fail it."""
        return tuple(change for change in self.changes if change.verdict is Verdict.REGRESSED)

    @property
    def broken_limits(self) -> tuple[LimitResult, ...]:
        """The limits that it is over: no command accepts that."""
        return tuple(limit for limit in self.limits if limit.verdict is Verdict.REGRESSED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two runs side by side.

    Attributes:
        base: The baseline without its tests (they are in ``tests``); None when there was none.
        head: This run, without its tests.
        notes: What to say about the whole, such as how the baseline was found.
        not_run: Tests of the baseline that this session left out, and tests that failed or were skipped.
        tests: Failures first.
    """

    created: datetime
    opprof_version: str
    base: Run | None
    head: Run
    notes: tuple[str, ...] = ()
    not_run: int = 0
    tests: tuple[TestComparison, ...] = ()

    @property
    def counts(self) -> Counter[Verdict]:
        """How many tests got which verdict."""
        return Counter(test.verdict for test in self.tests if test.verdict)

    def test(self, node_id: str) -> TestComparison | None:
        """The comparison of one test."""
        return next((test for test in self.tests if test.node_id == node_id), None)
