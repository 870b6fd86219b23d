"""Show a renamed, fused or split op as one change, not a row for each old and new name.

This shows the gates' findings in fewer rows, and decides nothing: an op with a gate of its own (a watched op,
a user's rule) keeps its row, and joined rows keep the verdict that they had apart. A row is joined with
others only if that explains all of its difference.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from pytest_opprof.compare.comparison import Change, Rewrite, RewriteKind
from pytest_opprof.compare.rewrites.alignment import Key, Rewriting, rewritings
from pytest_opprof.compare.rewrites.kernels import kernel_rewritings
from pytest_opprof.compare.verdicts import Verdict, worst
from pytest_opprof.kinds import OpKind
from pytest_opprof.metrics import COUNT
from pytest_opprof.results.names import bounded_text
from pytest_opprof.results.run import OpRow, TestResult
from pytest_opprof.results.samples import Samples
from pytest_opprof.wording import counted

_Rows: TypeAlias = dict[Key, list[OpRow]]
_WORDS = {RewriteKind.ADDED: "new", RewriteKind.REMOVED: "gone"}
_ONE_SIDED = frozenset({RewriteKind.ADDED, RewriteKind.REMOVED})
# The verdicts of a row outside a total's rise.
_OF_ITS_OWN = frozenset({Verdict.CHANGED, Verdict.IMPROVED})


def folded(changes: Sequence[Change], base: TestResult, head: TestResult) -> list[Change]:
    """The changes of a test's ops, with one change per rewrite."""
    book = Book(changes, base, head)
    if not book.counts:
        return list(changes)
    of_ops = _all_told(_as_ones(book.explained(rewritings(base, head))), book)
    kernels = kernel_rewritings(base, head, of_ops=[rewritten.rewriting for rewritten in of_ops])
    rewrites = [*of_ops, *_all_told(_as_ones(book.explained(kernels)), book)]
    gone = {id(change) for rewritten in rewrites for change in rewritten.instead_of}
    return [
        *(change for rewritten in rewrites for change in rewritten.changes),
        *(change for change in changes if id(change) not in gone),
    ]


@dataclass(frozen=True, slots=True)
class _Rewritten:
    rewriting: Rewriting
    changes: list[Change]
    instead_of: list[Change]


def _as_ones(found: Iterable[Rewriting]) -> list[Rewriting]:
    """The same rewriting at all its places, as one."""
    alike: dict[tuple[RewriteKind, tuple[str, ...], tuple[str, ...]], list[Rewriting]] = defaultdict(list)
    for one in found:
        alike[one.kind, one.before, one.after].append(one)
    return [_as_one(same) for same in alike.values()]


def _as_one(same: Sequence[Rewriting]) -> Rewriting:
    lost: Counter[str] = Counter()
    gained: Counter[str] = Counter()
    for one in same:
        lost.update(one.lost)
        gained.update(one.gained)
    within = tuple(place for one in same for place in one.within)
    return replace(same[0], lost=lost, gained=gained, within=within)


def _all_told(found: Iterable[Rewriting], book: Book) -> list[_Rewritten]:
    """The rewrites that say more than the rows themselves.

    Several can be parts of one row's difference: an op that replaces one and wraps another. If they would be
    more rows than they replace, these rows are kept.
    """
    told = [rewritten for rewriting in found if (rewritten := _told(rewriting, book)) is not None]
    parts = Counter(id(change) for rewritten in told for change in rewritten.instead_of)
    joined: list[tuple[set[int], list[_Rewritten]]] = []
    for rewritten in told:
        rows, together = {id(change) for change in rewritten.instead_of}, [rewritten]
        if all(parts[row] == 1 for row in rows):
            continue
        for other in [other for other in joined if other[0] & rows]:
            joined.remove(other)
            rows |= other[0]
            together += other[1]
        joined.append((rows, together))
    too_many = {
        id(rewritten)
        for rows, together in joined
        if sum(len(rewritten.changes) for rewritten in together) > len(rows)
        for rewritten in together
    }
    return [rewritten for rewritten in told if id(rewritten) not in too_many]


