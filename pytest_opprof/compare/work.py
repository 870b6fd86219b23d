"""Changes that others explain: work of ops, Python instructions, families of ops, and the background.

New ops bring their bytes along, and fewer ops may have larger inputs: a loop that became one padded op. So
rows show work only if it rose while the ops did not, and a rise is not a regression if the ops fell by at
least the same share. Instructions may move between the project and its libraries. Only two elementwise ops
have FLOPs, as in torch.profiler; bytes cover all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from pytest_opprof.compare.cause import ENGINE, Causes
from pytest_opprof.compare.comparison import Change
from pytest_opprof.compare.gates import Gates
from pytest_opprof.compare.sums import total_of
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.kinds import OpKind
from pytest_opprof.metrics import COUNT, OP_FAMILIES, OpFamily, host
from pytest_opprof.metrics.fingerprint import LIBRARIES
from pytest_opprof.results.run import TestResult

_TOTALS = frozenset({host.OPS_BYTES.name, host.AUTOGRAD_NODES.name, host.FLOPS_TOTAL.name})
_OF_OPS = frozenset({host.BYTES.name, host.NODES.name, host.FLOPS.name})
_JUDGED = frozenset({Verdict.REGRESSED, Verdict.IMPROVED})
_OF_ELEMENTS = frozenset({"aten::add", "aten::mul"})
_INSTRUCTIONS = {
    host.PYTHON_INSTRUCTIONS.name: host.LIBRARY_INSTRUCTIONS,
    host.LIBRARY_INSTRUCTIONS.name: host.PYTHON_INSTRUCTIONS,
}


def traded(totals: Sequence[Change], base: TestResult, head: TestResult, *, gates: Gates) -> list[Change]:
    """The totals; work that rose is CHANGED if the ops fell by at least as much.

    Work that fell with the ops is left out: the fall of the ops explains it. A rule of the user's stands.
    """
    totals = [
        change for change in totals if _is_asked_for(change, gates) or not _is_of_views(change, base, head)
    ]
    before, now = (_constant(test, host.OPS_COUNT.name) for test in (base, head))
    if before is None or now is None or before == now:
        return totals
    found = []
    for change in totals:
        if change.metric in _TOTALS and not _is_asked_for(change, gates):
            if change.verdict is Verdict.IMPROVED:
                continue
            if change.verdict is Verdict.REGRESSED and _is_traded(change, before, now):
                reason = f"fewer ops: {before} before, {now} now"
                found.append(replace(change, verdict=Verdict.CHANGED, reason=reason))
                continue
        found.append(change)
    return found


def unless_moved(change: Change, base: TestResult, head: TestResult) -> Change:
    """Instructions that moved from the project into libraries, or the other way round, are CHANGED."""
    other = _INSTRUCTIONS.get(change.metric)
    if other is None:
        return change
    before, now = (_constant(test, other.name) for test in (base, head))
    if change.verdict not in {Verdict.REGRESSED, Verdict.IMPROVED} or before is None or now is None:
        return change
    is_same_library = base.settings.get(LIBRARIES) == head.settings.get(LIBRARIES)
    left = change.rise + now - before  # of both together
    least = other.slack.least if other.slack else 0
    is_moved = left <= least if change.verdict is Verdict.REGRESSED else left >= -least
    if not (is_same_library and is_moved):
        return change
    return replace(change, verdict=Verdict.CHANGED, reason=f"{other.label}: {before} before, {now} now")


def unless_of_elements(change: Change, base: TestResult, head: TestResult) -> Change:
    """FLOPs that only `add` and `mul` have more or fewer of are CHANGED: a `div` has none."""
    tells_bytes = all(host.OPS_BYTES.name in test.totals for test in (base, head))
    if change.metric != host.FLOPS_TOTAL.name or change.verdict not in _JUDGED or not tells_bytes:
        return change
    before, now = (
        sum(
            row.samples(host.FLOPS.name).low
            for row in test.ops
            if row.name in _OF_ELEMENTS and not row.background
        )
        for test in (base, head)
    )
    left = change.rise - (now - before)
    if change.verdict is Verdict.REGRESSED:
        is_of_elements = left <= 0
    else:  # left out with fewer ops: see `traded`
        is_of_elements = left >= 0 and _constant(base, host.OPS_COUNT.name) == _constant(
            head, host.OPS_COUNT.name
        )
    if not is_of_elements:
        return change
    return replace(change, verdict=Verdict.CHANGED, reason="only of add and mul, which bytes judge")


def without_consequences(
    changes: Iterable[Change], base: TestResult, head: TestResult, *, risen: Collection[str]
) -> list[Change]:
    """Changes of ops; of their work if its total rose, no more ops run, and the op runs as often."""
    told = frozenset[str]() if host.OPS_COUNT.name in risen else _TOTALS.intersection(risen)
    counts, counts_now = ({row.key: row.count for row in test.ops} for test in (base, head))
    found = []
    for change in changes:
        if change.metric in _OF_OPS and not change.rule:  # only users have rules for these
            total = total_of(change.metric, change.kind)
            key = (change.op or "", change.kind or OpKind.OP, change.background)
            is_same = counts.get(key) == counts_now.get(key)
            if total is None or total.name not in told or change.kind is not OpKind.OP or not is_same:
                continue
        found.append(change)
    return found


def without_surroundings(changes: Sequence[Change], causes: Causes) -> list[Change]:
    """Changes of ops; what an op keeps is also in all that is around it, and begins inside.

    Around it are ranges and autograd's engine, which keep nothing themselves, and ops that run as often as
    before around one that runs more often, such as an `autograd.Function` around a new `clone`.
    """
    kept = [change for change in changes if change.metric == host.RETAINED.name and change.rise > 0]
    more_often = {change.op for change in changes if change.metric == COUNT.name and change.rise > 0}
    around = {change.op: causes.above(change.op or "") or frozenset() for change in kept}
    surroundings = frozenset[str]().union(*around.values())
    old = frozenset[str]().union(*(names for op, names in around.items() if op in more_often))

    def surrounds(change: Change) -> bool:
        op = change.op or ""
        is_name = change.kind is OpKind.RANGE or op.startswith(ENGINE)
        return op in surroundings if is_name else op in old and op not in more_often

    left_out = {change.op for change in kept if surrounds(change)}
    return [c for c in changes if c.metric != host.RETAINED.name or c.rise <= 0 or c.op not in left_out]


def _is_asked_for(change: Change, gates: Gates) -> bool:
    rule = gates.rule(change.op, change.about)
    return rule is not None and rule.is_asked_for


def _is_traded(change: Change, before: int, now: int) -> bool:
    if change.base is None or change.head is None or now > before:
        return False
    return change.head.low * now <= change.base.high * before


def _is_of_views(change: Change, base: TestResult, head: TestResult) -> bool:
    """Whether each new node may be a view's: its backward is a view, and views are counted."""
    if change.metric != host.AUTOGRAD_NODES.name or change.verdict is not Verdict.REGRESSED:
        return False
    if not base.tells_views:
        return True
    before, now = (_constant(test, host.VIEWS_COUNT.name) for test in (base, head))
    return before is not None and now is not None and change.rise <= now - before


