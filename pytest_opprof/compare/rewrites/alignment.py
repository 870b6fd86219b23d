"""Align two call trees, to find where the sides have different ops at the same place.

Equal paths are the same place. The rest is compared under the lowest common caller, between the siblings that
both sides have in the same order, only by these rules; counts are of calls:

* *wrapped*, *unwrapped*: the ops of one side are inside the other's only op, each as often; or more than half
  of them are directly in it, and what is inside is aligned with them.
* *renamed*: one op for one op, as often, and both or none call others; several of them when they are as many,
  in order, each pair as often and with as many ops of their own inside. An op that now works in place, or no
  longer does, is paired before all else, and so is a compiled function that has another number.
* *fused*: one new op for several, for several calls, or for one with others inside, each as often as it or
  a whole multiple. *split* is a fusion seen from the other side.
* *added*, *removed*: the other side has no counterpart.

A sibling that both sides have, with fewer or more calls, takes part if the difference is exactly as often.
All other ops simply come or go. The cost is O(n log n) in the nodes of both trees.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pytest_opprof.compare.comparison import RewriteKind
from pytest_opprof.kinds import OpKind
from pytest_opprof.results.names import STEP_NAME
from pytest_opprof.results.run import TestResult

# An op's name, and whether it runs on a device.
Key: TypeAlias = tuple[str, bool]
# The numbers of a function in the process, and of its compilation, follow: 2/1.
_COMPILED = "Torch-Compiled Region: "
# A common caller, and its calls on each side.
_Siblings: TypeAlias = "tuple[str, Sequence[int], Sequence[int]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewriting:
    """Other ops at one place of the call tree."""

    kind: RewriteKind
    within: tuple[str, ...]  # the common caller of each place; empty for the test itself
    before: tuple[str, ...]  # the outermost ops that were there
    after: tuple[str, ...]  # the outermost ops that are there now
    lost: dict[str, int]  # the calls that were there, with those inside
    gained: dict[str, int]  # the calls that are there now, with those inside
    on_device: bool = False  # these are kernels

    def net(self) -> dict[Key, int]:
        """By op, how many more calls there are now, unless 0."""
        rises = Counter({name: -calls for name, calls in self.lost.items()})
        rises.update(self.gained)
        return {(name, self.on_device): rise for name, rise in rises.items() if rise}


@dataclass(frozen=True, slots=True)
class _Part:
    """Calls that only one side has; without a node, some of a common sibling's."""

    name: str
    count: int
    node: int | None


def rewritings(base: TestResult, head: TestResult) -> list[Rewriting]:
    """The ops that replaced others in the call trees."""
    return _Alignment(CallTree(base, weight=head.steps), CallTree(head, weight=base.steps)).run()