def _told(rewriting: Rewriting, book: Book) -> _Rewritten | None:
    """A rewrite as one change; None if it says no more than the rows themselves."""
    net = rewriting.net()
    mine = [book.counts[op] for op in net if op in book.counts]
    if not mine or (rewriting.kind in _ONE_SIDED and (len(mine) == 1 or _is_part_of_total(mine))):
        return None
    weight = book.steps[0] * book.steps[1]
    sums = [sum(side.values()) for side in (rewriting.lost, rewriting.gained)]
    if sums[0] % weight or sums[1] % weight:
        return None
    first = (*rewriting.after, *rewriting.before)[0]
    change = Change(
        op=first,
        kind=book.kind((first, rewriting.on_device)),
        metric=COUNT.name,
        base=_each(sums[0] // weight, steps=book.steps[0]),
        head=_each(sums[1] // weight, steps=book.steps[1]),
        verdict=_verdict(mine, net, has_risen=not book.risen.isdisjoint(net)),
        cause=bounded_text(_cause(rewriting, book)),
        line=next((change.line for change in mine if change.line and change.op in rewriting.after), None),
        rewrite=Rewrite(kind=rewriting.kind, before=rewriting.before, after=rewriting.after),
        is_free=all(change.is_free for change in mine),
    )
    others, instead_of = _others(rewriting, mine, change, book)
    return _Rewritten(rewriting, [change, *others], [*mine, *instead_of])


def _each(calls: int, *, steps: int) -> Samples | None:
    return Samples.constant(calls, steps=steps) if calls else None


def _is_part_of_total(changes: Iterable[Change]) -> bool:
    return any(change.verdict not in _OF_ITS_OWN for change in changes)


def _verdict(changes: Sequence[Change], net: dict[Key, int], *, has_risen: bool) -> Verdict | None:
    """The separate rows' verdict: a rise of their kind's total, other ops, or fewer."""
    rises: dict[OpKind | None, int] = defaultdict(int)
    changes = [change for change in changes if not change.is_free]
    for change in changes:
        rises[change.kind] += net[change.op or "", change.kind is not None and change.kind.is_on_device]
    of_totals = [
        change.verdict for change in changes if change.verdict not in _OF_ITS_OWN and rises[change.kind] > 0
    ]
    if of_totals:
        return worst(of_totals)
    has_risen = has_risen or any(change.rise > 0 for change in changes)
    return Verdict.CHANGED if has_risen or not changes else Verdict.IMPROVED


def _cause(rewriting: Rewriting, book: Book) -> str:
    """``fused in range 'forward'``, ``renamed at 12 places``, ``gone, with 3 more ops inside``."""
    caller = rewriting.within[0]
    if rewriting.on_device:
        return f"{rewriting.kind}, launched by {caller}" if caller else rewriting.kind.value
    told = _WORDS.get(rewriting.kind, rewriting.kind.value)
    source = next((book.places[name] for name in rewriting.after if name in book.places), None)
    if source:
        told += f" in {source}"
    elif len(set(rewriting.within)) > 1:
        told += f" at {len(rewriting.within)} places"
    elif caller:
        told += f" in range {caller!r}" if caller in book.ranges else f" in {caller}"
    named = {*rewriting.before, *rewriting.after}
    inside = sum(name not in named for name, _ in rewriting.net())
    return f"{told}, with {counted(inside, 'more op')} inside" if inside else told


def _others(
    rewriting: Rewriting, mine: Sequence[Change], told: Change, book: Book
) -> tuple[list[Change], list[Change]]:
    """Other metrics of a rewrite's ops, and the changes that they replace.

    If an op was renamed, they are as of one op, else as a whole.
    """
    by_metric: dict[str, list[Change]] = defaultdict(list)
    for count in mine:
        for change in book.others.get(count.op or "", ()):
            if change.kind is count.kind:
                by_metric[change.metric].append(change)
    is_pair = rewriting.kind is RewriteKind.RENAMED and all(map(book.is_whole, rewriting.net()))
    told_now: list[Change] = []
    instead_of: list[Change] = []
    for metric, changes in by_metric.items():
        rise = sum(change.rise for change in changes)
        if _is_part_of_total(changes) and rise > 0 and not is_pair:
            continue  # these show the place of the total's rise
        instead_of.extend(changes)
        if is_pair and rise:
            told_now.append(_of_pair(told, metric, changes))
    return told_now, instead_of


def _of_pair(told: Change, metric: str, changes: Sequence[Change]) -> Change:
    """A metric of a renamed op."""
    change = replace(
        told,
        metric=metric,
        base=next((change.base for change in changes if change.base), None),
        head=next((change.head for change in changes if change.head), None),
    )
    if change.rise < 0:
        return replace(change, verdict=Verdict.IMPROVED)
    return replace(change, verdict=worst(one.verdict for one in changes))


_UNKNOWN = frozenset({None, Verdict.INCONCLUSIVE, Verdict.ERROR})


class Book:
    """Both sides' ops, by name: which rewritings tell all of the difference of the rows they stand for."""

    def __init__(self, changes: Iterable[Change], base: TestResult, head: TestResult) -> None:
        self.steps = base.steps, head.steps
        # The user's line of most calls of an op.
        self.places = {row.name: row.source for row in head.ops if row.source}
        self.ranges = {row.name for test in (base, head) for row in test.ops if row.kind is OpKind.RANGE}
        self._sides = base, head
        self.counts: dict[Key, Change] = {}  # the changes of counts that may be shown with others
        self.others: dict[str, list[Change]] = defaultdict(list)  # the same of other metrics
        self.risen: set[Key] = set()  # the ops with a gate of their own that ran more often
        self._unknown: set[Key] = set()
        for change in changes:
            if change.op is None or change.kind is None or change.background:
                continue
            key = change.op, change.kind.is_on_device
            is_count = change.metric == COUNT.name
            is_known = change.verdict not in _UNKNOWN and change.is_constant
            if is_count and not is_known:
                self._unknown.add(key)
            elif is_count and change.rule and change.rise > 0:
                self.risen.add(key)
            elif is_count and not change.rule:
                self.counts[key] = change
            elif is_known and not change.rule:
                self.others[change.op].append(change)

    @cached_property
    def _rows(self) -> tuple[_Rows, _Rows]:
        """Both sides' rows, made on demand: most tests need none."""
        base, head = self._sides
        return _rows_by_name(base), _rows_by_name(head)

    def explained(self, found: Sequence[Rewriting]) -> list[Rewriting]:
        """The rewritings that fully account for every row they replace."""
        sums: dict[Key, int] = defaultdict(int)
        moved: dict[Key, int] = defaultdict(int)
        by_op: dict[Key, list[Rewriting]] = defaultdict(list)
        for rewriting in found:
            for op, rise in rewriting.net().items():
                sums[op] += rise
                moved[op] += abs(rise)
                by_op[op].append(rewriting)
        # An op that goes at one place and comes at another is neither gone nor new.
        waiting = [
            op for op in by_op if not self._is_explained(op, sums[op], is_both=moved[op] > abs(sums[op]))
        ]
        refused: set[int] = set()
        seen = set(waiting)
        # A refused rewriting leaves its other ops unexplained, and so other rewritings of these.
        while waiting:
            for rewriting in by_op[waiting.pop()]:
                refused.add(id(rewriting))
                more = [op for op in rewriting.net() if op not in seen and op in self.counts]
                seen.update(more)
                waiting += more
        return [rewriting for rewriting in found if id(rewriting) not in refused]

    def _is_explained(self, op: Key, rise: int, *, is_both: bool) -> bool:
        before, after = (rows.get(op, ()) for rows in self._rows)
        if len(before) > 1 or len(after) > 1 or not (before or after) or op in self._unknown:
            return False
        known = after[0].count.total * self.steps[0] if after else 0
        known -= before[0].count.total * self.steps[1] if before else 0
        # An op with a gate of its own always keeps its row.
        return (rise == known and not is_both) or (known != 0 and op not in self.counts)

    def is_whole(self, op: Key) -> bool:
        """Whether only one side has an op."""
        return not all(op in rows for rows in self._rows)

    def kind(self, op: Key) -> OpKind | None:
        """An op's kind; None without a row."""
        return next((row.kind for rows in self._rows for row in rows.get(op, ())), None)


def _rows_by_name(test: TestResult) -> _Rows:
    rows: _Rows = defaultdict(list)
    for row in test.ops:
        if not row.background and row.kind is not OpKind.CALL and row.count.high:
            rows[row.name, row.kind.is_on_device].append(row)
    return rows
