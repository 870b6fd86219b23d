"""An op that was renamed, fused or split is one change, not a row for each name that comes or goes.

This tells what the gates have found in fewer rows, and decides nothing: what has a gate of its own (a watched
op, a rule that somebody set) keeps its row, and the rows told together have the verdict that they had apart.
A row is told with others only where that tells all of its difference.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pytest_opprof.compare.alignment import Rewriting, rewritings
from pytest_opprof.compare.call_trees import CallTree
from pytest_opprof.compare.comparison import Change, Rewrite, RewriteKind
from pytest_opprof.compare.explained import Book, Candidate
from pytest_opprof.compare.kernels import kernel_rewritings
from pytest_opprof.compare.verdicts import Verdict, worst
from pytest_opprof.metrics import COUNT
from pytest_opprof.results.names import bounded_text
from pytest_opprof.results.run import OpKind
from pytest_opprof.results.samples import Samples

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_opprof.results.run import TestResult

_WORDS = {RewriteKind.ADDED: "new", RewriteKind.REMOVED: "gone"}
_ONE_SIDED = frozenset({RewriteKind.ADDED, RewriteKind.REMOVED})
# The verdicts of a row that is no part of a total's rise.
_OF_ITS_OWN = frozenset({Verdict.CHANGED, Verdict.IMPROVED})


def folded(changes: Sequence[Change], base: TestResult, head: TestResult) -> list[Change]:
    """The changes of a test's ops, those of one rewrite as one.

    Args:
        changes: of single ops, judged.
        base: the test before.
        head: the test now.
    """
    book = Book(changes, base, head)
    if not book.counts:
        return list(changes)
    weights = head.steps, base.steps
    found = rewritings(CallTree(base, weight=weights[0]), CallTree(head, weight=weights[1]))
    of_ops = _all_told(_groups(book.explained(found, on_device=False)), book)
    kernels = kernel_rewritings(base, head, of_ops=[rewritten.group.rewriting for rewritten in of_ops])
    rewrites = [*of_ops, *_all_told(_groups(book.explained(kernels, on_device=True)), book)]
    gone = {id(change) for rewritten in rewrites for change in rewritten.instead_of}
    return [
        *(change for rewritten in rewrites for change in rewritten.changes),
        *(change for change in changes if id(change) not in gone),
    ]


@dataclass(frozen=True, slots=True)
class _Group:
    """The same rewriting at all its places, as one."""

    rewriting: Rewriting
    within: tuple[str, ...]
    net: dict[str, int]
    on_device: bool


@dataclass(frozen=True, slots=True)
class _Rewritten:
    group: _Group
    changes: list[Change]
    instead_of: list[Change] = field(default_factory=list)


def _groups(candidates: Iterable[Candidate]) -> list[_Group]:
    alike: dict[tuple[RewriteKind, tuple[str, ...], tuple[str, ...]], list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        rewriting = candidate.rewriting
        alike[rewriting.kind, rewriting.before, rewriting.after].append(candidate)
    return [_as_one(same) for same in alike.values()]


def _as_one(candidates: Sequence[Candidate]) -> _Group:
    if len(candidates) == 1:
        (only,) = candidates
        return _Group(only.rewriting, (only.rewriting.within,), only.net, only.on_device)
    lost: Counter[str] = Counter()
    gained: Counter[str] = Counter()
    for candidate in candidates:
        lost.update(candidate.rewriting.lost)
        gained.update(candidate.rewriting.gained)
    whole = replace(candidates[0].rewriting, lost=lost, gained=gained)
    within = tuple(candidate.rewriting.within for candidate in candidates)
    return _Group(whole, within, whole.net(), candidates[0].on_device)


def _all_told(groups: Iterable[_Group], book: Book) -> list[_Rewritten]:
    """The rewrites that tell more than the rows themselves.

    Several can be parts of one row's difference: an op that stands for one and wraps another. Where they
    would be more rows than they stand for, these rows are told as they are.
    """
    told = [rewritten for group in groups if (rewritten := _told(group, book)) is not None]
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


def _told(group: _Group, book: Book) -> _Rewritten | None:
    """A rewrite as one change; None where it tells no more than the rows themselves."""
    kind, net = group.rewriting.kind, group.net
    mine = [book.counts[name, group.on_device] for name in net if (name, group.on_device) in book.counts]
    if not mine or (kind in _ONE_SIDED and (len(mine) == 1 or _is_part_of_total(mine))):
        return None
    weight = book.steps[0] * book.steps[1]
    sums = [sum(side.values()) for side in (group.rewriting.lost, group.rewriting.gained)]
    if sums[0] % weight or sums[1] % weight:
        return None
    first = (*group.rewriting.after, *group.rewriting.before)[0]
    change = Change(
        op=first,
        kind=book.kind(first, on_device=group.on_device),
        metric=COUNT.name,
        base=_each(sums[0] // weight, steps=book.steps[0]),
        head=_each(sums[1] // weight, steps=book.steps[1]),
        verdict=_verdict(mine, net, has_risen=book.has_risen(net, on_device=group.on_device)),
        cause=bounded_text(_cause(group, book, inside=_inside(group))),
        rewrite=Rewrite(kind=kind, before=group.rewriting.before, after=group.rewriting.after),
        is_free=all(change.is_free for change in mine),
    )
    others = _others(group, mine, change, book)
    return _Rewritten(group, [change, *others.changes], [*mine, *others.instead_of])


def _inside(group: _Group) -> int:
    """How many ops changed that the rewrite's name does not name."""
    return len(group.net.keys() - {*group.rewriting.before, *group.rewriting.after})


