"""Whole runs compared: every test gets its verdict, in a sentence."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from pytest_opprof.compare.accepting import SPENT
from pytest_opprof.compare.comparison import Change, Comparison, LimitResult, TestComparison
from pytest_opprof.compare.gates import Gates, parse_gates
from pytest_opprof.compare.judge import Judgement, judge
from pytest_opprof.compare.limits import evaluate_limits
from pytest_opprof.compare.pairing import TestPair, pair_tests
from pytest_opprof.compare.phrases import difference, name_of, than_base, values_of
from pytest_opprof.compare.rename_suggestions import with_suggestions
from pytest_opprof.compare.trust import Trust
from pytest_opprof.compare.verdicts import Verdict, worst
from pytest_opprof.compare.views import is_guessed
from pytest_opprof.metrics import (
    PYTHON_INSTRUCTIONS,
    TOTAL_SELF_CPU_TIME,
    WALL_TIME,
    Family,
    Source,
    Worse,
    parse_path,
)
from pytest_opprof.results.gc_paused import gc_paused
from pytest_opprof.results.merge import Collected
from pytest_opprof.results.run import MeasurementStatus, Outcome, Run, TestResult
from pytest_opprof.results.samples import range_text
from pytest_opprof.units import format_duration
from pytest_opprof.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from pytest_opprof.baselines.accepted import Acceptance, Key

_MOST_ADVISORIES = 20
_MOST_TOLD = 3
# These are shown with all that is known of them.
_TOLD = (Verdict.REGRESSED, Verdict.MISSING, Verdict.INCONCLUSIVE, Verdict.ERROR)
_NO_STEP = "no active step finished"
_NOTHING_CERTAIN = "nothing was the same in every step, so nothing could be judged"


def _no_edits(_commit: str) -> Mapping[str, Container[int]]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The gates that are asked for outside a test: the marker's stand over the ini's, and under these.

    Attributes:
        ini: rules of the configuration file.
        command_line: rules of this session.
        accepted: rises that somebody let pass.
        edits: gives, of a commit, by file the lines that were edited since.
    """

    ini: Gates = field(default_factory=Gates)
    command_line: Gates = field(default_factory=Gates)
    accepted: Mapping[Key, Acceptance] = field(default_factory=dict)
    edits: Callable[[str], Mapping[str, Container[int]]] = field(default=_no_edits, compare=False)

    def gates_of(self, test: TestResult) -> Gates:
        """All rules that hold for one test."""
        marker = parse_gates(test.gates, where=f"gates of {test.node_id}")
        return self.ini.under(marker).under(self.command_line)


@gc_paused()
def compare_runs(
    base: Run | None,
    head: Run,
    *,
    created: datetime,
    opprof_version: str,
    policy: Policy | None = None,
    collected: Collected | None = None,
    judged: Mapping[str, TestComparison] = MappingProxyType({}),
    notes: tuple[str, ...] = (),
) -> Comparison:
    """Compare two runs test by test.

    Args:
        base: the baseline; None when there is none, and only limits are judged.
        head: this run.
        created: now.
        opprof_version: this release.
        policy: the rules set outside the tests.
        collected: what this session collected; without it no test is called MISSING.
        judged: what was said of tests of these very runs when they ended, by node id.
        notes: what to say about the whole.
    """
    policy, collected = policy or Policy(), collected or Collected()
    tests = []
    not_run = 0
    pairs = list(pair_tests(base, head))
    notes += _nothing_in_common(base, pairs)
    notes += _skipped(base, pairs, collected)
    notes += _views_guessed(base, pairs)
    for pair in pairs:
        if pair.head is not None:
            known = judged.get(pair.node_id)
            if known is None or known.head is not pair.head or known.base is not pair.base:
                known = compare_test(pair.head, pair.base, base=base, head=head, policy=policy)
            tests.append(known)
            not_run += not _ran(pair.head) and not pair.head.is_left_alone
        elif collected.lacks(pair.node_id):
            tests.append(_missing(pair, policy.accepted.get((pair.node_id, None, None))))
        else:
            not_run += 1
    tests = with_suggestions(tests)
    # A stable sort: tests of one verdict stay in the order in which they ran.
    tests.sort(key=lambda test: len(Verdict) if test.verdict is None else test.verdict.severity)
    return Comparison(
        created=created,
        opprof_version=opprof_version,
        base=None if base is None else replace(base, tests=(), notes=()),
        head=replace(head, tests=(), notes=()),
        notes=(*notes, *_unjudged_rises(tests), *_elsewhere(tests, base, head)),
        not_run=not_run,
        tests=tuple(tests),
    )


