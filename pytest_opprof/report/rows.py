"""The words for a change, the same on a terminal, in a comment and on a page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pytest_opprof.compare.comparison import Change, LimitResult, TestComparison
from pytest_opprof.compare.phrases import name_of
from pytest_opprof.compare.timing.comparison import TestTimes
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.metrics import OP_METRICS, TOTALS
from pytest_opprof.report.device_changes import telling_changes
from pytest_opprof.results.samples import Samples, range_text
from pytest_opprof.units import Unit, format_change, format_precise_duration, format_quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One change of one test. All texts are the document's: whoever shows them escapes them."""

    test: str
    # the op, ``a -> b`` of a rewrite, ``ops, total``, or a limit's path; empty for the test itself
    what: str = ""
    metric: str = ""  # the metric's name; ``limit`` for a limit, ``time`` for the time of an A/B
    base: str = ""  # the value before; for a limit the allowed one
    head: str = ""
    change: str = ""  # the difference with its sign; ``over`` for a limit
    why: str = ""  # where it comes from, or why it has its verdict
    verdict: Verdict | None = None  # None if advisory
    source: Change | None = None  # the change that it shows; None for limits, times and tests

    @property
    def is_total(self) -> bool:
        """Whether it is about the test, not about one of its ops."""
        return self.source is not None and self.source.op is None


def change_rows(test: TestComparison) -> list[Row]:
    """A test's changes: the ops, the worst first, then the totals, because a sum comes last."""
    # A change that is among the advisories is not a row. Background rows block nothing but are shown: moved
    # work is still work.
    shown = [
        change
        for change in telling_changes(test)
        if (change.background and change.rise) or change.verdict not in {None, Verdict.PASS}
    ]
    shown.sort(key=lambda change: change.op is None)
    return [_change_row(test.node_id, change) for change in _without_alike(shown)]


def _without_alike(changes: Sequence[Change]) -> Iterator[Change]:
    """Leaves out unchanged totals that were not judged, except the first of each reason."""
    reasons = set()
    for change in changes:
        if change.op is None and change.verdict is Verdict.INCONCLUSIVE and change.base == change.head:
            if change.reason in reasons:
                continue
            reasons.add(change.reason)
        yield change


def limit_rows(test: TestComparison) -> list[Row]:
    """A test's limits that are exceeded or cannot be judged."""
    return [_limit_row(test.node_id, limit) for limit in test.limits if limit.verdict is not Verdict.PASS]


def time_row(test: TestTimes) -> Row:
    """The time of a test of an A/B, by the judged quartiles; its verdict and cause are the test's."""
    base = head = change = ""
    if test.times is not None:
        base, head = map(format_precise_duration, test.times.quartiles)
        change = format_change(test.times.change_ppm, unit=Unit.PPM)
    return Row(
        test=test.node_id,
        metric="time",
        base=base,
        head=head,
        change=change,
        why=test.cause or ("" if test.verdict is Verdict.PASS else test.reason),
        verdict=test.verdict,
    )


def value_text(samples: Samples | None, *, unit: Unit) -> str:
    """One side's value; without a row, 0."""
    return format_quantity(0, unit=unit) if samples is None else range_text(samples, unit=unit)


def numbers_of(change: Change) -> dict[str, str]:
    """A change's ``base`` and ``head``, and the ``change`` between them."""
    return {
        "base": _side_text(change, change.base),
        "head": _side_text(change, change.head),
        "change": change_text(change),
    }


def means_of(change: Change) -> dict[str, float]:
    """What `numbers_of` says, as numbers that order a table: ``before``, ``now`` and ``rise``."""
    before, now = (side.mean if side else 0 for side in (change.base, change.head))
    return {"before": before, "now": now, "rise": change.rise}


def _side_text(change: Change, samples: Samples | None) -> str:
    """One side of a change; for the background, which has no steps, the mean of a step, rounded up."""
    if change.background and samples is not None:
        samples = Samples.constant(math.ceil(samples.mean), steps=samples.steps)
    return value_text(samples, unit=change.about.unit)


def change_text(change: Change) -> str:
    """How much changed: ``+2``, ``-0.3 MiB``, ``0`` for a new name; ``?`` if the ranges overlap."""
    is_known = change.rise or change.rewrite is not None
    return format_change(change.rise, unit=change.about.unit) if is_known else "?"


def _change_row(node_id: str, change: Change) -> Row:
    why = change.cause or change.reason
    if change.verdict is Verdict.INCONCLUSIVE:
        why = f"inconclusive: {change.reason}"
    elif change.reason and change.cause and change.verdict in {Verdict.ACCEPTED, Verdict.REGRESSED}:
        why = f"{change.cause}; {change.reason}"
    return Row(
        test=node_id,
        what=name_of(change),
        metric=change.metric if change.op is not None else change.metric.rpartition(".")[2],
        why=why,
        verdict=change.verdict,
        source=change,
        **numbers_of(change),
    )


def _limit_row(node_id: str, limit: LimitResult) -> Row:
    is_over = limit.verdict is Verdict.REGRESSED
    unit = unit_of(limit.path)
    return Row(
        test=node_id,
        what=limit.path,
        metric="limit",
        base=limit.limit,
        head="nothing" if limit.value is None else value_text(limit.value, unit=unit),
        change="over" if is_over else "?",
        why=limit.reason if is_over else f"inconclusive: {limit.reason}",
        verdict=limit.verdict,
    )


def unit_of(path: str) -> Unit:
    """The unit of a limit's metric."""
    metric = TOTALS.get(path) or OP_METRICS.get(path.rpartition(".")[2])
    return metric.unit if metric else Unit.COUNT