class _Alignment:
    def __init__(self, base: CallTree, head: CallTree) -> None:
        self._base = base
        self._head = head
        self._found: list[Rewriting] = []
        # Not by recursion: a tree may be as deep as it has nodes.
        self._waiting: list[_Siblings] = []
        self._wait("", ROOT, ROOT)

    def run(self) -> list[Rewriting]:
        while self._waiting:
            self._align(*self._waiting.pop())
        return self._found

    def _wait(self, within: str, base: int, head: int) -> None:
        inside = tuple(self._base.children[base].values()), tuple(self._head.children[head].values())
        if any(inside):
            self._waiting.append((within, *inside))

    def _align(self, within: str, base: Sequence[int], head: Sequence[int]) -> None:
        before = {self._base.names[node]: node for node in base}
        after = {self._head.names[node]: node for node in head}
        for name in before.keys() & after.keys():
            self._wait(name, before[name], after[name])
        # The siblings that both sides have, with fewer calls, and with more.
        rises = {
            name: self._head.counts[after[name]] - self._base.counts[node]
            for name, node in before.items()
            if name in after
        }
        less = [_Part(name, -rise, None) for name, rise in rises.items() if rise < 0]
        more = [_Part(name, rise, None) for name, rise in rises.items() if rise > 0]
        gaps = [
            (_parts(self._base, before, names[0]), _parts(self._head, after, names[1]))
            for names in _gaps(list(before), list(after))
        ]
        lost = [part for gap in gaps for part in gap[0]]
        gained = [part for gap in gaps for part in gap[1]]
        # Changed calls of common siblings belong to it if that explains everything. A wrapper may have moved
        # others together with the op around them.
        of_all = self._is_told if less or more else self._is_wrapped
        if of_all(within, lost + less, gained + more):
            return
        untold = [gap for gap in gaps if not self._is_told(within, *gap)]
        lost = [part for gap in untold for part in gap[0]] + less
        gained = [part for gap in untold for part in gap[1]] + more
        if not self._is_told(within, lost, gained):
            self._tell_one_sided(within, lost, gained)

    def _is_told(self, within: str, lost: Sequence[_Part], gained: Sequence[_Part]) -> bool:
        return bool(lost and gained) and (
            self._has_twins(within, lost, gained)
            or self._is_wrapped(within, lost, gained)
            or self._is_renamed(within, lost, gained)
            or self._is_fused_or_split(within, lost, gained)
        )

    def _has_twins(self, within: str, lost: Sequence[_Part], gained: Sequence[_Part]) -> bool:
        """Whether ops have their other forms now: what else there is has nothing to do with them."""
        twins = {old.name: new for old in lost for new in gained if _is_twin(old, new)}
        others = [part for part in lost if part.name not in twins]
        now = [part for part in gained if part not in twins.values()]
        if not twins or not (others or now):
            return False
        for old in lost:
            if old.name in twins:
                self._is_renamed(within, [old], [twins[old.name]])
        if not self._is_told(within, others, now):
            self._tell_one_sided(within, others, now)
        return True

    def _is_wrapped(self, within: str, lost: Sequence[_Part], gained: Sequence[_Part]) -> bool:
        for kind, tree, around, moved in (
            (RewriteKind.WRAPPED, self._head, gained, lost),
            (RewriteKind.UNWRAPPED, self._base, lost, gained),
        ):
            wrapper = around[0].node if len(around) == 1 and moved else None
            if wrapper is None:
                continue
            calls = tree.calls_of(wrapper)
            calls[around[0].name] -= around[0].count
            if all(calls[part.name] == part.count for part in moved):
                whole = self._rewriting(kind, within, lost, gained)
                if len({rise > 0 for rise in whole.net().values()}) == 1:
                    self._found.append(whole)
                    return True
            direct = [part for part in moved if _is_directly_in(tree, wrapper, part)]
            if len(direct) * 2 > len(moved):
                self._tell_wrapper(kind, within, around[0], direct)
                nodes = tuple(part.node for part in moved if part.node is not None)
                inside = tuple(tree.children[wrapper].values())
                sides = (nodes, inside) if kind is RewriteKind.WRAPPED else (inside, nodes)
                self._waiting.append((around[0].name, *sides))
                return True
        return False

    def _tell_wrapper(self, kind: RewriteKind, within: str, wrapper: _Part, moved: Sequence[_Part]) -> None:
        """Show a wrapper alone: the ops inside are aligned separately."""
        few = {part.name: part.count for part in moved}
        bare, around = (tuple(few), few), ((wrapper.name,), few | {wrapper.name: wrapper.count})
        (before, lost), (after, gained) = (bare, around) if kind is RewriteKind.WRAPPED else (around, bare)
        self._found.append(
            Rewriting(kind=kind, within=(within,), before=before, after=after, lost=lost, gained=gained)
        )

    def _is_renamed(self, within: str, lost: Sequence[_Part], gained: Sequence[_Part]) -> bool:
        if len(lost) != len(gained):
            return False
        pairs = list(zip(lost, gained, strict=True))
        if any(old.count != new.count for old, new in pairs):
            return False
        if not all(self._fits(old, new, is_alone=len(pairs) == 1) for old, new in pairs):
            return False
        for old, new in pairs:
            bare = ([_Part(part.name, part.count, None)] for part in (old, new))
            self._found.append(self._rewriting(RewriteKind.RENAMED, within, *bare))
            if old.node is not None and new.node is not None:
                self._wait(new.name, old.node, new.node)
        return True

    def _fits(self, old: _Part, new: _Part, *, is_alone: bool) -> bool:
        if old.node is None or new.node is None:
            # One common sibling runs less and another more: neither name is new.
            return is_alone and old.node is not new.node
        before, after = len(self._base.children[old.node]), len(self._head.children[new.node])
        return bool(before) == bool(after) if is_alone else before == after

    def _is_fused_or_split(self, within: str, lost: Sequence[_Part], gained: Sequence[_Part]) -> bool:
        fused, split = (RewriteKind.FUSED, gained, lost), (RewriteKind.SPLIT, lost, gained)
        if len(lost) > 1 and len(gained) > 1:
            return False
        is_more = sum(_calls(self._base, lost).values()) < sum(_calls(self._head, gained).values())
        for kind, one, many in (split, fused) if is_more else (fused, split):
            if len(one) == 1 and one[0].node is not None and all(_is_multiple(part, one[0]) for part in many):
                found = self._rewriting(kind, within, lost, gained)
                if _is_other(found):
                    self._found.append(found)
                    return True
        return False

    def _tell_one_sided(self, within: str, lost: Sequence[_Part], gained: Sequence[_Part]) -> None:
        if lost and gained:
            return
        for part in (*lost, *gained):
            if part.node is not None:
                kind = RewriteKind.REMOVED if lost else RewriteKind.ADDED
                sides = ([part], []) if lost else ([], [part])
                self._found.append(self._rewriting(kind, within, *sides))

    def _rewriting(
        self, kind: RewriteKind, within: str, lost: Sequence[_Part], gained: Sequence[_Part]
    ) -> Rewriting:
        return Rewriting(
            kind=kind,
            within=(within,),
            before=tuple(part.name for part in lost),
            after=tuple(part.name for part in gained),
            lost=_calls(self._base, lost),
            gained=_calls(self._head, gained),
        )


