"""Known anti-patterns: what a rise costs, and what to write instead, in one sentence.

A rule looks at the ops of one cause, the text of its line, and the earlier ops. docs/rules.md explains each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pytest_opprof.compare.comparison import Change, TestComparison
from pytest_opprof.compare.in_place import InPlaceOps
from pytest_opprof.metrics import COUNT, NODES
from pytest_opprof.results.run import TestResult

# A loop replaced an op that rises by this many times its earlier calls.
_LOOP = 4
_READS: Final = frozenset({"aten::item", "aten::_local_scalar_dense", "aten::is_nonzero", "aten::nonzero"})
_COPIES: Final = frozenset({"aten::clone", "aten::contiguous"})
_CONVERSIONS: Final = frozenset({"aten::to", "aten::_to_copy"})
_INDEX: Final = "aten::index"
_ROWS: Final = frozenset({"aten::select", "aten::unbind", _INDEX, "aten::slice", "aten::narrow"})
_TO_HOST = r"(?:\.(?:cpu|numpy)\(|\.to\(['\"]cpu)"
# The numbers of a function in the process and of its compilation: the first one is 0/0 or 5/0.
_COMPILED_AGAIN: Final = re.compile(r"Torch-Compiled Region: (.*)/([1-9]\d*)(?:_\d+)?")
# Not to a dtype or memory format.
_TO_DEVICE = r"(?:\.cuda\(|\.to\((?!['\"]cpu|torch\.(?!device)|[\w.]*dtype|float\)|memory_format))"
# A call of several lines is known by its first one, so its arguments may be unknown.
_KEEPS_DTYPE: Final = re.compile(r"memory_format|copy=True|\.to\([^)]*$")
_HOST_AND_BACK: Final = re.compile(
    # Inside the brackets of the call that makes a tensor, or before a move to a device.
    rf"\b(?:from_numpy|as_tensor|tensor)\((?:[^(),]|\([^()]*\)|\()*{_TO_HOST}|{_TO_HOST}[^,]*{_TO_DEVICE}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a rule may look at."""

    risen: Mapping[str, int]  # how many more calls a step, by op that rose
    roots: Sequence[str]  # those that no other op of the cause calls, the clearest first
    before: Mapping[str, int]  # the most calls of a step before, by op of the test
    now: Mapping[str, int]  # the same now
    recorded: frozenset[str]  # ops that add to autograd's graph only now
    was_in_place: Callable[[str], bool]  # whether an op allocates where its in-place form ran before
    text: str  # the source line of the cause; empty if unknown

    @property
    def more_often(self) -> list[str]:
        """The roots that run more often: others have larger inputs, or new nodes in autograd's graph."""
        return [op for op in self.roots if self.now.get(op, 0) > self.before.get(op, 0)]

    def grew_with_others(self, op: str) -> bool:
        """Whether another root grew by an op's factor, as if their whole function is called more often."""
        before, now = self.before.get(op, 0), self.now.get(op, 0)
        others = (other for other in self.more_often if other in self.before and other not in _ROWS)
        return before > 0 and any(self.now[one] * before == now * self.before[one] for one in others)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """An anti-pattern."""

    code: str  # its name in docs/rules.md, which never changes
    title: str  # the pattern's name on its page
    sentence: str  # what it costs, and what to write instead
    applies: Callable[[Facts], bool]


