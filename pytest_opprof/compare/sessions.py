"""Compare whole runs: every test gets a verdict and a sentence."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType

from pytest_opprof.baselines.accepted import Acceptance, Key
from pytest_opprof.baselines.edited_file import EditedFile
from pytest_opprof.compare import sentences
from pytest_opprof.compare.accepting import SPENT
from pytest_opprof.compare.call_sites import CallSites
from pytest_opprof.compare.comparison import (
    CallLine,
    Change,
    Comparison,
    TestComparison,
    TestPair,
    pair_tests,
)
from pytest_opprof.compare.edited_line import edit_behind
from pytest_opprof.compare.functions import with_grown_functions, with_lines_of_functions
from pytest_opprof.compare.gates import Gates, parse_gates
from pytest_opprof.compare.grown_line import GrownLines
from pytest_opprof.compare.judge import Judgement, judge
from pytest_opprof.compare.limits import evaluate_limits
from pytest_opprof.compare.renamed_tests import with_suggestions
from pytest_opprof.compare.trust import Trust
from pytest_opprof.compare.verdicts import Verdict, severity_of, worst
from pytest_opprof.metrics import COUNT
from pytest_opprof.results.members import gc_paused
from pytest_opprof.results.merge import Collected
from pytest_opprof.results.run import MeasurementStatus, Outcome, Run, TestResult
from pytest_opprof.statement import says_little, statement_at

_NO_STEP = "no active step finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Gates set outside a test: the marker overrules the ini file, the command line both."""

    ini: Gates = field(default_factory=Gates)
    command_line: Gates = field(default_factory=Gates)
    accepted: Mapping[Key, Acceptance] = field(default_factory=dict)  # rises that somebody let pass
    # Gives, of a commit, by file what was edited since.
    edits: Callable[[str], Mapping[str, EditedFile]] = field(default=lambda _: {}, compare=False)

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
    """Compare two runs test by test; without a base, only limits are judged.

    Without `collected`, no test is MISSING. `judged` has the comparisons that were made when tests of these
    same runs ended, by node id.
    """
    policy, collected = policy or Policy(), collected or Collected()
    tests = []
    not_run = 0
    pairs = list(pair_tests(base, head))
    notes += sentences.nothing_in_common(base, pairs)
    notes += sentences.skipped(base, pairs, collected)
    notes += sentences.views_guessed(base, pairs)
    for pair in pairs:
        if pair.head is not None:
            known = judged.get(pair.node_id)
            if known is None or known.head is not pair.head or known.base is not pair.base:
                known = compare_test(pair.head, pair.base, base=base, head=head, policy=policy)
            tests.append(known)
            not_run += not sentences.ran(pair.head) and not pair.head.is_left_alone
        elif collected.lacks(pair.node_id):
            tests.append(_missing(pair, policy.accepted.get((pair.node_id, None, None))))
        else:
            not_run += 1
    tests = with_suggestions(tests)
    # A stable sort: tests of one verdict stay in the order in which they ran.
    tests.sort(key=lambda test: severity_of(test.verdict))
    return Comparison(
        created=created,
        opprof_version=opprof_version,
        base=None if base is None else replace(base, tests=(), notes=()),
        head=replace(head, tests=(), notes=()),
        notes=(*notes, *sentences.unjudged_rises(tests), *sentences.measured_elsewhere(tests, base, head)),
        not_run=not_run,
        tests=tuple(tests),
    )


def compare_test(
    test: TestResult, before: TestResult | None, *, base: Run | None, head: Run, policy: Policy | None = None
) -> TestComparison:
    """Judge one test as soon as it has run, beside the same test of the baseline, if it has it."""
    bare = TestComparison(node_id=test.node_id, verdict=None, base=before, head=test)
    refused = _refused(test)
    if refused is not None:
        verdict, reason = refused
        if test.is_left_alone and before is not None and before.is_usable:
            verdict = Verdict.ERROR  # it was judged
        return replace(bare, verdict=verdict, reason=reason)
    limits = evaluate_limits(test)
    bare = replace(bare, limits=limits)
    of_limits = worst(limit.verdict for limit in limits)
    if base is None:
        return replace(bare, verdict=of_limits, reason=sentences.about_limits(limits))
    if before is None or before.outcome is not Outcome.PASSED or before.is_left_alone:
        verdict = worst((of_limits, Verdict.NEW))
        return replace(bare, verdict=verdict, reason=sentences.about_limits(limits) or f"not in {base.title}")
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
        verdict=worst((of_limits, sentences.verdict_of(found))),
        reason=sentences.sentence_of(found, limits, before=before, base=base, test=test),
        changes=_as_shown(_with_edits(found.changes, before, test, base=base, policy=policy), test),
        advisories=sentences.advisories_of(found, before=before, test=test, trust=trust),
    )


