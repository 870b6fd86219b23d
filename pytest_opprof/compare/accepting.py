"""Turn a failed comparison into acceptances, and say when each ends."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from pytest_opprof.baselines.accepted import Acceptance
from pytest_opprof.compare.common_cause import common_causes
from pytest_opprof.compare.comparison import Change, Comparison, TestComparison
from pytest_opprof.compare.gates import Rule
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.errors import UsageError
from pytest_opprof.results.run import TestResult
from pytest_opprof.units import format_quantity

SPENT = "the baseline already includes it"
_LONGEST_REASON = 1_000
_OVER_LIMIT = "it is over a limit of its own: raise that in the test's marker"


def failed_by(comparison: Comparison, *, cause: int | None) -> list[str]:
    """The node ids of the tests that fail for the cause of this number, or of all that can be accepted."""
    causes = common_causes(comparison)
    if not causes:
        raise UsageError(f"nothing regressed and no test is missing in {_title(comparison)}")
    if cause is not None and not 1 <= cause <= len(causes):
        known = "1 cause" if len(causes) == 1 else f"causes 1 to {len(causes)}"
        raise UsageError(f"--cause {cause}: there is no such cause: {_title(comparison)} has {known}")
    tests = [test for one in causes if cause in {None, one.number} for test in one.tests]
    found = [test.node_id for test in tests if test.verdict is Verdict.MISSING or _failed_gates(test)]
    if not found:
        raise UsageError(f"{tests[0].node_id}: {_why_nothing(tests[0])}")
    return found


def left_over(comparison: Comparison, accepted: Collection[str]) -> list[str]:
    """A sentence for each accepted test that still fails because of its own limit."""
    over = (test for test in comparison.tests if test.node_id in accepted and test.broken_limits)
    return [f"{test.node_id} still fails: {_OVER_LIMIT}" for test in over]


def _title(comparison: Comparison) -> str:
    return f"the comparison of {comparison.created:%Y-%m-%d %H:%M} UTC ({comparison.head.title})"


def accepted_of(
    comparison: Comparison, node_id: str, *, metric: str | None, reason: str, created: datetime
) -> tuple[Acceptance, ...]:
    """Entries that let a test's rises pass: one for each failed gate, or for the named gate.

    A missing test has one entry, for itself. An entry is later than `created`, which is now, if the baseline
    has one on its subject: of another clock.
    """
    why = " ".join(reason.split())
    if not why or len(why) > _LONGEST_REASON:
        raise UsageError(f"--reason: write 1 to {_LONGEST_REASON} characters for the reviewers")
    test = comparison.test(node_id)
    assert test is not None, "it is a test of this comparison"
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
        return (_unspent(new(op=None, metric=None, value=None), test.base),)
    failed = _failed_gates(test)
    if not failed:
        raise UsageError(f"{node_id}: {_why_nothing(test)}")
    if metric is not None and metric not in failed:
        others = f" (what failed: {', '.join(failed)})"
        told = _near(metric, failed) or others
        raise UsageError(f"{metric!a} is not a gate of {node_id} that failed in the last comparison{told}")
    return tuple(
        _unspent(
            new(
                op=change.op,
                metric=change.metric,
                value=change.head.high if change.head else 0,
                base=change.base.high if change.base else 0,
            ),
            test.base,
        )
        for path, change in failed.items()
        if metric in {None, path}
    )


def _unspent(entry: Acceptance, before: TestResult | None) -> Acceptance:
    """The entry, later than the baseline's on its subject: the clock that made that one may be fast."""
    if before is None or not entry.is_spent(before):
        return entry
    return replace(entry, created=before.accepted[entry.path] + timedelta(seconds=1))


def why_ended(entry: Acceptance, before: TestResult, *, base: int, rule: Rule) -> str:
    """Why an acceptance no longer holds, in words; empty if it holds, as after a fall within the rule."""
    if entry.is_spent(before):
        return SPENT
    if entry.base is not None and not rule.allows(entry.about.rise(base, entry.base), base=base):
        values = [format_quantity(value, unit=entry.about.unit) for value in (entry.base, base)]
        return f"the baseline has since improved from {values[0]} to {values[1]}"
    return ""


def _failed_gates(test: TestComparison) -> Mapping[str, Change]:
    """The changes that fail by themselves, by path: a part of a total needs no entry."""
    return {str(change.path): change for change in test.regressed if change.rule}


def _why_nothing(test: TestComparison) -> str:
    if test.broken_limits:
        return _OVER_LIMIT
    verdict = test.verdict.label if test.verdict else "not judged"
    return f"nothing to accept: it was {verdict} in the last comparison"


def _near(text: str, known: Iterable[str]) -> str:
    """A suggestion in brackets."""
    near = difflib.get_close_matches(text, list(known), n=1, cutoff=0.5)
    return f" (did you mean {near[0]!a}?)" if near else ""
