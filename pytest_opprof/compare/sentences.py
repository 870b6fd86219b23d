"""Why a test got its verdict, in a sentence; sentences that fail nothing; notes on a whole comparison."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from pytest_opprof.compare.comparison import Change, LimitResult, TestComparison, TestPair
from pytest_opprof.compare.judge import Judgement
from pytest_opprof.compare.phrases import difference, name_of, than_base, values_of
from pytest_opprof.compare.trust import Trust
from pytest_opprof.compare.verdicts import Verdict, worst
from pytest_opprof.compare.views import is_guessed
from pytest_opprof.metrics import PYTHON_INSTRUCTIONS, Family, Source, Worse, parse_path
from pytest_opprof.metrics.host import TOTAL_SELF_CPU_TIME, WALL_TIME
from pytest_opprof.results.merge import Collected
from pytest_opprof.results.run import MeasurementStatus, Outcome, Run, TestResult
from pytest_opprof.results.samples import range_text
from pytest_opprof.units import format_duration
from pytest_opprof.wording import counted, listed

_MOST_ADVISORIES = 20


def verdict_of(found: Judgement) -> Verdict | None:
    """The worst of a test's gates. It is IMPROVED only if nothing rose."""
    work = [change for change in found.changes if not (change.is_free or change.is_slight)]
    verdicts = {change.verdict for change in work}
    if Verdict.IMPROVED not in verdicts:
        verdicts |= {change.verdict for change in found.changes}
    elif any(change.rise > 0 for change in work if change.verdict):
        verdicts.add(Verdict.CHANGED)
    if found.judged:
        verdicts.add(Verdict.PASS)
    return worst(verdicts)


def sentence_of(
    found: Judgement, limits: tuple[LimitResult, ...], *, before: TestResult, base: Run, test: TestResult
) -> str:
    """Why a test got its verdict: broken limits, its gates, limits that cannot be judged."""
    of_limits = about_limits(limits)
    is_broken = any(limit.verdict is Verdict.REGRESSED for limit in limits)
    sentences = [of_limits if is_broken else ""]
    verdict = verdict_of(found)
    leading = next((change for change in found.changes if change.verdict is verdict), None)
    if verdict in {Verdict.REGRESSED, Verdict.IMPROVED} and leading is not None:
        beyond = f", {leading.reason}" if leading.reason else ""
        than = than_base(leading, base, before=before, test=test)
        sentences.append(f"{difference(leading)} in each step than {than}{beyond}")
    elif verdict is Verdict.ACCEPTED and leading is not None:
        sentences.append(f"{difference(leading)} in each step than {base.title}, {leading.reason}")
    elif verdict is Verdict.INCONCLUSIVE and leading is not None:
        sentences.append(f"{name_of(leading)}: {leading.reason}")
    elif verdict is Verdict.CHANGED:
        told = _moved(found, base) or _slight(found, base) or _of_views(found, base)
        sentences.append(told or _of_totals(found, base))
    elif verdict is None:
        reason = next(
            (f"{name_of(one)}: {one.reason}" for one in found.changes if one.reason and one.rule), ""
        )
        sentences.append(f"nothing was judged: {reason}" if reason else "no gate covers what it runs")
    sentences.append("" if is_broken else of_limits)
    return "; ".join(filter(None, sentences))


def _moved(found: Judgement, base: Run) -> str:
    """The work that moved to the background; empty if nothing rose there."""
    grown = next((change for change in found.changes if change.background and change.verdict), None)
    fallen = next((change for change in found.changes if change.rise < 0 and not change.background), None)
    if grown is None or fallen is None:
        return ""
    more = f"and more in the background ({grown.rise} of {grown.op})"
    return f"{difference(fallen)} in each step than {base.title}, {more}"


def _slight(found: Judgement, base: Run) -> str:
    """The slight changes, if a test has no others; empty if it has."""
    judged = [change for change in found.changes if change.verdict not in {None, Verdict.PASS}]
    if not all(change.is_slight for change in judged):
        return ""
    return f"{difference(judged[0])} in each step than {base.title}, {judged[0].reason}"


def _of_views(found: Judgement, base: Run) -> str:
    """The change of views, if nothing else that matters changed; empty otherwise."""
    told = [change for change in found.changes if change.verdict not in {None, Verdict.PASS}]
    judged = [change for change in told if not change.is_slight]
    if not all(change.is_free for change in judged):
        return ""
    total = next((change for change in judged if change.op is None), None)
    what = f"{difference(total)} in each step than" if total else "other views than"
    return f"{what} {base.title}: views launch and copy nothing"


def _of_totals(found: Judgement, base: Run) -> str:
    """The first total that rose without failing the test; if none did, that only ops changed."""
    risen = [
        change
        for change in found.changes
        if change.op is None and change.rise > 0 and not change.is_free
        if change.about.family is not Family.TIME
    ]
    if not risen:
        return f"other ops than {base.title}, but no gated total rose"
    first = min(risen, key=lambda change: change.is_slight)
    return f"{difference(first)} in each step than {base.title}, {first.reason or 'not gated'}"


def about_limits(limits: tuple[LimitResult, ...]) -> str:
    """The first broken limit, else the first that cannot be judged, and how many more there are."""
    for verdict in (Verdict.REGRESSED, Verdict.INCONCLUSIVE):
        found = [limit for limit in limits if limit.verdict is verdict]
        if found:
            first, more = found[0], len(found) - 1
            also = f" (and {counted(more, 'more limit')})" if more else ""
            return f"{_limit_words(first)}{also}"
    return ""


def _limit_words(limit: LimitResult) -> str:
    if limit.verdict is Verdict.INCONCLUSIVE or limit.value is None:
        return f"the limit on {limit.path} cannot be judged: {limit.reason}"
    unit = parse_path(limit.path, where="limits").metric.unit
    return (
        f"{limit.path} is {range_text(limit.value, unit=unit)} in each step, but the limit is {limit.limit}"
    )


def advisories_of(found: Judgement, *, before: TestResult, test: TestResult, trust: Trust) -> tuple[str, ...]:
    """Lines of a test that block nothing: rises that are not gated, and its times."""
    told = [
        f"{name_of(change)}: {change.reason}: not gated"
        for change in found.changes
        if change.verdict is None and change.reason
    ]
    for metric in (TOTAL_SELF_CPU_TIME, WALL_TIME):
        base, head = before.totals.get(metric.name), test.totals.get(metric.name)
        if base is not None and head is not None:
            # The fastest step: the others add what the machine did meanwhile.
            times = f"{metric.label} {format_duration(base.low)} -> {format_duration(head.low)}"
            objection = trust.objection(metric)
            why = f": {objection}" if objection else ""
            told.append(f"{times} (fastest of {counted(head.steps, 'step')}; not gated{why})")
    if refusal := test.unheard.get(Source.INSTRUCTIONS):
        told.append(f"{PYTHON_INSTRUCTIONS.label}: {refusal}: not gated")
    if before.carried_from is not None:
        origin = before.carried_from
        told.append(
            f"the baseline of this test is from {origin.commit or f'{origin.created:%Y-%m-%d %H:%M}'}"
        )
    cut = len(told) - _MOST_ADVISORIES
    return (f"{cut + 1} more are not gated", *told[cut + 1 :]) if cut > 0 else tuple(told)


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