def _with_edits(
    changes: tuple[Change, ...], before: TestResult, test: TestResult, *, base: Run, policy: Policy
) -> tuple[Change, ...]:
    """The changes, with lines marked that were edited since the base's commit.

    Of ops that a regression begins with, those of edited lines come first: if such a line calls a function
    once more, that runs all of its ops more often. A base with uncommitted changes may have these edits.
    """
    risen = [change for change in changes if change.verdict is Verdict.REGRESSED and change.rise > 0]
    if base.commit is None or not (risen or any(change.line for change in changes)):
        return changes
    edited = {} if base.commit.dirty else policy.edits(base.commit.id)
    regressed = {change.metric for change in changes if change.verdict is Verdict.REGRESSED}
    sites, grown = CallSites(before, test), GrownLines(before, test, edited)
    has_a_line = any(change.line for change in (*risen, *(one for one in changes if one.begins)))
    if risen and not has_a_line and (line := grown.edit_that_ran()):
        return tuple(_with_suspect(change, line) if change in risen else change for change in changes)
    told = [_with_edit(change, sites, grown, edited, regressed=regressed) for change in changes]
    told.sort(key=lambda change: change.op is not None and not _begins_in_an_edit(change))
    return tuple(_marked(change, sites, edited) for change in told)


def _as_shown(changes: tuple[Change, ...], test: TestResult) -> tuple[Change, ...]:
    """The changes, with lines that were only compared by their own text as a reader understands them."""

    def shown(change: Change) -> Change:
        line = change.line
        if line is None or not says_little(line.text):
            return change
        return replace(change, line=replace(line, text=statement_at(line.place, test.lines) or line.text))

    return tuple(map(shown, with_lines_of_functions(changes)))


def _marked(change: Change, sites: CallSites, edited: Mapping[str, EditedFile]) -> Change:
    """A line is shown as changed only if it was: not the body of a loop whose head was edited."""
    line = change.line
    if line is None or not line.is_edited:
        return change
    file = edited[line.file]
    heads = (file.decoration(line.function), file.cutting(line.function))
    is_edited = sites.is_edited(line, file.changed) or line.number in heads
    return replace(change, line=replace(line, is_edited=is_edited))


def _with_suspect(change: Change, line: CallLine) -> Change:
    place = f"in {line.place}" if line.is_certain else f"perhaps in {line.place}"
    return replace(change, line=line, cause=f"{change.cause}; {place}" if change.cause else place)


def _begins_in_an_edit(change: Change) -> bool:
    is_cause = change.begins or change.verdict is Verdict.REGRESSED
    return is_cause and change.line is not None and change.line.is_edited


def _with_edit(
    change: Change,
    sites: CallSites,
    grown: GrownLines,
    edited: Mapping[str, EditedFile],
    *,
    regressed: Collection[str],
) -> Change:
    line = change.line
    if line is None:
        return change
    if change.op is None and change.about.slack:  # a function, and no line of it
        return with_grown_functions(change, *sites.sides, grown=grown, regressed=regressed, edited=edited)
    calls_more = change.metric != COUNT.name or sites.calls_more(line)
    found = edit_behind(line, sites, edited, caller_of=grown.caller_of, calls_more=calls_more)
    return replace(change, line=found, cause=change.cause.replace(line.place, found.place))


def _lacking(before: TestResult, test: TestResult, *, base: Run) -> str:
    """Which side lacks the other's numbers; empty if neither does."""
    if not before.is_usable or not (before.steps or before.timing.steps):
        return f"{base.title} has no numbers: {before.measurement.reason or _NO_STEP}"
    return _NO_STEP if before.steps and not test.steps else ""


def _beside_times(
    bare: TestComparison, before: TestResult, *, base: Run, is_gated: bool, trust: Trust
) -> TestComparison:
    """A test beside a baseline that has only its times, which cannot be judged."""
    told = "so no gate can be judged" if is_gated else "which are shown but not gated"
    nothing = Judgement(changes=(), judged=0)
    of_limits = (limit.verdict for limit in bare.limits)
    reasons = (sentences.about_limits(bare.limits), f"{base.title} has only its times, {told}")
    return replace(
        bare,
        verdict=worst((*of_limits, Verdict.INCONCLUSIVE if is_gated else None)),
        reason="; ".join(filter(None, reasons)),
        advisories=sentences.advisories_of(nothing, before=before, test=trust.head, trust=trust),
    )


def _missing(pair: TestPair, entry: Acceptance | None) -> TestComparison:
    reason = "its file was collected without it"
    if entry is not None and pair.base is not None:
        if not entry.is_spent(pair.base):
            told = f"missing, and accepted ({entry.reason})"
            return TestComparison(node_id=pair.node_id, verdict=Verdict.ACCEPTED, reason=told, base=pair.base)
        reason += f", which is no longer accepted ({entry.reason}): {SPENT}"
    return TestComparison(node_id=pair.node_id, verdict=Verdict.MISSING, reason=reason, base=pair.base)


def _refused(test: TestResult) -> tuple[Verdict | None, str] | None:
    """The verdict on a test that cannot be judged; None for one that can."""
    status, reason = test.measurement.status, test.measurement.reason
    if status in {MeasurementStatus.ERROR, MeasurementStatus.INCONCLUSIVE}:
        return Verdict(status.value), reason
    if status is MeasurementStatus.NOT_RUN:
        return None, reason or f"the test was {test.outcome}"
    if test.outcome is not Outcome.PASSED:
        return None, f"the test ended as {test.outcome}"
    return None if test.steps or test.timing.steps else (Verdict.INCONCLUSIVE, _NO_STEP)
