"""Order changes for the reader: the worst first, and a cause before what it causes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from pytest_opprof.compare.cause import ENGINE, Causes
from pytest_opprof.compare.comparison import Change
from pytest_opprof.compare.verdicts import Verdict, severity_of
from pytest_opprof.kinds import OpKind
from pytest_opprof.metrics import BYTES, COUNT, FLOPS, TOTALS, Source
from pytest_opprof.metrics.device import TOTAL_OF_COUNT

_LEAST = severity_of(None)
# Neither is the cause of the other.
_OF_INSTRUCTIONS = frozenset({Source.INSTRUCTIONS, Source.REPLAY})
_OF_MEMORY = frozenset({Source.MEMORY, Source.RETAINED})
# Inputs follow from the ops that made them, and work follows from inputs.
_FOLLOWS = (BYTES.name, FLOPS.name)


def ranked(changes: Sequence[Change], causes: Causes) -> list[Change]:
    """The totals, then the ops; the worst first in both, and a rise's beginning before the ops inside it."""
    ops = [change for change in changes if change.op is not None]
    places = _Places(ops, causes)
    return [
        *_ordered_totals(change for change in changes if change.op is None),
        *(
            replace(change, begins=places.is_beginning(change))
            for change in sorted(
                ops, key=lambda change: (places.rank(change), _order(change), *places.first_call(change))
            )
        ),
    ]


class _Places:
    """Which changed ops are inside which, by where each is called more often now."""

    def __init__(self, ops: Sequence[Change], causes: Causes) -> None:
        # Device work also rises in all ops around, so it does not show where a rise begins.
        tells = [change for change in ops if not change.background and change.metric not in TOTAL_OF_COUNT]
        beginnings = [change for change in tells if change.rise > 0 or change.rewrite is not None]
        self._heads = {name for change in beginnings for name in _names(change) if not _is_engine(name)}
        self._first_calls = causes.first_calls
        self._above = {
            name: causes.above(name) for name in self._heads | {_first(change) for change in tells}
        }
        # The worst verdict inside an op, and how many more calls.
        self._inside: dict[str, int] = {}
        self._calls: Counter[str] = Counter()
        for change in tells:
            if change.rise > 0:
                for name in self._above[_first(change)] or ():
                    self._inside[name] = min(severity_of(change.verdict), self._inside.get(name, _LEAST))
                    self._calls[name] += change.rise if change.metric == COUNT.name else 0

    def rank(self, change: Change) -> tuple[int, bool, bool, bool, int]:
        """The worst verdict first; then the forward, before the backward that follows from it.

        In both, ops that user code calls more often come before the ops inside them, and those that explain
        most calls, their own and the inner ones, come first.

        An outer op has the rank of its worst inner op, because an op that replaced another has not itself
        risen. A range is only a name, and never a cause.
        """
        severity = severity_of(change.verdict)
        is_count = change.metric == COUNT.name and not change.background
        is_inner, explained = self._is_inner(change), 0
        if is_count and change.kind is not OpKind.RANGE and change.verdict is not None:
            within = (self._inside.get(name, _LEAST) for name in _names(change) if name in self._heads)
            severity = min(severity, *within, _LEAST)
        if is_count and not is_inner:
            inside, own = sum(self._calls[name] for name in _names(change)), max(change.rise, 0)
            # Two calls of an op that runs no others explain less than one of an op that runs another.
            explained = inside + own if inside else own // 2
        is_backward = any(map(_is_engine, self._above.get(_first(change)) or ()))
        return (severity, _is_engine(_first(change)), is_backward, is_inner, -explained)

    def is_beginning(self, change: Change) -> bool:
        """Whether a regression begins with it: user code, not a changed op, runs it more."""
        severity, is_engine, is_backward, is_inner, _ = self.rank(change)
        return severity == Verdict.REGRESSED.severity and not (is_engine or is_backward or is_inner)

    def first_call(self, change: Change) -> tuple[int, str]:
        """Of ops that rose as much, the first to run comes first; by name if that is unknown."""
        op = _first(change)
        return self._first_calls.get(op, len(self._first_calls)), op

    def _is_inner(self, change: Change) -> bool:
        """Whether it is inside another change, or fell, or its caller is unknown."""
        if _first(change) not in self._heads and not _is_engine(_first(change)):
            return True
        above = self._above.get(_first(change))
        return above is None or not above.isdisjoint(self._heads - set(_names(change)))


def _names(change: Change) -> tuple[str, ...]:
    """The ops of a change, by their present names."""
    if change.rewrite is not None and change.rewrite.after:
        return change.rewrite.after
    return (_first(change),)


def _first(change: Change) -> str:
    return change.op or ""


def _is_engine(name: str) -> bool:
    return name.startswith(ENGINE)


def _ordered_totals(totals: Iterable[Change]) -> list[Change]:
    """The worst first, slight changes last, and what varies after what does not.

    Then as the metrics are listed: ops, kernels, bytes. Of instructions and memory, which come last, the
    larger share of the baseline is first. Memory goes by its first total: few bytes are soon a large share.
    """
    listed = sorted(totals, key=lambda change: (*_order_of_total(change), list(TOTALS).index(change.metric)))
    memory = {_order_of_total(change): _share(change) for change in reversed(listed) if _is_memory(change)}

    def share(change: Change) -> float:
        if _is_memory(change):
            return memory[_order_of_total(change)]
        return _share(change) if change.about.source in _OF_INSTRUCTIONS else math.inf

    return sorted(listed, key=lambda change: (*_order_of_total(change), _is_amount(change), -share(change)))


def _order_of_total(change: Change) -> tuple[int, bool, bool, bool]:
    severity, has_no_rule, *_ = _order(change)
    return (severity, change.is_slight, has_no_rule, not change.is_constant)


def _is_amount(change: Change) -> bool:
    return _is_memory(change) or change.about.source in _OF_INSTRUCTIONS


def _is_memory(change: Change) -> bool:
    return change.about.source in _OF_MEMORY


def _share(change: Change) -> float:
    before = change.base.high if change.base else 0
    return abs(change.rise) / before if before else math.inf


def _order(change: Change) -> tuple[int, bool, bool, int, int]:
    """The worst verdict first, gates of their own before the rest, then the largest difference.

    Calls come before memory and time.
    """
    calls_more = change.metric == COUNT.name and not (change.kind and change.kind.is_on_device)
    follows = _FOLLOWS.index(change.metric) + 1 if change.metric in _FOLLOWS else 0
    return (severity_of(change.verdict), not change.rule, not calls_more, follows, -abs(change.rise))