def _is_twin(old: _Part, new: _Part) -> bool:
    """``aten::add`` and ``aten::add_``, as often; or a compiled function with another number."""
    is_whole = old.node is not None and new.node is not None
    return is_whole and old.count == new.count and _form(old.name) == _form(new.name)


def _form(name: str) -> str:
    region, _, compilation = name.partition("/")
    return f"{_COMPILED}{compilation}" if region.startswith(_COMPILED) else name.rstrip("_")


def _gaps(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[list[str], list[str]]]:
    """Ops of only one side between common siblings; all together if these changed their order."""
    earlier, later = set(before), set(after)
    if [name for name in before if name in later] != [name for name in after if name in earlier]:
        yield [name for name in before if name not in later], [name for name in after if name not in earlier]
        return
    yield from zip(_cut(before, at=later), _cut(after, at=earlier), strict=True)


def _cut(names: Iterable[str], *, at: set[str]) -> list[list[str]]:
    gaps: list[list[str]] = [[]]
    for name in names:
        if name in at:
            gaps.append([])
        else:
            gaps[-1].append(name)
    return gaps


def _parts(tree: CallTree, nodes: dict[str, int], names: Iterable[str]) -> list[_Part]:
    return [_Part(name, tree.counts[nodes[name]], nodes[name]) for name in names]


def _is_directly_in(tree: CallTree, wrapper: int, part: _Part) -> bool:
    inside = tree.children[wrapper].get(part.name)
    return part.node is not None and inside is not None and tree.counts[inside] == part.count


def _is_other(found: Rewriting) -> bool:
    """Whether neither the old ops are inside the new ones nor the other way round."""
    net = found.net()
    return all(net.get((name, False), 0) < 0 for name in found.before) and all(
        net.get((name, False), 0) > 0 for name in found.after
    )


def _is_multiple(part: _Part, one: _Part) -> bool:
    if part.node is None or not one.count:
        return part.count == one.count
    return part.count % one.count == 0


def _calls(tree: CallTree, parts: Iterable[_Part]) -> Counter[str]:
    found: Counter[str] = Counter()
    for part in parts:
        found.update({part.name: part.count} if part.node is None else tree.calls_of(part.node))
    return found


ROOT = 0  # the test itself


class CallTree:
    """A side's call tree: who called whom how often. A node is a path of names; the test itself is node 0.

    Python calls and the steps' own ranges are left out, and the ops in them belong to the op or range around:
    code that moved to another function or line still runs the same ops.
    """

    def __init__(self, test: TestResult, *, weight: int) -> None:
        self.names = [""]  # of nodes
        # How often each path was called, over all steps, times the weight: the other side's steps.
        self.counts = [0]
        self.children: list[dict[str, int]] = [{}]  # by name, in the order in which they were first called
        calls = {row.name for row in test.ops if row.kind is OpKind.CALL}
        left_out = calls - {row.name for row in test.ops if row.kind is not OpKind.CALL} | {STEP_NAME}
        place: list[int] = []
        for node in test.tree:
            above = ROOT if node.parent < 0 else place[node.parent]
            if node.name in left_out:
                place.append(above)
                continue
            mine = self.children[above].setdefault(node.name, len(self.names))
            if mine == len(self.names):
                self.names.append(node.name)
                self.counts.append(0)
                self.children.append({})
            self.counts[mine] += node.count * weight
            place.append(mine)

    def calls_of(self, node: int) -> Counter[str]:
        """The calls of a node, and of all nodes inside it, summed by name."""
        found: Counter[str] = Counter()
        waiting = [node]  # not by recursion: a tree may be as deep as it has nodes
        while waiting:
            inside = waiting.pop()
            name = self.names[inside]
            found[name] += self.counts[inside]
            waiting.extend(reversed(self.children[inside].values()))
        return found