def compare_test(
    test: TestResult, before: TestResult | None, *, base: Run | None, head: Run, policy: Policy | None = None
) -> TestComparison:
    """Judge one test as soon as it has run.

    Args:
        test: what this run measured.
        before: the same test in the baseline; None when it is not there.
        base: the baseline, for its name and environment; None when there is none.
        head: this run, for its environment.
        policy: the rules set outside the tests.
    """
    bare = TestComparison(node_id=test.node_id, verdict=None, base=before, head=test)
    refused = _refused(test)
    if refused is not None:
        verdict, reason = refused
        if test.is_left_alone and before is not None and before.is_usable:
            verdict = Verdict.ERROR  # it was held to something
        return replace(bare, verdict=verdict, reason=reason)
    limits = evaluate_limits(test)
    bare = replace(bare, limits=limits)
    of_limits = worst(limit.verdict for limit in limits)
    if base is None:
        return replace(bare, verdict=of_limits, reason=_limits_sentence(limits))
    if before is None or before.outcome is not Outcome.PASSED or before.is_left_alone:
        verdict = worst((of_limits, Verdict.NEW))
        return replace(bare, verdict=verdict, reason=_limits_sentence(limits) or f"not in {base.title}")
    lacking = _lacking(before, test, base=base)
    if lacking:
        return replace(bare, verdict=Verdict.INCONCLUSIVE, reason=lacking)
    trust = Trust.between(before, test, environments=(base.environment, head.environment))
    policy = policy or Policy()
    gates = policy.gates_of(test)
    if not before.steps:
        return _beside_times(bare, before, base=base, is_gated=gates != Gates(), trust=trust)
    found = judge(before, test, gates=gates, trust=trust, accepted=policy.accepted)
    return replace(
        bare,
        verdict=worst((of_limits, _verdict(found))),
        reason=_sentence(found, limits, before=before, base=base, test=test),
        changes=_with_edits(found.changes, base, policy),
        advisories=_advisories(found, before=before, test=test, trust=trust),
    )


def _with_edits(changes: tuple[Change, ...], base: Run, policy: Policy) -> tuple[Change, ...]:
    """The changes, whose lines say whether they were edited since the base's commit."""
    if base.commit is None or all(change.line is None for change in changes):
        return changes
    edited = policy.edits(base.commit.id)
    return tuple(
        replace(change, line=replace(line, is_edited=True))
        if (line := change.line) is not None and line.number in edited.get(line.file, ())
        else change
        for change in changes
    )


def _lacking(before: TestResult, test: TestResult, *, base: Run) -> str:
    """Which side has no numbers for the other's; empty where both have."""
    if not before.is_usable or not (before.steps or before.timing.steps):
        return f"{base.title} has no numbers: {before.measurement.reason or _NO_STEP}"
    return _NO_STEP if before.steps and not test.steps else ""


def _beside_times(
    bare: TestComparison, before: TestResult, *, base: Run, is_gated: bool, trust: Trust
) -> TestComparison:
    """A test beside a baseline that has nothing but its times: nothing can be judged by them."""
    told = "so that no gate can be judged" if is_gated else "which inform and fail nothing"
    nothing = Judgement(changes=(), judged=0)
    of_limits = (limit.verdict for limit in bare.limits)
    sentences = (_limits_sentence(bare.limits), f"{base.title} has its times alone, {told}")
    return replace(
        bare,
        verdict=worst((*of_limits, Verdict.INCONCLUSIVE if is_gated else None)),
        reason="; ".join(filter(None, sentences)),
        advisories=_advisories(nothing, before=before, test=trust.head, trust=trust),
    )