def _each(calls: int, *, steps: int) -> Samples | None:
    return Samples.constant(calls, steps=steps) if calls else None


def _is_part_of_total(changes: Iterable[Change]) -> bool:
    return any(change.verdict not in _OF_ITS_OWN for change in changes)


def _verdict(changes: Sequence[Change], net: Mapping[str, int], *, has_risen: bool) -> Verdict | None:
    """What the rows said apart: a rise of their own kind's total, other ops, or fewer."""
    rises: dict[OpKind | None, int] = defaultdict(int)
    changes = [change for change in changes if not change.is_free]
    for change in changes:
        rises[change.kind] += net[change.op or ""]
    of_totals = [
        change.verdict for change in changes if change.verdict not in _OF_ITS_OWN and rises[change.kind] > 0
    ]
    if of_totals:
        return worst(of_totals)
    has_risen = has_risen or any(change.rise > 0 for change in changes)
    return Verdict.CHANGED if has_risen or not changes else Verdict.IMPROVED


def _cause(group: _Group, book: Book, *, inside: int) -> str:
    """``fused in range 'forward'``, ``renamed at 12 places``, ``gone, with 3 more ops inside``."""
    if group.on_device:
        (caller,) = group.within[:1]
        return f"{group.rewriting.kind}, launched by {caller}" if caller else group.rewriting.kind.value
    words = [_WORDS.get(group.rewriting.kind, group.rewriting.kind.value)]
    within = set(group.within)
    source = next((book.places[name] for name in group.rewriting.after if name in book.places), None)
    if source:
        words.append(f"in {source}")
    elif len(within) > 1:
        words.append(f"at {len(group.within)} places")
    elif within != {""}:
        (caller,) = within
        words.append(f"in range {caller!r}" if caller in book.ranges else f"in {caller}")
    told = " ".join(words)
    return f"{told}, with {inside} more {'op' if inside == 1 else 'ops'} inside" if inside else told


@dataclass(frozen=True, slots=True)
class _Others:
    changes: list[Change] = field(default_factory=list)
    instead_of: list[Change] = field(default_factory=list)


def _others(group: _Group, mine: Sequence[Change], told: Change, book: Book) -> _Others:
    """What the ops of a rewrite did besides running: as of one op where one was renamed, else as a whole."""
    by_metric: dict[str, list[Change]] = defaultdict(list)
    for count in mine:
        for change in book.others.get(count.op or "", ()):
            if change.kind is count.kind:
                by_metric[change.metric].append(change)
    found = _Others()
    if not by_metric:
        return found
    is_pair = group.rewriting.kind is RewriteKind.RENAMED and all(
        book.is_whole(name, on_device=group.on_device) for name in group.net
    )
    for metric, changes in by_metric.items():
        rise = sum(change.rise for change in changes)
        if _is_part_of_total(changes) and rise > 0 and not is_pair:
            continue  # these say where the rise of the total is
        found.instead_of.extend(changes)
        if is_pair and rise:
            found.changes.append(_of_pair(told, metric, changes))
    return found


def _of_pair(told: Change, metric: str, changes: Sequence[Change]) -> Change:
    """A metric of an op that has another name now."""
    change = replace(
        told,
        metric=metric,
        base=next((change.base for change in changes if change.base), None),
        head=next((change.head for change in changes if change.head), None),
    )
    if change.rise < 0:
        return replace(change, verdict=Verdict.IMPROVED)
    return replace(change, verdict=worst(one.verdict for one in changes))
