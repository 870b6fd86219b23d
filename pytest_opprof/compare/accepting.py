"""From a failed comparison to what is accepted of it, and when that ends."""

from __future__ import annotations

import difflib
from functools import partial
from typing import TYPE_CHECKING

from pytest_opprof.baselines.accepted import Acceptance
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.errors import UsageError
from pytest_opprof.metrics import MetricPath
from pytest_opprof.units import format_quantity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from pytest_opprof.compare.comparison import Change, Comparison, TestComparison
    from pytest_opprof.compare.gates import Rule
    from pytest_opprof.results.run import TestResult

SPENT = "the baseline was measured with it"
_LONGEST_REASON = 1_000


def accepted_of(
    comparison: Comparison, node_id: str, *, metric: str | None, reason: str, created: datetime
) -> tuple[Acceptance, ...]:
    """What lets a test's rises pass: an entry for each gate that failed, or for one of them.

    A test that is missing has one entry, for itself.

    Args:
        comparison: in which it failed.
        node_id: the test.
        metric: the one gate that is meant, such as ``ops.count``; None for all that failed.
        reason: why the rise is right.
        created: now.

    Raises:
        UsageError: no reason, or no such test, or nothing of it that regressed; it says what did.
    """
    why = " ".join(reason.split())
    if not why or len(why) > _LONGEST_REASON:
        raise UsageError(f"--reason: say why in 1 to {_LONGEST_REASON} characters: it is what reviewers read")
    test = comparison.test(node_id)
    if test is None:
        raise UsageError(
            f"the last comparison has no test {node_id!a}{_near(node_id, _node_ids(comparison))}"
        )
    base, head = comparison.base, comparison.head
    new = partial(
        Acceptance,
        test=node_id,
        reason=why,
        baseline=base.name if base else None,
        created=created,
        commit=head.commit,
    )
    if test.verdict is Verdict.MISSING and metric is None:
        return (new(op=None, metric=None, value=None),)
    failed = _failed_gates(test)
    if not failed:
        raise UsageError(f"{node_id}: {_why_nothing(test)}")
    if metric is not None and metric not in failed:
        others = f" (what failed: {', '.join(failed)})"
        told = _near(metric, failed) or others
        raise UsageError(f"{metric!a} is no gate of {node_id} that failed in the last comparison{told}")
    return tuple(
        new(
            op=change.op,
            metric=change.metric,
            value=change.head.high if change.head else 0,
            base=change.base.high if change.base else 0,
        )
        for path, change in failed.items()
        if metric in {None, path}
    )


def why_ended(entry: Acceptance, before: TestResult, *, base: int, rule: Rule) -> str:
    """Why an acceptance no longer holds, in words; empty where it holds.

    Args:
        entry: what was accepted.
        before: the test in the baseline.
        base: the value there.
        rule: how the metric is judged. What it allows is no improvement.
    """
    if entry.is_spent(before):
        return SPENT
    if entry.base is not None and not rule.allows(entry.about.rise(base, entry.base), base=base):
        values = [format_quantity(value, unit=entry.about.unit) for value in (entry.base, base)]
        return f"the baseline improved from {values[0]} to {values[1]} since"
    return ""


def _failed_gates(test: TestComparison) -> Mapping[str, Change]:
    """By their paths, the changes that fail by themselves: a part of a total needs no entry."""
    return {
        str(MetricPath(op=change.op, metric=change.about)): change
        for change in test.changes
        if change.verdict is Verdict.REGRESSED and change.rule
    }


def _why_nothing(test: TestComparison) -> str:
    if any(limit.verdict is Verdict.REGRESSED for limit in test.limits):
        return "it is over a limit of its own: raise that in the test's marker"
    verdict = test.verdict.label if test.verdict else "not judged"
    return f"nothing of it regressed in the last comparison: it was {verdict}"


def _node_ids(comparison: Comparison) -> list[str]:
    return [test.node_id for test in comparison.tests]


def _near(text: str, known: Iterable[str]) -> str:
    """A suggestion in brackets; a test is often named without its file."""
    candidates = list(known)
    ends = [candidate for candidate in candidates if candidate.endswith(f"::{text}")]
    near = ends or difflib.get_close_matches(text, candidates, n=1, cutoff=0.5)
    return f" (did you mean {near[0]!a}?)" if near else ""