def _nothing_in_common(base: Run | None, pairs: Sequence[TestPair]) -> tuple[str, ...]:
    """That all tests are new, where they are: green as that is, nothing was held to anything."""
    ran = [pair for pair in pairs if pair.head is not None and _ran(pair.head)]
    if base is None or not ran or any(pair.base is not None for pair in ran):
        return ()
    many = "is the 1 test" if len(base.tests) == 1 else f"are the {len(base.tests)} tests"
    return (f"nothing was compared: none of the tests that ran {many} of {base.title}",)


def _skipped(base: Run | None, pairs: Iterable[TestPair], collected: Collected) -> tuple[str, ...]:
    """A note on tests of the baseline that were skipped, alone or with their file: no gate held them."""
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
    told = ", ".join(names[:_MOST_TOLD])
    told += f", and {len(names) - _MOST_TOLD} more" if len(names) > _MOST_TOLD else ""
    return (f"skipped, so no gate held {counted(len(names), 'test')} to {base.title}: {told}",)


def _views_guessed(base: Run | None, pairs: Iterable[TestPair]) -> tuple[str, ...]:
    """A note on a baseline that counts views as ops."""
    both = ((pair.base, pair.head) for pair in pairs)
    if base is None or not any(before and after and is_guessed(before, after) for before, after in both):
        return ()
    return (f"{base.title} counts views as ops: which of them are views is taken from this run",)


def _ran(test: TestResult) -> bool:
    return test.outcome is Outcome.PASSED and test.measurement.status is not MeasurementStatus.NOT_RUN


def _missing(pair: TestPair, entry: Acceptance | None) -> TestComparison:
    reason = "its file was collected without it"
    if entry is not None and pair.base is not None:
        if not entry.is_spent(pair.base):
            told = f"missing, as was accepted ({entry.reason})"
            return TestComparison(node_id=pair.node_id, verdict=Verdict.ACCEPTED, reason=told, base=pair.base)
        reason += f", which is no longer accepted ({entry.reason}): {SPENT}"
    return TestComparison(node_id=pair.node_id, verdict=Verdict.MISSING, reason=reason, base=pair.base)


def _refused(test: TestResult) -> tuple[Verdict | None, str] | None:
    """The verdict on a test that cannot be judged; None for one that can."""
    reason = test.measurement.reason
    match test.measurement.status:
        case MeasurementStatus.ERROR:
            return Verdict.ERROR, reason
        case MeasurementStatus.INCONCLUSIVE:
            return Verdict.INCONCLUSIVE, reason
        case MeasurementStatus.NOT_RUN:
            return None, reason or f"the test was {test.outcome}"
        case MeasurementStatus.OK if test.outcome is not Outcome.PASSED:
            return None, f"the test ended as {test.outcome}"
        case MeasurementStatus.OK if not (test.steps or test.timing.steps):
            return Verdict.INCONCLUSIVE, _NO_STEP
        case MeasurementStatus.OK:
            return None


def _verdict(found: Judgement) -> Verdict | None:
    """The worst of a test's gates. It is IMPROVED only where nothing rose."""
    work = [change for change in found.changes if not (change.is_free or _is_slight(change))]
    verdicts = {change.verdict for change in work}
    if Verdict.IMPROVED not in verdicts:
        verdicts |= {change.verdict for change in found.changes}
    elif any(change.rise > 0 for change in work if change.verdict):
        verdicts.add(Verdict.CHANGED)
    if found.judged:
        verdicts.add(Verdict.PASS)
    return worst(verdicts)


def _sentence(
    found: Judgement, limits: tuple[LimitResult, ...], *, before: TestResult, base: Run, test: TestResult
) -> str:
    """Why a test got its verdict: the limits it broke, what its gates say, the limits nobody can judge."""
    about_limits = _limits_sentence(limits)
    is_broken = any(limit.verdict is Verdict.REGRESSED for limit in limits)
    sentences = [about_limits if is_broken else ""]
    verdict = _verdict(found)
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
        sentences.append(told or f"other ops than {base.title}, and no total rose")
    elif verdict is None:
        varies = any(change.reason and change.rule for change in found.changes)
        sentences.append(_NOTHING_CERTAIN if varies else "no gate holds what it runs")
    sentences.append("" if is_broken else about_limits)
    return "; ".join(filter(None, sentences))


