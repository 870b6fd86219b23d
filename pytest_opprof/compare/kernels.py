"""Kernels that became others: by the op that launches them, as a call tree has the host's work alone."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from pytest_opprof.compare.alignment import Rewriting
from pytest_opprof.compare.comparison import RewriteKind
from pytest_opprof.results.run import OpKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_opprof.results.run import OpRow, TestResult


def kernel_rewritings(base: TestResult, head: TestResult, *, of_ops: Sequence[Rewriting]) -> list[Rewriting]:
    """The kernels of one launching op, or of ops that became each other, that only one side has.

    One for one as often, also of several where each is launched a number of times of its own; one for
    several, and several for one, by whole multiples.

    Args:
        base: the test before.
        head: the test now.
        of_ops: what became of the ops.
    """
    launcher = {
        name: f"{at} {rewriting.after}" for at, rewriting in enumerate(of_ops) for name in rewriting.net()
    }
    lost = _by_launcher(_only_in(base, head), launcher, weight=head.steps)
    gained = _by_launcher(_only_in(head, base), launcher, weight=base.steps)
    found: list[Rewriting] = []
    for key, before in lost.items():
        found += _rewritings(before, gained.get(key, {}), within=_caller(head, gained.get(key, {})))
    return found


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


def _caller(test: TestResult, kernels: dict[str, int]) -> str:
    launchers = {row.parent_op or "" for row in test.ops if row.name in kernels and row.kind is OpKind.KERNEL}
    return min(launchers, default="")


def _rewritings(lost: dict[str, int], gained: dict[str, int], *, within: str) -> list[Rewriting]:
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
        within=within,
        before=tuple(sorted(lost)),
        after=tuple(sorted(gained)),
        lost=lost,
        gained=gained,
    )
