"""Find replaced kernels by their launching op, because a call tree has only the host's work."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from pytest_opprof.compare.comparison import RewriteKind
from pytest_opprof.compare.rewrites.alignment import Rewriting
from pytest_opprof.kinds import OpKind
from pytest_opprof.results.run import OpRow, TestResult


def kernel_rewritings(base: TestResult, head: TestResult, *, of_ops: Sequence[Rewriting]) -> list[Rewriting]:
    """The kernels of one launching op, or of a rewritten op, that only one side has.

    One for one as often, also several if each has another number of launches; one for several, and several
    for one, by whole multiples.
    """
    gone = _only_in(base, head)
    if not gone:
        return []
    launcher = {
        name: f"{at} {rewriting.after}" for at, rewriting in enumerate(of_ops) for name, _ in rewriting.net()
    }
    lost = _by_launcher(gone, launcher, weight=head.steps)
    gained = _by_launcher(_only_in(head, base), launcher, weight=base.steps)
    callers = _callers(head)
    return [
        rewriting
        for key, before in lost.items()
        for rewriting in _rewritings(before, gained.get(key, {}), callers)
    ]


def _only_in(one: TestResult, other: TestResult) -> list[OpRow]:
    known = {row.key for row in other.ops if row.count.high}
    return [
        row
        for row in one.ops
        if row.kind is OpKind.KERNEL and not row.background and row.count.high and row.key not in known
    ]


def _by_launcher(
    rows: Iterable[OpRow], launcher: dict[str, str], *, weight: int
) -> dict[tuple[str, str], dict[str, int]]:
    found: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for row in rows:
        by = row.parent_op or ""
        key = ("rewrite", launcher[by]) if by in launcher else ("op", by)
        found[key][row.name] = row.count.total * weight
    return found


def _callers(test: TestResult) -> dict[str, str]:
    """Each kernel's launching op; of several the first by name."""
    found: dict[str, str] = {}
    for row in test.ops:
        if row.kind is OpKind.KERNEL:
            by = row.parent_op or ""
            found[row.name] = min(found.get(row.name, by), by)
    return found


def _rewritings(lost: dict[str, int], gained: dict[str, int], callers: dict[str, str]) -> list[Rewriting]:
    within = min((callers[name] for name in gained), default="")
    by_count = {count: name for name, count in gained.items()}
    if set(lost.values()) == by_count.keys() and len(by_count) == len(lost) == len(gained):
        pairs = [({name: count}, {by_count[count]: count}) for name, count in lost.items()]
        return [_rewriting(RewriteKind.RENAMED, *pair, within=within) for pair in pairs]
    for kind, one, many in ((RewriteKind.FUSED, gained, lost), (RewriteKind.SPLIT, lost, gained)):
        if len(one) == 1 and all(count % min(one.values()) == 0 for count in many.values()):
            return [_rewriting(kind, lost, gained, within=within)] if many else []
    return []


def _rewriting(kind: RewriteKind, lost: dict[str, int], gained: dict[str, int], *, within: str) -> Rewriting:
    return Rewriting(
        kind=kind,
        within=(within,),
        before=tuple(sorted(lost)),
        after=tuple(sorted(gained)),
        lost=lost,
        gained=gained,
        on_device=True,
    )