def _moved(found: Judgement, base: Run) -> str:
    """What left the steps and is in the background now; empty where nothing rose there."""
    grown = next((change for change in found.changes if change.background and change.verdict), None)
    fallen = next((change for change in found.changes if change.rise < 0 and not change.background), None)
    if grown is None or fallen is None:
        return ""
    more = f"and more in the background ({grown.rise} of {grown.op})"
    return f"{difference(fallen)} in each step than {base.title}, {more}"


def _is_slight(change: Change) -> bool:
    """Whether it is a difference that an edit makes that does no more work."""
    return change.verdict is Verdict.CHANGED and change.about.slack is not None


def _slight(found: Judgement, base: Run) -> str:
    """What differs where nothing but that does; empty where something else does too."""
    judged = [change for change in found.changes if change.verdict not in {None, Verdict.PASS}]
    if not all(map(_is_slight, judged)):
        return ""
    return f"{difference(judged[0])} in each step than {base.title}, {judged[0].reason}"


def _of_views(found: Judgement, base: Run) -> str:
    """What differs where nothing but views does; empty where something else does too."""
    judged = [change for change in found.changes if change.verdict not in {None, Verdict.PASS}]
    if not all(change.is_free for change in judged):
        return ""
    total = next((change for change in judged if change.op is None), None)
    what = f"{difference(total)} in each step than" if total else "other views than"
    return f"{what} {base.title}: views launch and copy nothing"


def _limits_sentence(limits: tuple[LimitResult, ...]) -> str:
    """The first limit that is broken, else the first that cannot be judged, and how many more there are."""
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
    return f"{limit.path} is {range_text(limit.value, unit=unit)} in each step, and {limit.limit} is allowed"


def _unjudged_rises(tests: Iterable[TestComparison]) -> Iterator[str]:
    """A note on values over all that the baseline's processes had, by less than these differ.

    They fail nothing, as the next process may be as far off by itself; nor do they pass without a word.
    """
    told = [
        f"{test.node_id} ({name_of(rise)}: {values_of(rise)})"
        for test in tests
        if test.verdict not in _TOLD
        for rise in [change for change in test.changes if _is_unjudged_rise(change)][:1]
    ]
    if told:
        more = f", and {len(told) - _MOST_TOLD} more" if len(told) > _MOST_TOLD else ""
        yield f"not gated, as the baseline varies by the process: {', '.join(told[:_MOST_TOLD])}{more}"


def _elsewhere(tests: Iterable[TestComparison], base: Run | None, head: Run) -> Iterator[str]:
    """A note on what differs between the environments of tests that pass, as their values are equal."""
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
    is_gate = change.verdict is None and change.rule and change.reason
    worse = change.rise if change.about.worse is Worse.HIGHER else -change.rise
    return bool(is_gate) and worse > 0 and change.about.family is not Family.TIME


def _advisories(found: Judgement, *, before: TestResult, test: TestResult, trust: Trust) -> tuple[str, ...]:
    told = [
        f"{name_of(change)}: {change.reason}: not gated"
        for change in found.changes
        if change.verdict is None and change.reason
    ]
    for metric in (TOTAL_SELF_CPU_TIME, WALL_TIME):
        base, head = before.totals.get(metric.name), test.totals.get(metric.name)
        if base is not None and head is not None:
            # The fastest step: the others are that one and what the machine did meanwhile.
            times = f"{metric.label} {format_duration(base.low)} -> {format_duration(head.low)}"
            objection = trust.objection(metric)
            why = f": {objection}" if objection else ""
            told.append(f"{times} (fastest of {head.steps} steps; not gated{why})")
    if refusal := test.unheard.get(Source.INSTRUCTIONS):
        told.append(f"{PYTHON_INSTRUCTIONS.label}: {refusal}: not gated")
    if before.carried_from is not None:
        origin = before.carried_from
        told.append(
            f"the baseline of this test is from {origin.commit or f'{origin.created:%Y-%m-%d %H:%M}'}"
        )
    cut = len(told) - _MOST_ADVISORIES
    return (f"{cut + 1} more are not gated", *told[cut + 1 :]) if cut > 0 else tuple(told)
