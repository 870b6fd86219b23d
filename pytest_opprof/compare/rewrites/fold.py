"""Show a renamed, fused or split op as one change, not a row for each old and new name.

This shows the gates' findings in fewer rows, and decides nothing: an op with a gate of its own (a watched op,
a user's rule) keeps its row, and joined rows keep the verdict that they had apart. A row is joined with
others only if that explains all of its difference.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pytest_opprof.compare.comparison import Change, Rewrite, RewriteKind
from pytest_opprof.compare.rewrites.alignment import Key, Rewriting, rewritings
from pytest_opprof.compare.rewrites.explained import Book
from pytest_opprof.compare.rewrites.kernels import kernel_rewritings
from pytest_opprof.compare.verdicts import Verdict, worst
from pytest_opprof.kinds import OpKind
from pytest_opprof.metrics import COUNT
from pytest_opprof.results.names import bounded_text
from pytest_opprof.results.run import TestResult
from pytest_opprof.results.samples import Samples
from pytest_opprof.wording import counted

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
