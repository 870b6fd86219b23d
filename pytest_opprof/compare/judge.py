"""The exact gate: what changed between two sides of one test, and what that means.

A test is REGRESSED if one of its totals rises, or both a watched op and its family. A rise of only another op
is CHANGED: one `addcmul` in place of ten `mul` is not a regression. If a value varies between steps, it is
not judged exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from pytest_opprof.baselines.accepted import Acceptance, Key
from pytest_opprof.compare import work
from pytest_opprof.compare.accepting import why_ended
from pytest_opprof.compare.cause import Causes
from pytest_opprof.compare.comparison import Change, RowPair, pair_rows
from pytest_opprof.compare.functions import with_grown_functions, with_reasons
from pytest_opprof.compare.gates import Gates, Rule, RuleKind, disagrees, varies
from pytest_opprof.compare.in_place import InPlaceOps
from pytest_opprof.compare.ranking import ranked
from pytest_opprof.compare.rewrites.fold import folded
from pytest_opprof.compare.sums import total_of
from pytest_opprof.compare.trust import Trust
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.compare.views import is_by_views, is_guessed, with_views_as_in
from pytest_opprof.kinds import OpKind
from pytest_opprof.metrics import COUNT, OP_METRICS, TOTALS, Family, Metric, Source
from pytest_opprof.metrics.host import OPS_COUNT, RANGES_COUNT
from pytest_opprof.results.names import STEP_NAME
from pytest_opprof.results.run import CERTIFICATE, TestResult
from pytest_opprof.results.samples import Samples, range_text

# An earlier test may have patched a library or filled a cache.
_UNCONFIRMED = "one process measured the baseline, and other tests may change what this one runs"
_TIMES_ARE_NOT_JUDGED = "a stored time is from another day"
_OF_A_RISE = {Verdict.REGRESSED, Verdict.ACCEPTED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What the gates of one test say."""

    changes: tuple[Change, ...]  # the totals first, then ops, the worst first in both
    judged: int  # how many gates could be judged, including unchanged ones


def judge(
    base: TestResult,
    head: TestResult,
    *,
    gates: Gates,
    trust: Trust,
    accepted: Mapping[Key, Acceptance] = MappingProxyType({}),
) -> Judgement:
    """Compare two usable measurements of one test, metric by metric."""
    views_are_guessed = is_guessed(base, head)
    base = with_views_as_in(base, head)
    comparer = _Comparer(
        base=base,
        head=head,
        gates=gates,
        trust=trust,
        accepted=accepted,
        causes=Causes(base, head),
        in_place=InPlaceOps(base, head),
        views_are_guessed=views_are_guessed,
    )
    totals = work.traded(list(comparer.totals()), base, head, gates=gates)
    ops = list(comparer.ops())
    judged = _judged_gates((*totals, *ops), base, head)
    if not any(map(_is_told, (*totals, *ops))):
        return Judgement(changes=(), judged=judged)  # nearly all tests
    risen = {change.metric: change for change in totals if change.verdict in _OF_A_RISE}
    ops = work.without_consequences(ops, base, head, risen=risen)
    if OPS_COUNT.name not in risen:
        ops = work.within_families(ops, base, head, gates=gates)
    ops = folded([_as_part_of_total(change, risen) for change in ops], base, head)
    found = ranked(work.with_moved_work((*totals, *ops)), comparer.causes)
    return Judgement(changes=tuple(filter(_is_told, found)), judged=judged)


def _is_told(change: Change) -> bool:
    return change.verdict is not Verdict.PASS or change.rise != 0


def _judged_gates(changes: Iterable[Change], base: TestResult, head: TestResult) -> int:
    """How many gates were judged. A 0 that stays 0 counts only if at most views ran."""
    judged = [
        change for change in changes if change.rule and change.verdict not in {None, Verdict.INCONCLUSIVE}
    ]
    rows = (row for test in (base, head) for row in test.ops if row.name != STEP_NAME)
    if not any(row.kind is not OpKind.CALL and row.not_views.high for row in rows):
        return len(judged)
    return sum(any(side and side.high for side in (change.base, change.head)) for change in judged)


