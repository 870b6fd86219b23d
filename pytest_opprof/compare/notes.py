"""Notes on a whole comparison: tests without a gate, and reasons why gates were not judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from pytest_opprof.compare.comparison import Change, TestComparison
from pytest_opprof.compare.pairing import TestPair
from pytest_opprof.compare.phrases import name_of, values_of
from pytest_opprof.compare.trust import Trust
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.compare.views import is_guessed
from pytest_opprof.metrics import Family, Worse
from pytest_opprof.results.merge import Collected
from pytest_opprof.results.run import MeasurementStatus, Outcome, Run, TestResult
from pytest_opprof.wording import counted, listed

_MOST_TOLD = 3
# These are shown in full.
_TOLD = (Verdict.REGRESSED, Verdict.MISSING, Verdict.INCONCLUSIVE, Verdict.ERROR)


def nothing_in_common(base: Run | None, pairs: Sequence[TestPair]) -> tuple[str, ...]:
    """A note if all tests are new: the session passes, but nothing was compared."""
    measured = [pair for pair in pairs if pair.head is not None and ran(pair.head)]
    if base is None or not measured or any(pair.base is not None for pair in measured):
        return ()
    return (f"nothing was compared: {base.title} has none of the tests that ran",)


def skipped(base: Run | None, pairs: Iterable[TestPair], collected: Collected) -> tuple[str, ...]:
    """A note on baseline tests that were skipped, alone or with their file: no gate checked them."""
    names = [
        pair.node_id
        for pair in pairs
        if pair.base is not None
        and (
            collected.leaves_out(pair.node_id) if pair.head is None else pair.head.outcome is Outcome.SKIPPED
        )
    ]
    if base is None or not names:
        return ()
    told = listed(names, most=_MOST_TOLD, last=", and ")
    return (f"not compared with {base.title}: {counted(len(names), 'skipped test')}: {told}",)


def views_guessed(base: Run | None, pairs: Iterable[TestPair]) -> tuple[str, ...]:
    """A note on a baseline that counts views as ops."""
    both = ((pair.base, pair.head) for pair in pairs)
    if base is None or not any(before and after and is_guessed(before, after) for before, after in both):
        return ()
    return (f"{base.title} counts views as ops: this run decides which ops are views. Save it again",)


def ran(test: TestResult) -> bool:
    """Whether a test passed and was measured, or should have been."""
    return test.outcome is Outcome.PASSED and test.measurement.status is not MeasurementStatus.NOT_RUN


def unjudged_rises(tests: Iterable[TestComparison]) -> Iterator[str]:
    """A note on values above the baseline's range by no more than its processes differ.

    They do not fail, because the next process may be as far off, but they are named.
    """
    told = [
        f"{test.node_id} ({name_of(rise)}: {values_of(rise)})"
        for test in tests
        if test.verdict not in _TOLD
        for rise in [change for change in test.changes if _is_unjudged_rise(change)][:1]
    ]
    if told:
        tests_told = listed(told, most=_MOST_TOLD, last=", and ")
        yield f"not gated, because the baseline varies between processes: {tests_told}"


def measured_elsewhere(tests: Iterable[TestComparison], base: Run | None, head: Run) -> Iterator[str]:
    """A note on how the environments of tests differ that pass because their values are equal."""
    found = Counter(
        words
        for test in tests
        if base is not None and test.base is not None and test.verdict is Verdict.PASS
        for words in Trust.between(
            test.base, test.head or test.base, environments=(base.environment, head.environment)
        ).passed_over
    )
    if found:
        parts = (f"{words} ({counted(many, 'test')})" for words, many in found.most_common(_MOST_TOLD))
        yield f"measured in another environment, with the same values: {', '.join(parts)}"


def _is_unjudged_rise(change: Change) -> bool:
    varies = change.base is not None and not change.base.is_constant
    is_gate = varies and change.verdict is None and change.rule and change.reason
    worse = change.rise if change.about.worse is Worse.HIGHER else -change.rise
    return bool(is_gate) and worse > 0 and change.about.family is not Family.TIME
