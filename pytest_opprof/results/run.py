"""A run as values: what was measured, of which tests, where, at which commit.

These classes are the wall between the live process and all that judges and shows: they hold plain values,
compare by value, and go to a document and back without loss (`results.document`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from functools import reduce
from typing import Final

from pytest_opprof.kinds import OpKind
from pytest_opprof.metrics import (
    COUNT,
    CPU_TIME_TOTAL,
    SELF_CPU_TIME_TOTAL,
    TOTAL_SELF_CPU_TIME,
    VIEWS,
    VIEWS_COUNT,
    WALL_TIME,
    MetricPath,
    matches,
)
from pytest_opprof.results.samples import Samples
from pytest_opprof.units import EVERY_PPM
from pytest_opprof.wording import counted

# Values on which this many processes agree are certified.
CERTIFICATE = 2


class Outcome(StrEnum):
    """How the test itself ended, in pytest's words."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    ERROR = "error"


class MeasurementStatus(StrEnum):
    """Whether the measurement can be used."""

    OK = "ok"
    ERROR = "error"  # it failed, but the test did not
    INCONCLUSIVE = "inconclusive"  # it ended, but cannot be trusted
    NOT_RUN = "not-run"  # the test was skipped, failed, or cannot be repeated


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """The commit that was measured."""

    id: str
    dirty: bool
    branch: str | None = None

    @property
    def short(self) -> str:
        """The commit as people write it, ``1a2b3c4`` or ``1a2b3c4+dirty``."""
        return self.id[:7] + ("+dirty" if self.dirty else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Where a run was measured."""

    # The fields that metrics depend on (`metrics.FINGERPRINT_FIELDS`).
    fingerprint: Mapping[str, str] = field(default_factory=dict)
    # Details that are never compared: versions of other packages, kernel, container.
    details: Mapping[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Sixteen hex digits, equal if and only if the fingerprints are."""
        text = json.dumps(dict(self.fingerprint), sort_keys=True)
        return hashlib.sha256(text.encode("ascii")).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """The numbers of torch.profiler's schedule."""

    skip_first: int = 0
    skip_first_wait: int = 0
    wait: int = 0
    warmup: int = 0
    active: int = 1
    repeat: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """Whether a test's numbers can be used, and why not."""

    status: MeasurementStatus = MeasurementStatus.OK
    reason: str = ""


# Steps with undisturbed ends are mostly undisturbed; the fastest of so many is, nearly always.
ENOUGH_UNDISTURBED: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The steps that were timed without a profiler."""

    steps: int = 0  # their number; the total ``wall_time`` has a value for each
    # How many of the requested steps the test took. A busy machine needs more.
    planned: int = 0
    disturbed: int = 0  # how many of ``steps`` began or ended while the machine was slower than usual
    # The time of a fixed amount of work beside the slowest of the ten calmest steps; 0 if not measured.
    probe_ns: int = 0
    reason: str = ""  # why there are fewer than requested; empty if there are not


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureStats:
    """The collector's statistics of a recording."""

    events: int = 0
    dropped: int = 0
    truncated: bool = False
    threads: int = 0
    unmatched_ends: int = 0
    names_overflowed: int = 0
    crash_recovery: bool = True
    sampled_ppm: int = EVERY_PPM  # how many of a million torch ops were recorded; a million for all
    # CUPTI delivered only a part of the device records: another profiler took it over, or it failed.
    device_partial: bool = False
    device_dropped: int = 0  # lost records of device work
    unmatched_launches: int = 0  # launches without a recorded kernel
    unmatched_kernels: int = 0  # kernels, copies and fills without a recorded launch
    untimed_work: int = 0  # kernels, copies and fills without a time

    @property
    def is_sampled(self) -> bool:
        """Whether torch's ops were sampled."""
        return self.sampled_ppm < EVERY_PPM

    @property
    def is_complete(self) -> bool:
        """Whether every op of the steps was recorded."""
        return not (self.dropped or self.truncated)

    @property
    def device_gap(self) -> str:
        """What is missing of device work, in words; empty if nothing is."""
        gaps = [
            (self.device_dropped, "device record was dropped", "device records were dropped"),
            (self.unmatched_launches, "launch has no kernel on record", "launches have no kernel on record"),
            (
                self.unmatched_kernels,
                "kernel, copy or fill has no launch on record",
                "kernels, copies or fills have no launch on record",
            ),
            (self.untimed_work, "kernel, copy or fill has no time", "kernels, copies or fills have no time"),
        ]
        found = [counted(*gap) for gap in gaps if gap[0]]
        partial = ["CUPTI delivered only some of the device records"] if self.device_partial else []
        return ", ".join(partial + found)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpRow:
    """One row of the key averages: an op's name, and its numbers over the active steps."""

    name: str
    kind: OpKind  # an op, a range, a call, or device work
    background: bool = False  # from threads that neither step nor were started in a step; never gated
    is_async: bool = False  # some calls ended on another thread or out of order: they have only a total time
    # By the names of `metrics.ROW_METRICS`, in each step; ``count`` is always there, metrics that are always
    # 0 or not recorded are not.
    metrics: Mapping[str, Samples]
    parent_op: str | None = None  # its most frequent caller or launcher; None without one
    # The innermost user frame of most calls, ``forward, model.py:41``; None without call sites or stacks.
    source: str | None = None
    # The innermost user frames, with their calls over all steps; most first.
    places: Mapping[str, int] = field(default_factory=dict)
    # By metric, these places' parts of it over all steps, if known.
    parts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, OpKind, bool]:
        """Pairs this row with that of another run."""
        return (self.name, self.kind, self.background)

    @property
    def count(self) -> Samples:
        """How many calls in each step."""
        return self.metrics[COUNT.name]

    @property
    def views(self) -> Samples | None:
        """How many of these were views; None if none were, or it is unknown (`TestResult.tells_views`)."""
        return self.metrics.get(VIEWS.name)

    @property
    def not_views(self) -> Samples:
        """How many calls in each step were not views."""
        return self.count if self.views is None else self.count.minus(self.views)

    @property
    def cpu_time_total_ns(self) -> Samples:
        """Time on the host in each step, with children."""
        return self.samples(CPU_TIME_TOTAL.name)

    @property
    def self_cpu_time_total_ns(self) -> Samples:
        """Time on the host in each step, without children."""
        return self.samples(SELF_CPU_TIME_TOTAL.name)

    def samples(self, metric: str) -> Samples:
        """The values of one of `metrics.ROW_METRICS`; zeros if not recorded."""
        return self.metrics.get(metric) or self.count.zeros()

    def with_metrics(self, **metrics: Samples) -> OpRow:
        """The row with these metrics in place of its own."""
        return replace(self, metrics={**self.metrics, **metrics})


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeNode:
    """A node of the call tree; its parent is an earlier node, -1 for a root. Numbers are over all steps."""

    parent: int
    name: str
    count: int
    self_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedFrom:
    """The earlier run of a stored test that did not run this time."""

    run_id: str
    created: datetime
    commit: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TestResult:
    """One test of a run."""

    __test__ = False  # not a test class for pytest to collect

    node_id: str  # Pytest's, without xdist's suffix (`results.names.canonical_node_id`)
    outcome: Outcome = Outcome.PASSED
    measurement: Measurement = field(default_factory=Measurement)
    schedule: Schedule | None = None  # None if the test has its own function
    activities: tuple[str, ...] = ()  # in torch.profiler's words: ``cpu``, ``cuda``
    sources: tuple[str, ...] = ()  # the sources recorded from, in the words of `metrics.Source`
    unheard: Mapping[str, str] = field(default_factory=dict)  # why a requested source did not run, by source
    # The part of the fingerprint that code may set, as at this test's end.
    settings: Mapping[str, str] = field(default_factory=dict)
    # Whether torch.compile compiled for it (``cold``) or used a cache (``warm``), in any measuring process;
    # empty if it compiled nothing.
    compile_cache: tuple[str, ...] = ()
    steps: int = 0  # the active steps that finished
    capture: CaptureStats = field(default_factory=CaptureStats)
    # The steps that ran after the active ones, without a profiler.
    timing: Timing = field(default_factory=Timing)
    processes: int = 1  # in how many processes the exact values were seen; two or more make a certificate
    unstable: tuple[str, ...] = ()  # the paths of exact metrics that disagreed in another measurement
    # The marker's rules, path to rule; later comparisons obey them too.
    gates: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, int | str] = field(default_factory=dict)  # the marker's budgets, path to limit
    # The rises that were accepted in the measured code, path to when. A baseline ends them.
    accepted: Mapping[str, datetime] = field(default_factory=dict)
    # By the names of `metrics.TOTALS`; only those that the sources cover.
    totals: Mapping[str, Samples] = field(default_factory=dict)
    # By such a total, each function's part, named like places without a line; of torch.compile's, with the
    # reason after a colon.
    functions: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    # By function, named so: the places that called it, with how often in one call of the test. Noted while
    # Python instructions are counted.
    calls: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    ops: tuple[OpRow, ...] = ()  # costliest first
    ops_omitted: int = 0  # rows beyond the cap
    # The text of the lines in ``places`` of the ops, in ``calls`` and in ``callers``, by place; also of the
    # lines below one that only opens brackets, which reports show with it.
    lines: Mapping[str, str] = field(default_factory=dict)
    # By place: those that called its function, the busiest first, and so on outwards. Only a test that was
    # measured once more, because it would fail, has them.
    callers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    tree: tuple[TreeNode, ...] = ()  # the call tree, parents before children
    # In a merged run of several ranks, by rank and total, the mean of a step, rounded.
    ranks: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    # Set in a stored run, for a test that did not run when it was saved.
    carried_from: CarriedFrom | None = None

    @property
    def is_usable(self) -> bool:
        """Whether it ran and was measured."""
        return self.outcome is Outcome.PASSED and self.measurement.status is MeasurementStatus.OK

    @property
    def is_left_alone(self) -> bool:
        """Whether it ran unmeasured: it cannot be repeated, and was not marked by itself."""
        return self.outcome is Outcome.PASSED and self.measurement.status is MeasurementStatus.NOT_RUN

    @property
    def tells_views(self) -> bool:
        """Whether views are counted apart from its ops: not in older releases, nor in a trace."""
        return VIEWS_COUNT.name in self.totals

    @property
    def has_only_counts(self) -> bool:
        """Whether it is from a ``counts:`` file, which has no times, calls or work of the background."""
        return TOTAL_SELF_CPU_TIME.name not in self.totals

    def steps_of(self, total: str) -> int:
        """A total's number of values: one for each active step, or for each timed step."""
        return self.timing.steps if total == WALL_TIME.name else self.steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One session's measurements; with a name it is a baseline."""

    run_id: str
    created: datetime
    opprof_version: str
    name: str | None = None
    commit: Commit | None = None
    environment: Environment = field(default_factory=Environment)
    notes: tuple[str, ...] = ()
    tests: tuple[TestResult, ...] = ()

    def test(self, node_id: str) -> TestResult | None:
        """The result of the test with this (canonical) node id."""
        return next((test for test in self.tests if test.node_id == node_id), None)

    @property
    def title(self) -> str:
        """This run's name in sentences: ``main@1a2b3c4``, ``1a2b3c4+dirty``, ``main``, or its time."""
        commit = self.commit.short if self.commit else None
        if self.name and commit:
            return f"{self.name}@{commit}"
        return self.name or commit or f"the run of {self.created:%Y-%m-%d %H:%M}"


def value_of(test: TestResult, path: MetricPath) -> Samples | None:
    """A metric of a test in each step, None without the total: for a pattern, the sum of the matching ops."""
    if path.op is None:
        return test.totals.get(path.metric.name)
    rows = (row for row in test.ops if not row.background and matches(path.op, row.name))
    values = (row.samples(path.metric.name) for row in rows)
    return reduce(Samples.plus, values, Samples.constant(0, steps=test.steps))


def value_in(test: TestResult, path: MetricPath) -> Samples | None:
    """The same; None if the test does not know: its source was not recorded, or rows were left out."""
    if path.op is None:
        return value_of(test, path)
    # An op that did not run has 0 calls, unless it may be among the omitted rows.
    has_row = any(not row.background and matches(path.op, row.name) for row in test.ops)
    is_known = path.metric.answers(test.sources) and (has_row or not test.ops_omitted)
    return value_of(test, path) if is_known else None