@dataclass(frozen=True, kw_only=True)
class _Comparer:
    """Both sides of one test, and the rules; it makes a `Change` for each metric."""

    base: TestResult
    head: TestResult
    gates: Gates
    trust: Trust
    accepted: Mapping[Key, Acceptance]
    causes: Causes
    in_place: InPlaceOps
    views_are_guessed: bool
    objections: dict[tuple[str, OpKind | None, bool, bool, bool], str] = field(default_factory=dict)

    def totals(self) -> Iterator[Change]:
        regressed = set[str]()
        for metric in TOTALS.values():
            rule = self.gates.rule(None, metric)
            base, head = self.base.totals.get(metric.name), self.head.totals.get(metric.name)
            is_asked_for = rule is not None and rule.is_asked_for
            is_refused = metric.source in self.head.unheard
            if metric.slack and head is None and not (is_asked_for or is_refused):
                continue  # not asked for, or not yet measured
            # A total that only the base lacks is not a gate yet; one that the head lacks did not run.
            unjudged = (head is not None and self.trust.left_out(metric)) or self._unheard(metric)
            is_no_gate = base is None and not (is_asked_for and unjudged)
            if is_no_gate or (metric.family is Family.TIME and not is_asked_for):
                continue
            change = self._judged(
                Change(
                    op=None,
                    metric=metric.name,
                    base=base,
                    head=head,
                    rule=str(rule or ""),
                    verdict=None,
                    is_free=metric.is_free and rule is None,
                ),
                rule,
            )
            if change is None:
                continue
            if metric.slack:
                change = with_grown_functions(change, self.base, self.head, regressed=regressed)
                change = change if is_asked_for else work.unless_moved(change, self.base, self.head)
            if not is_asked_for:
                change = work.unless_of_elements(change, self.base, self.head)
            if metric.source is Source.COMPILE:
                change = with_reasons(change, self.base, self.head)
            if metric is RANGES_COUNT and change.verdict is Verdict.REGRESSED:
                change = self._unless_only_new_ranges(change, rule)
            if change.verdict is Verdict.REGRESSED:
                regressed.add(metric.name)
            yield change

    def _unheard(self, metric: Metric) -> str:
        """Why a requested gate on devices did not run: it is never green. Empty if it did."""
        if not metric.is_of_devices or metric.source is None or metric.answers(self.head.sources):
            return ""
        needed = metric.source if Source.CUDA in self.head.sources else Source.CUDA
        reason = self.head.unheard.get(needed, "")
        return f"needs {needed} capture, which did not run{f': {reason}' if reason else ''}"

    def _metrics(self) -> list[Metric]:
        """The metrics of ops that may be judged: exact ones that were measured, and requested ones."""
        asked_for = {path.metric.name for path, _ in self.gates.rules}
        return [
            metric
            for metric in OP_METRICS.values()
            if metric.name in asked_for
            or (metric.family is not Family.TIME and metric.answers(self.base.sources))
        ]

    def ops(self) -> Iterator[Change]:
        metrics = self._metrics()
        for pair in pair_rows(self.base, self.head):
            for metric in metrics:
                rule = self.gates.rule(pair.name, metric)
                is_asked_for = rule is not None and rule.is_asked_for
                if not is_asked_for and (
                    metric.family is Family.TIME
                    or not metric.answers(self.base.sources)
                    # Neither side has it: true of most metrics of most ops.
                    or not any(side and metric.name in side.metrics for side in (pair.base, pair.head))
                ):
                    continue
                if (pair.kind is OpKind.CALL and not is_asked_for) or self._is_cut_off(pair):
                    continue
                row = self._change_of(pair, metric, rule)
                if metric is COUNT and not is_asked_for and is_by_views(row, pair):
                    rule, row = None, replace(row, rule="", is_free=True)
                elif rule is None and metric is COUNT and self._was_in_place(pair):
                    rule = Rule(kind=RuleKind.EXACT)
                    row = replace(row, rule=str(rule))
                change = self._judged(row, rule)
                if change is not None:
                    yield self.causes.explained(change, pair) if change.rise > 0 else change

    def _was_in_place(self, pair: RowPair) -> bool:
        """Whether an op allocates where its in-place form ran before."""
        is_op = pair.kind is OpKind.OP and not pair.background and not self.views_are_guessed
        return is_op and self.in_place.became(pair.name)

    def _change_of(self, pair: RowPair, metric: Metric, rule: Rule | None) -> Change:
        return Change(
            op=pair.name,
            kind=pair.kind,
            background=pair.background,
            metric=metric.name,
            base=pair.base.samples(metric.name) if pair.base else None,
            head=pair.head.samples(metric.name) if pair.head else None,
            rule=str(rule or ""),
            verdict=None,
        )

    def _is_cut_off(self, pair: RowPair) -> bool:
        """Whether a side may have had the row but did not keep it."""
        omitted = self.base.ops_omitted if pair.base is None else self.head.ops_omitted
        return (pair.base is None or pair.head is None) and omitted > 0

    def _judged(self, change: Change, rule: Rule | None) -> Change | None:
        """The change with its verdict; None if it need not be shown."""
        if rule is not None and rule.kind is RuleKind.OFF:
            return None
        if change.about.family is Family.TIME:
            return replace(change, reason=_TIMES_ARE_NOT_JUDGED)
        base = change.base or Samples.constant(0, steps=self.base.steps)
        head = change.head or Samples.constant(0, steps=self.head.steps)
        same = (base.low, base.high) == (head.low, head.high)
        if change.background:
            return change if change.rise and not self.trust.has_only_counts else None
        if rule is not None and rule.kind is RuleKind.ADVISORY:
            return None if same else change
        # An unchanged total still says why it is not judged; single rows do not repeat that.
        if same and (change.op is not None or change.is_free) and not (rule and rule.is_asked_for):
            return replace(change, verdict=Verdict.PASS) if rule and base.is_constant else None
        unsteady = self._unsteady(change.about)
        return (
            replace(change, reason=unsteady)
            if unsteady
            else self._weighed(change, rule, base=base, head=head)
        )

    def _weighed(self, change: Change, rule: Rule | None, *, base: Samples, head: Samples) -> Change:
        """The verdict on two values: whether they can be compared, then which is worse."""
        is_slack = change.about.is_moved_by_edits
        is_soft = change.is_free or (is_slack and not (rule and rule.is_asked_for))
        unsure = None if is_soft else Verdict.INCONCLUSIVE
        if is_soft and is_slack and base.low == head.low and base.is_constant and head.is_constant:
            return replace(change, verdict=Verdict.PASS)
        is_unconfirmed = is_soft and is_slack and self.base.processes < CERTIFICATE
        if objection := self._objection(change, base, head) or _UNCONFIRMED * is_unconfirmed:
            return replace(change, verdict=unsure, reason=objection)
        if varies(self.base, change.path, base, rule):
            return self._beside_range(change, rule, base=base, head=head)
        if varies(self.head, change.path, head, rule):
            return replace(
                change, verdict=unsure if rule else None, reason=self._instability(change, base.high, head)
            )
        return self._within_tolerance(change, rule, base=base, head=head)

    def _within_tolerance(self, change: Change, rule: Rule | None, *, base: Samples, head: Samples) -> Change:
        """The verdict on the nearest values of two ranges; uncertain if only the worst break the rule."""
        rise, is_above = change.about.rise, head.low > base.high
        # The nearest are the same if the ranges overlap.
        before, now = (base.high, head.low) if is_above else (base.low, min(base.low, head.high))
        worst = max if rise(0, 1) > 0 else min
        farthest = rise(worst(base.low, base.high), worst(head.low, head.high))
        if rule and rule.allows(rise(before, now), base=before) and not rule.allows(farthest, base=base.high):
            reason = self._instability(change, base.high, head)
            return replace(change, verdict=Verdict.INCONCLUSIVE, reason=reason)
        if before == now:
            return replace(change, verdict=Verdict.PASS)
        return self._ruled(change, rule, base=before, head=now)

    def _beside_range(self, change: Change, rule: Rule | None, *, base: Samples, head: Samples) -> Change:
        """The verdict beside a base that varies: a rise is worse in each step than all its values.

        If its processes disagreed, or there was only one, another process may be as far from these as they
        are from each other.
        """
        reach, is_sure = base.high - base.low, self.base.processes >= CERTIFICATE
        if is_sure and not disagrees(self.base, change.path):
            highest: int | None = base.high
        else:
            highest = base.high + reach if reach else None
        if highest is not None and head.low > highest and not change.about.is_moved_by_edits:
            return self._ruled(change, rule, base=base.high, head=head.low)
        seen, now = (range_text(side, unit=change.about.unit) for side in (base, head))
        return replace(change, reason=f"the baseline varies: {seen}; now {now}")

    def _unsteady(self, metric: Metric) -> str:
        """Why a metric is not gated: one that it depends on varies. Empty if all are steady."""
        for side, whose in ((self.base, "the baseline's"), (self.head, "this run's")):
            for other in (TOTALS[name] for name in metric.steady_with):
                samples = side.totals.get(other.name)
                if samples is None:
                    return f"{whose} {other.label} were not counted"
                if not samples.is_constant or other.name in side.unstable:
                    return f"{whose} {other.label} vary: {range_text(samples, unit=other.unit)}"
        return ""

    def _ruled(self, change: Change, rule: Rule | None, *, base: int, head: int) -> Change:
        """The verdict on two different values."""
        rise = change.about.rise(base, head)
        if change.about.slack and rule and not rule.is_asked_for and rule.allows(abs(rise), base=base):
            verdict = Verdict.CHANGED if change.about.is_moved_by_edits else Verdict.PASS
            return replace(change, verdict=verdict, reason=f"within the tolerance of {rule}")
        if rise < 0 or rule is None:
            is_better = rise < 0 and not change.is_free and not self._may_be_views(change)
            return replace(change, verdict=Verdict.IMPROVED if is_better else Verdict.CHANGED)
        if rule.allows(rise, base=base):
            return replace(change, verdict=Verdict.PASS, reason=f"within the tolerance of {rule}")
        return self._risen(change, rule, base=base, head=head)

    def _may_be_views(self, change: Change) -> bool:
        """Whether the fall may be views that the base counts as ops: a missing op does not say."""
        is_op = change.kind is OpKind.OP and change.metric == COUNT.name and change.head is None
        return self.views_are_guessed and (change.metric == OPS_COUNT.name or (is_op and not change.rule))

    def _risen(self, change: Change, rule: Rule, *, base: int, head: int) -> Change:
        """The verdict on a gate that rose: whether it was accepted, and whether that still holds."""
        entry = self.accepted.get((self.head.node_id, change.op, change.metric))
        if entry is None:
            return replace(change, verdict=Verdict.REGRESSED)
        words = f"up to {entry.value_text} ({entry.reason})"
        if ended := why_ended(entry, self.base, base=base, rule=rule):
            return replace(change, verdict=Verdict.REGRESSED, reason=f"no longer accepted {words}: {ended}")
        if entry.value is not None and rule.allows(change.about.rise(entry.value, head), base=entry.value):
            return replace(change, verdict=Verdict.ACCEPTED, reason=f"accepted {words}")
        return replace(change, verdict=Verdict.REGRESSED, reason=f"accepted only {words}")

    def _objection(self, change: Change, base: Samples, head: Samples) -> str:
        if unheard := self._unheard(change.about):
            return unheard
        # Only this run lacks the total: its value is unknown now.
        is_lost = change.op is None and change.head is None
        is_nothing = base.high == head.high == 0 and not is_lost
        # The answer is the same for all ops of a kind, perhaps thousands.
        is_same = (base.low, base.high) == (head.low, head.high)
        is_one_sided = change.kind is OpKind.CALL and (change.base is None or change.head is None)
        asked = change.metric, change.kind, is_nothing, is_same, is_one_sided
        if asked not in self.objections:
            self.objections[asked] = self.trust.objection(
                change.about,
                kind=change.kind,
                is_nothing=is_nothing,
                is_same=is_same,
                is_one_sided=is_one_sided,
            )
        objection = self.objections[asked]
        return objection or ("it was not measured in this run" if is_lost else "")

    def _instability(self, change: Change, before: int, head: Samples) -> str:
        """Both values of a metric that can no longer be a gate."""
        what = "became nondeterministic"
        if self.base.processes < CERTIFICATE:
            what = "varies (and the base is not certified)"
        where = (
            "from one measurement to the next" if disagrees(self.head, change.path) else "from step to step"
        )
        more = " (more in every step)" if head.low > before else ""
        return f"{what}: {before} before, {head.low} to {head.high} {where}{more}"

    def _unless_only_new_ranges(self, change: Change, rule: Rule | None) -> Change:
        """Naming a stretch of code is not more work; a range that runs more often is."""
        more_often = any(
            pair.base and pair.head and pair.head.count.low > pair.base.count.high
            for pair in pair_rows(self.base, self.head)
            if pair.kind is OpKind.RANGE and not pair.background
        )
        if more_often or (rule is not None and rule.is_asked_for):
            return change
        return replace(change, verdict=Verdict.CHANGED, reason="only new ranges")


def _as_part_of_total(change: Change, risen: Mapping[str, Change]) -> Change:
    """An op that rose is part of its total's regression or acceptance, and its cause."""
    total = total_of(change.metric, change.kind)
    is_part = change.verdict is Verdict.CHANGED and not change.rule and not change.is_free
    if is_part and total and total.name in risen:
        return replace(change, verdict=risen[total.name].verdict)
    return change
