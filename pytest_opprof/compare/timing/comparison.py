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
_MOST_PPM = 10**12  # fits a document; a side a million times slower needs no closer look


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSettings:
    """When a test is slower."""

    # The least change of a test's time that matters, as a share of the base.
    min_effect: Fraction = Fraction(3, 100)
    # How much the base may differ from itself for a test to be judged.
    max_noise: Fraction = Fraction(20, 100)
    least_processes: int = 8  # the fewest processes a side to judge a test


class Direction(StrEnum):
    """A time's direction."""

    SLOWER = "slower"
    FASTER = "faster"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpTime:
    """An op's part in the change of its test: its self CPU time and calls in a step."""

    name: str
    kind: OpKind
    base_ns: int  # the lower quartile of the base's processes' fastest steps; 0 if they lack it
    head_ns: int  # the same of the head
    base_count: int  # calls in a step before
    head_count: int  # calls in a step now
    is_significant: bool  # the sides differ significantly, corrected for the number of ops

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
    """One test of an A/B."""

    __test__ = False  # not a test class for pytest to collect

    node_id: str
    verdict: Verdict | None  # the worse of its times' and its exact gates'; None for a test that did not run
    reason: str = ""
    cause: str = ""  # what made it slower or do more, in few words; empty if unknown
    noise_ppm: int | None = None  # by what share the base's halves differ; None if unknown
    # Which way it went by more than its noise in the first round; None if it did not.
    flagged: Direction | None = None
    times: Sides | None = None  # the first round; None for a test without times
    confirmation: Sides | None = None  # the second round, if any
    ops: tuple[OpTime, ...] = ()  # the ops behind a flagged test's change, the largest part first


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """The base's processes against each other: the differences that this machine finds in equal code."""

    # The largest difference of a test's halves, as a share; None without processes for halves.
    noise_ppm: int | None = None
    noisiest: str = ""  # the test that has it
    flagged: tuple[str, ...] = ()  # tests whose halves differ so clearly that nothing here can be trusted


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeComparison:
    """Base and head, measured by turns on one machine."""

    exact: Comparison  # the exact gates' results for the same processes; it has both sides
    settings: TimeSettings = field(default_factory=TimeSettings)
    base_processes: int = 0
    head_processes: int = 0
    control: Control = field(default_factory=Control)
    notes: tuple[str, ...] = ()
    tests: tuple[TestTimes, ...] = ()  # failures first

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