# The first rule that applies is shown, so the clearest come first.
RULES: Final = (
    Rule(
        code="OP107",
        title="A function is compiled again",
        sentence="torch.compile compiled a function again, because one of its guards failed. Keep the "
        "shapes, dtypes and Python values of its arguments the same, or mark a size with "
        "torch._dynamo.mark_dynamic.",
        # One more function that is compiled gives those after it other numbers.
        applies=lambda facts: (
            any(_COMPILED_AGAIN.fullmatch(op) and op not in facts.before for op in facts.risen)
            and _recompilations(facts.now) > _recompilations(facts.before)
        ),
    ),
    Rule(
        code="OP102",
        title="A copy to the host and back",
        sentence="This copies to the host and back, and waits for the device twice. Use torch ops on the "
        "device instead.",
        applies=lambda facts: bool(facts.more_often and _HOST_AND_BACK.search(facts.text)),
    ),
    Rule(
        code="OP101",
        title="A value is read from a tensor",
        sentence="This reads a value from a tensor, so on a GPU the host waits until all earlier work is "
        "done. Keep the value in a tensor, or read it once after the loop.",
        applies=lambda facts: not _READS.isdisjoint(facts.more_often),
    ),
    Rule(
        code="OP104",
        title="A Python loop over rows",
        sentence="A Python loop runs these ops once for each row. One op on the whole batch does the same "
        "work in one call.",
        applies=lambda facts: any(
            op in _ROWS and rise >= _LOOP and rise >= _LOOP * facts.before.get(op, 0)
            for op, rise in facts.risen.items()
            if op != _INDEX or op in facts.before  # one that is new may be a mask in each layer
            if not facts.grew_with_others(op)
        ),
    ),
    Rule(
        code="OP105",
        title="A graph that nobody asked for",
        sentence="Autograd now records these ops, and keeps their inputs for a backward pass. Run them under "
        "torch.no_grad() or torch.inference_mode(), unless they are trained.",
        # They are called as often as before.
        applies=lambda facts: not any(facts.risen.values()) and facts.recorded.issuperset(facts.roots),
    ),
    Rule(
        code="OP106",
        title="An in-place op became one that allocates",
        sentence="This allocates a new tensor where an in-place op wrote into the old one. Use the op whose "
        "name ends in _ again, unless autograd needs the old values.",
        applies=lambda facts: any(map(facts.was_in_place, facts.roots)),
    ),
    Rule(
        code="OP103",
        title="A copy that is new",
        sentence="This copies the whole tensor once more. Drop the copy unless somebody writes to it, or "
        "needs this memory layout.",
        applies=lambda facts: not _COPIES.isdisjoint(facts.more_often[:1]),
    ),
    Rule(
        code="OP108",
        title="Conversions between dtypes",
        sentence="This converts a tensor to another dtype or device, which copies it. Keep one dtype from "
        "end to end, or convert once outside of the step.",
        applies=lambda facts: (
            not _CONVERSIONS.isdisjoint(facts.more_often[:1])
            and facts.risen.get("aten::_to_copy", 0) > 0
            and not _KEEPS_DTYPE.search(facts.text)
        ),
    ),
)


def advice(
    changes: Iterable[Change], test: TestComparison, *, roots: Sequence[str], text: str
) -> Rule | None:
    """The anti-pattern of a cause, whose `roots` and `text` are those of `Facts`; None if none is known."""
    risen: dict[str, int] = {}
    recorded = set()
    for change in changes:
        if change.op is not None and change.rise > 0:
            calls = change.rise if change.metric == COUNT.name else 0
            risen[change.op] = max(risen.get(change.op, 0), calls)
            if change.metric == NODES.name and change.base is not None and change.base.high == 0:
                recorded.add(change.op)
    if test.base is None or test.head is None:
        return None
    facts = Facts(
        risen=risen,
        roots=roots,
        before=_counts(test.base),
        now=_counts(test.head),
        recorded=frozenset(recorded),
        was_in_place=InPlaceOps(test.base, test.head).became,
        text=text,
    )
    return next((rule for rule in RULES if rule.applies(facts)), None)


def _counts(side: TestResult) -> dict[str, int]:
    return {row.name: row.count.high for row in side.ops if not row.background}


def _recompilations(ops: Iterable[str]) -> int:
    """How often functions were compiled again before these ops ran."""
    last: dict[str, int] = {}
    for again in filter(None, map(_COMPILED_AGAIN.fullmatch, ops)):
        last[again[1]] = max(int(again[2]), last.get(again[1], 0))
    return sum(last.values())
