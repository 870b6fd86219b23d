"""An A/B of times as values: two sides of fresh processes, and per test what became slower and why."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction

from pytest_opprof.compare.comparison import Comparison
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.kinds import OpKind
from pytest_opprof.units import EVERY_PPM

# The average share of false ones among the tests, or ops, called slower (or faster).
FALSE_DISCOVERIES = 0.05
# A base that differs from itself stops everything, so it needs more evidence.
CONTROL_FALSE_DISCOVERIES = 0.01
CONFIRMED_BELOW = 0.01
_MOST_PPM = 10**12  # fits a document; a side a million times slower needs no closer look


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSettings:
    """When a test is slower.

    Attributes:
        min_effect: The least change of a test's time that matters, as a share of the base.
        max_noise: How much the base may differ from itself for a test to be judged.
        least_processes: The fewest processes a side to judge a test.
    """

    min_effect: Fraction = Fraction(3, 100)
    max_noise: Fraction = Fraction(20, 100)
    least_processes: int = 8


class Direction(StrEnum):
    """A time's direction."""

    SLOWER = "slower"
    FASTER = "faster"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpTime:
    """An op's part in the change of its test: its self CPU time and calls in a step.

    Attributes:
        base_ns: The lower quartile of the base's processes' fastest steps; 0 if they lack it.
        head_ns: The same of the head.
        base_count: Calls in a step before.
        head_count: Calls in a step now.
        is_significant: The sides differ significantly, corrected for the number of ops.
    """

    name: str
    kind: OpKind
    base_ns: int
    head_ns: int
    base_count: int
    head_count: int
    is_significant: bool

    @property
    def rise_ns(self) -> int:
        """How much longer it takes now; negative for less."""
        return self.head_ns - self.base_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """One time of a test per process, in the order in which they ran: its fastest step, nanoseconds."""

    base_ns: tuple[int, ...] = ()
    head_ns: tuple[int, ...] = ()

    @property
    def quartiles(self) -> tuple[int, int]:
        """The base's and the head's lower quartile: the time of fast processes."""
        return _lower_quartile_ns(self.base_ns), _lower_quartile_ns(self.head_ns)

    @property
    def change_ppm(self) -> int:
        """By what share of the base the head is slower; negative if it is faster."""
        base, head = self.quartiles
        return round((head - base) * EVERY_PPM / base)

    @property
    def distance_ppm(self) -> int:
        """By what share the slower side exceeds the other, whichever is the base."""
        low, high = sorted(self.quartiles)
        return min(round((high - low) * EVERY_PPM / low), _MOST_PPM)

    @property
    def direction(self) -> Direction | None:
        """Which way the head's quartile went; None if equal to the base's."""
        base, head = self.quartiles
        if base == head:
            return None
        return Direction.SLOWER if head > base else Direction.FASTER


@dataclass(frozen=True, slots=True, kw_only=True)
class TestTimes:
    """One test of an A/B.

    Attributes:
        verdict: The worse of its times' and its exact gates'; None for a test that did not run.
        cause: What made it slower or do more, in few words; empty if unknown.
        noise_ppm: By what share the base's halves differ; None if unknown.
        flagged: Which way it went by more than its noise in the first round; None if it did not.
        times: The first round; None for a test without times.
        confirmation: The second round, if any.
        ops: The ops behind a flagged test's change, the largest part first.
    """

    __test__ = False  # not a test class for pytest to collect

    node_id: str
    verdict: Verdict | None
    reason: str = ""
    cause: str = ""
    noise_ppm: int | None = None
    flagged: Direction | None = None
    times: Sides | None = None
    confirmation: Sides | None = None
    ops: tuple[OpTime, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """The base's processes against each other: the differences that this machine finds in equal code.

    Attributes:
        noise_ppm: The largest difference of a test's halves, as a share; None without processes for halves.
        noisiest: The test that has it.
        flagged: Tests whose halves differ so clearly that nothing here can be trusted.
    """

    noise_ppm: int | None = None
    noisiest: str = ""
    flagged: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeComparison:
    """Base and head, measured by turns on one machine.

    Attributes:
        exact: The exact gates' results for the same processes; it has both sides.
        tests: Failures first.
    """

    exact: Comparison
    settings: TimeSettings = field(default_factory=TimeSettings)
    base_processes: int = 0
    head_processes: int = 0
    control: Control = field(default_factory=Control)
    notes: tuple[str, ...] = ()
    tests: tuple[TestTimes, ...] = ()

    @property
    def counts(self) -> Counter[Verdict]:
        """How many tests got which verdict."""
        return Counter(test.verdict for test in self.tests if test.verdict)

    @property
    def flagged(self) -> tuple[str, ...]:
        """The tests to confirm in fresh processes: compare again with their runs."""
        return tuple(test.node_id for test in self.tests if test.flagged and test.confirmation is None)

    def test(self, node_id: str) -> TestTimes | None:
        """The result of one test."""
        return next((test for test in self.tests if test.node_id == node_id), None)


def _lower_quartile_ns(values: Sequence[int]) -> int:
    """The lower quartile of at least one time, linearly interpolated, in whole nanoseconds."""
    if len(values) == 1:
        return values[0]
    return round(statistics.quantiles(values, n=4, method="inclusive")[0])