def _constant(test: TestResult, total: str) -> int | None:
    """The total of each step; None if that varies or is unknown."""
    samples = test.totals.get(total)
    return samples.low if samples is not None and samples.is_constant else None


def within_families(
    changes: Iterable[Change], base: TestResult, head: TestResult, *, gates: Gates
) -> list[Change]:
    """Changes of ops where not more ops run: a watched op that rose while its family did not is CHANGED."""
    families = {op: family for family in OP_FAMILIES for op in family.ops}
    steady = {family.name: _steady(family, base, head) for family in OP_FAMILIES}
    found = []
    for change in changes:
        family = families.get(change.op or "") if change.metric == COUNT.name else None
        rule = gates.rule(change.op, COUNT)
        is_own = change.verdict is Verdict.REGRESSED and rule is not None and not rule.is_asked_for
        if family is not None and is_own and steady[family.name]:
            found.append(replace(change, verdict=Verdict.CHANGED, reason=steady[family.name]))
        else:
            found.append(change)
    return found


def _steady(family: OpFamily, base: TestResult, head: TestResult) -> str:
    """Says that neither all ops of a family rose nor its core; "" if they may have."""
    sides = [(_calls(test, family.core), _calls(test, family.ops)) for test in (base, head)]
    (core_before, before), (core_now, now) = sides
    if core_before is None or core_now is None or before is None or now is None:
        return ""
    if core_now > core_before or now > before:
        return ""
    return f"{family.name} did not rise: {core_before} before, {core_now} now"


def _calls(test: TestResult, names: Collection[str]) -> int | None:
    """How often these ops ran in each step; None if that varies or rows may be missing."""
    if test.ops_omitted:
        return None
    rows = [row for row in test.ops if row.kind is OpKind.OP and row.name in names and not row.background]
    if not all(row.not_views.is_constant for row in rows):
        return None
    return sum(row.not_views.low for row in rows)


_WHY = "the background does more"


def with_moved_work(changes: Sequence[Change]) -> list[Change]:
    """The judged changes of a test, in their order; if the background does more, it and falls are CHANGED.

    Work of threads from before the steps belongs to no step and is not a gate. A test that moves work to a
    pool of threads has less in its steps, which is not an improvement.
    """
    rises: Counter[OpKind | None] = Counter()
    for change in changes:
        is_work = change.kind is not OpKind.CALL and not change.is_free
        if change.background and change.metric == COUNT.name and is_work:
            rises[change.kind] += change.rise
    has_fallen = any(change.verdict is Verdict.IMPROVED for change in changes)
    if not has_fallen or all(rise <= 0 for rise in rises.values()):
        return list(changes)
    return [_moved(change, grown={kind for kind, rise in rises.items() if rise > 0}) for change in changes]


def _moved(change: Change, *, grown: set[OpKind | None]) -> Change:
    if change.op is None and change.verdict is Verdict.IMPROVED:
        return replace(change, verdict=Verdict.CHANGED, reason=_WHY)
    is_rise = change.metric == COUNT.name and change.rise > 0 and not change.is_free
    if change.background and is_rise and change.kind in grown:
        return replace(change, verdict=Verdict.CHANGED)
    return change
