"""A test's metric over the runs of a history: its value in each run, and where it changed."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pytest_opprof.errors import UsageError
from pytest_opprof.history.change_points import shifts
from pytest_opprof.history.reader import Result, Results
from pytest_opprof.history.record import Counts
from pytest_opprof.metrics import (
    COUNT,
    OPS_COUNT,
    RANGES_COUNT,
    TOTAL_SELF_CPU_TIME,
    VIEWS_COUNT,
    Family,
    Metric,
    MetricPath,
    matches,
    parse_path,
)
from pytest_opprof.results.merge import differences
from pytest_opprof.results.names import parts_of
from pytest_opprof.results.run import Environment
from pytest_opprof.results.samples import Samples
from pytest_opprof.wording import listed

_NAMED_AT_MOST = 5
_FEWEST_POINTS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A metric in one run."""

    result: Result
    samples: Samples | None  # the metric; None if unknown
    is_change: bool = False
    # Fingerprint fields that the metric depends on and that differ from the run before, in words.
    because: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """A metric of a test over time, oldest commit first."""

    node_id: str
    path: MetricPath
    results: Results  # the test's results, one per run
    samples: Sequence[Samples | None]  # the metric in each run; None if unknown
    changes: frozenset[int]  # the indices of the runs in which it changed
    note: str = ""  # why change points could not be looked for; empty otherwise

    def __len__(self) -> int:
        return len(self.samples)

    def points(self, *, last: int | None = None) -> list[Point]:
        """The points of the latest runs, or of all."""
        first = 0 if last is None else max(len(self) - last, 0)
        return [self.point(at) for at in range(first, len(self))]

    def point(self, at: int) -> Point:
        """The metric in one run."""
        before = self.results[at - 1] if at else None
        result = self.results[at]
        return Point(
            result=result,
            samples=self.samples[at],
            is_change=at in self.changes,
            because=because(before.environment, result.environment, self.path.metric) if before else (),
        )


def find_test(text: str, tests: Sequence[str], *, where: str = "the history") -> str:
    """Find the test with this node id, or the only one whose id contains it; else UsageError."""
    if text in tests:
        return text
    found = [test for test in tests if text in test]
    if len(found) == 1:
        return found[0]
    if found:
        # One test's name may begin another's: test_loop, test_loop_long.
        whole = [test for test in found if test.endswith(f"::{text}")]
        if len(whole) == 1:
            return whole[0]
        raise UsageError(f"{text!r} matches {listed(found, most=_NAMED_AT_MOST)}: give a longer part")
    if not tests:
        raise UsageError(f"{where} is empty. Record tests with pytest --opprof-save=NAME")
    names = {parts_of(test)[-1]: test for test in reversed(tests)} | {test: test for test in tests}
    near = difflib.get_close_matches(text, names, n=1, cutoff=0.5)
    hint = f"did you mean {names[near[0]]!r}?" if near else f"it has {len(tests)} tests, such as {tests[0]!r}"
    raise UsageError(f"{where} has no test {text!r} ({hint})")


def wanted_metrics(
    metric: str | None, results: Results, *, has_times_of_ops: bool = False
) -> tuple[MetricPath, ...]:
    """The metric that the user wrote; without one, the number of ops (else ranges) per step and their time.

    Only tables have times of ops.
    """
    if metric is None:
        has_ops = any(OPS_COUNT.name in counts.totals for counts in results.counts)
        count = OPS_COUNT if has_ops else RANGES_COUNT
        return MetricPath(op=None, metric=count), MetricPath(op=None, metric=TOTAL_SELF_CPU_TIME)
    path = parse_path(metric, where="METRIC")
    if path.op is not None and path.metric.family is not Family.EXACT and not has_times_of_ops:
        raise UsageError(
            f"{metric}: the history has times only of whole tests ({TOTAL_SELF_CPU_TIME.name}), and exact "
            f"metrics of ops ({path.op}.{COUNT.name}). For times of an op, compare two runs: opprof compare"
        )
    return (path,)


def trend_of(
    node_id: str,
    path: MetricPath,
    results: Results,
    *,
    samples: Sequence[Samples | None] | None = None,
) -> Trend:
    """The trend of a metric, whose `samples` are given if the results do not have them.

    An exact metric changes with its value, and a time where its level shifts (`change_points`).
    """
    samples = values_of(results, path) if samples is None else samples
    known = [at for at, each in enumerate(samples) if each is not None]
    note, changes = "", set()
    if path.metric.family is Family.EXACT:
        counts = results.counts
        changes = {
            at
            for before, at in itertools.pairwise(known)
            if counts[before] is not counts[at] and not _is_same(path, samples, results, before, at)
        }
    elif len(known) >= _FEWEST_POINTS:
        found = shifts([float(each.low) for each in samples if each is not None])
        note, changes = found.problem, {known[at] for at in found.at}
    return Trend(
        node_id=node_id, path=path, results=results, samples=samples, changes=frozenset(changes), note=note
    )


def _is_same(path: MetricPath, samples: Sequence[Samples | None], results: Results, *runs: int) -> bool:
    """Whether two runs agree; if one of them does not count views apart, on ops and views together."""
    values = [samples[run] for run in runs]
    views = [results.counts[run].totals.get(VIEWS_COUNT.name) for run in runs]
    if path.op is None and path.metric is OPS_COUNT and None in views:
        values = [ops.plus(more) if ops and more else ops for ops, more in zip(values, views, strict=True)]
    before, after = values
    return before is None or after is None or not is_change(before, after)


def is_change(before: Samples, after: Samples) -> bool:
    """Whether an exact value changed; if steps vary in both runs, only if their ranges do not overlap."""
    if before.is_constant or after.is_constant:
        return (before.low, before.high) != (after.low, after.high)
    return before.low > after.high or after.low > before.high


def values_of(results: Results, path: MetricPath) -> list[Samples | None]:
    """A metric in each run, per step; of a pattern, the sum of ops that match. None if unknown."""
    # Thousands of runs share counts, so each is searched once.
    told = {id(counts): counts for counts in results.counts}
    name = path.metric.name
    if path.op is None and any(name in counts.measured for counts in told.values()):
        return [
            _measured(counts, measured, name) if name in counts.measured else counts.totals.get(name)
            for counts, measured in zip(results.counts, results.measured, strict=True)
        ]
    exact = {key: _exact(counts, path) for key, counts in told.items()}
    return [exact[id(counts)] for counts in results.counts]


def _measured(counts: Counts, measured: Sequence[int], name: str) -> Samples | None:
    at = counts.measured.index(name)
    return Samples.constant(measured[at], steps=counts.steps) if at < len(measured) else None


def _exact(counts: Counts, path: MetricPath) -> Samples | None:
    name = path.metric.name
    if path.op is None:
        return counts.totals.get(name)
    found = [ops[name] for op, ops in counts.ops.items() if name in ops and matches(path.op, op)]
    if found:
        return reduce(Samples.plus, found)
    # A missing op ran 0 times, if its source was recorded and all ops were kept.
    is_seen = path.metric.answers(counts.sources) and not counts.ops_omitted
    return Samples.constant(0, steps=counts.steps) if is_seen else None


def because(before: Environment, after: Environment, metric: Metric) -> tuple[str, ...]:
    """The differing fingerprint fields that a metric depends on, in words."""
    # Most of thousands of runs share one environment.
    found = {} if before is after else differences(before, after, ignore_unknown=True)
    return tuple(words for field, words in found.items() if field in metric.depends_on)
